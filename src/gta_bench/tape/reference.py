"""Make a tape from reference dialogues, for end-to-end runs without key, GPU or network."""

import tempfile
from collections import Counter
from pathlib import Path, PurePosixPath

from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.model import AtomicDataset
from gta_bench.errors import RunError
from gta_bench.records.atomic import PLACEHOLDER_IMAGE, AtomicTask
from gta_bench.records.dialogue import CallTurn, ReplyTurn
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tape import CallLine, DoneReply, TapeFile, TapeReply, UnavailableReply
from gta_bench.records.tools import FILE_TYPES, ToolSpec
from gta_bench.redaction import Redactor
from gta_bench.tape.source import TapeUnit, tape_call
from gta_bench.tape.storage import TAPE, Tape, call_key

BACKEND = "reference dialogue"
# The released dataset has one picture in place of every image that a tool created.
PLACEHOLDER_SOURCE = Path("image") / PurePosixPath(PLACEHOLDER_IMAGE).name
NO_REPLY = UnavailableReply(
    reason="The reference has no reply to this call.", fix="Go on without it."
)


def write_reference_tape(dataset: AtomicDataset, folder: Path) -> int:
    """Write the tape into a new folder and return the number of calls.

    Each task gets a workspace with its files, and `tape_call` builds its calls as in a replay, so
    the two cannot differ.
    """
    if (folder / TAPE).exists():
        raise RunError(f"{folder} already contains a tape; choose another --out.")
    tape = Tape.record(folder, dataset="atomic", origin="reference")
    tape.offer(_widest_specs(dataset).values())
    try:
        for task in dataset.tasks.values():
            with tempfile.TemporaryDirectory(prefix="gta-tape-") as space:
                files = {item.path: dataset.root / item.source for item in task.attachments}
                workspace = Workspace.create(Path(space), files, follow_links=True)
                _keep_task(tape, dataset, task, workspace)
        return len(tape)
    finally:
        tape.close()


def _widest_specs(dataset: AtomicDataset) -> dict[str, ToolSpec]:
    """Return each tool's definition with the most inputs: some tasks declare more than toolmeta."""
    specs = dict(dataset.tools)
    for task in dataset.tasks.values():
        for tool in task.tools:
            if tool.name not in specs or len(specs[tool.name].inputs) < len(tool.inputs):
                specs[tool.name] = tool
    return specs


def _keep_task(tape: Tape, dataset: AtomicDataset, task: AtomicTask, workspace: Workspace) -> None:
    unit, made = TapeUnit("atomic", task.id, 1), Counter[bytes]()
    for turn, after in zip(task.dialogue, (*task.dialogue[1:], None), strict=True):
        if not isinstance(turn, CallTurn):
            continue
        name = turn.call.name
        call = tape_call(
            unit, name, turn.call.arguments, tape.specs.get(name), workspace, Redactor({})
        )
        made[call_key(call)] += 1
        reply = (
            _reply(tape, dataset, after, workspace) if isinstance(after, ReplyTurn) else NO_REPLY
        )
        tape.keep(CallLine(call=call, number=made[call_key(call)], reply=reply))


def _reply(tape: Tape, dataset: AtomicDataset, turn: ReplyTurn, workspace: Workspace) -> TapeReply:
    files: tuple[TapeFile, ...] = ()
    if turn.type in FILE_TYPES:
        source = dataset.root / PLACEHOLDER_SOURCE
        if not source.is_file():
            raise RunError(
                f"{source} is missing; the reference uses it for all images. Fetch the dataset "
                "again with `gta data fetch`."
            )
        data = source.read_bytes()
        # All images of the reference have the same name, so a later one replaces the earlier one.
        workspace.write(PurePosixPath(turn.content).name, data, overwrite=True)
        files = (TapeFile(path=turn.content, sha256=tape.artefacts.keep(data), replaced=True),)
    return DoneReply(
        parts=(ReplyPart(type=turn.type, content=turn.content),),
        files=files,
        tool_version="",
        backend=BACKEND,
    )
