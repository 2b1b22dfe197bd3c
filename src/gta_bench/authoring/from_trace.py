"""Make a draft task from a trace: what the trace shows, and questions about everything else.

Nothing of the trace is run. Its texts become files of the task folder under names of ours, and
secrets are removed from them before anything is written.
"""

import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from pydantic import JsonValue

from gta_bench.authoring.draft_notes import format_notes, shorten
from gta_bench.authoring.draft_tools import DraftTools
from gta_bench.authoring.drafts import (
    DRAFT_FILE,
    OPEN,
    DraftField,
    DraftFieldName,
    DraftFile,
    DraftSource,
    format_draft_file,
)
from gta_bench.authoring.subject import NOTES, find_file_names
from gta_bench.authoring.traces.observed import (
    MOST_CHARACTERS,
    ObservedCall,
    ObservedFile,
    ObservedTrace,
)
from gta_bench.authoring.traces.secrets import encodable, iter_texts
from gta_bench.confine.names import clean_name
from gta_bench.confine.workspace import Workspace
from gta_bench.content.identify import identify
from gta_bench.content.kinds import KIND_OF_SUFFIX, KINDS
from gta_bench.datasets.convert import format_task_file
from gta_bench.datasets.files import TASK_ID
from gta_bench.datasets.folders import INPUTS, REQUEST_FILE, TASK_FILE, LeafEntry, TaskFile
from gta_bench.errors import ToolError, UsageError, format_count, join_first
from gta_bench.records.tape import CallLine, DoneReply, ErrorReply, TapeReply
from gta_bench.records.tools import FILE_TYPES
from gta_bench.redaction import current_redactor
from gta_bench.settings import SERVER_NAME
from gta_bench.tape.source import TapeUnit, tape_call
from gta_bench.tape.storage import Tape, session_call

TAPE_FOLDER: Final = "tape"
# The tape's name for the dataset of all task folders.
DATASET: Final = "workflow"
SERVER: Final = "trace"
LONGEST_SERVER: Final = 32
MOST_INPUT_BYTES: Final = 64 << 20


class ProposedTree(NamedTuple):
    """Leaves that a model proposed, the model, and the digest of its prompt."""

    leaves: tuple[LeafEntry, ...]
    model: str
    prompts: str


class WrittenDraft(NamedTuple):
    """A draft on disk: its folder, its fields, and how many calls its tape has."""

    folder: Path
    draft: DraftFile
    taped: int
    calls: int


class TraceOrigin(NamedTuple):
    """The file of a trace, to name in drafts."""

    name: str
    sha256: str

    @classmethod
    def of(cls, file: Path) -> "TraceOrigin":
        """Return the name and the digest of a file."""
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return cls(file.name, digest)


def choose_ids(stem: str, traces: Sequence[str], out: Path) -> list[str]:
    """Return an id for the task of each trace that is free in the folder."""
    single = len(traces) == 1
    taken = {one.name.casefold() for one in out.iterdir()} if out.is_dir() else set()
    chosen: list[str] = []
    for trace in traces:
        base = _clean_id(stem if single else f"{stem[:40]}-{trace[:16]}")
        name, number = base, 2
        while name.casefold() in taken:
            name, number = f"{base[:58]}-{number}", number + 1
        taken.add(name.casefold())
        chosen.append(name)
    return chosen


def _clean_id(text: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", text)
    return re.sub(r"^[^A-Za-z0-9]+", "", plain)[:64].rstrip("-.") or "trace"


def check_target(out: Path, name: str, server: str = SERVER) -> None:
    """Raise UsageError unless a draft with this id and tool server can be written."""
    if not TASK_ID.fullmatch(name):
        problem = "use letters, digits, dots, dashes and underscores, at most 64"
        raise UsageError(f"{name!r} is not the id of a task: {problem}.")
    if not re.fullmatch(SERVER_NAME, server) or len(server) > LONGEST_SERVER:
        raise UsageError(
            f"{server!r} is not the name of a tool server: use letters and digits, with single - "
            f"or _ between, at most {LONGEST_SERVER}."
        )
    if (out / name).exists():
        raise UsageError(f"{out / name} exists already. Choose another name.")
    if (out / TASK_FILE).exists():
        raise UsageError(f"{out} is a task itself. Name a folder beside it.")


def write_draft(
    trace: ObservedTrace,
    folder: Path,
    origin: TraceOrigin,
    *,
    server: str = SERVER,
    proposed: ProposedTree | None = None,
) -> WrittenDraft:
    """Write the draft of a trace, which has no secrets, to a new folder; its name is the task's id.

    Tools that are not ours belong to the tool server `server`, unless their names say which.
    """
    check_target(folder.parent, folder.name, server)
    name = folder.name
    folder.parent.mkdir(parents=True, exist_ok=True)
    # A draft appears as a whole or not at all.
    with tempfile.TemporaryDirectory(prefix=".draft-", dir=folder.parent) as place:
        partial = Path(place) / name
        partial.mkdir()
        written = _Draft(trace, name, server, proposed).write(partial, origin)
        shutil.move(partial, folder)
    return written._replace(folder=folder)


class _Draft:
    """A trace as a task: names of tools, files, leaves, and the state of each field."""

    def __init__(
        self, trace: ObservedTrace, name: str, server: str, proposed: ProposedTree | None
    ) -> None:
        self.trace = trace
        self.name = name
        self.proposed = proposed
        self.tools = DraftTools(trace, server)
        self.inputs = dict(_name_inputs(trace.files))
        self.lost = [one.name for one in trace.files if not one.data]
        self.lost += [
            one.name for one in trace.files if one.data and one not in self.inputs.values()
        ]
        self.deliverables = dict(_name_deliverables(trace.delivered or ()))

    def write(self, folder: Path, origin: TraceOrigin) -> WrittenDraft:
        """Write all files of the draft."""
        trace = self.trace
        taped = self._write_tape(folder / TAPE_FOLDER)
        source = DraftSource(
            file=current_redactor().text(encodable(origin.name)),
            sha256=origin.sha256,
            format=trace.format,
            trace=trace.id,
        )
        draft = DraftFile(
            format=1,
            source=source,
            model=None if self.proposed is None else self.proposed.model,
            prompts=None if self.proposed is None else self.proposed.prompts,
            fields={name: field for name, field in self._describe_fields(sum(taped))},
        )
        missing_request = f"{OPEN}write what the system is asked to do."
        texts = {
            TASK_FILE: self._format_task(),
            REQUEST_FILE: (trace.request or missing_request)[:MOST_CHARACTERS].rstrip("\n") + "\n",
            DRAFT_FILE: format_draft_file(draft),
            NOTES: format_notes(trace, draft, taped),
        }
        for path, text in texts.items():
            (folder / path).write_text(text, encoding="utf-8", newline="\n")
        for path, file in self.inputs.items():
            (folder / INPUTS).mkdir(exist_ok=True)
            (folder / INPUTS / path).write_bytes(file.data or b"")
        return WrittenDraft(folder, draft, sum(taped), len(trace.calls))

    def _format_task(self) -> str:
        task = TaskFile(
            format=1,
            id=self.name,
            tools=tuple(self.tools.specs),
            deliverables=self.deliverables,
            leaf=self._list_leaves(),
        )
        head = f"# A draft from a trace: {DRAFT_FILE} says where each field comes from.\n"
        return head + format_task_file(task)

    def _list_leaves(self) -> tuple[LeafEntry, ...]:
        """Return the proposed leaves, or a skeleton whose leaves are questions."""
        if self.proposed is not None:
            return self.proposed.leaves
        asked = {"answer": f"{OPEN}what must the answer say to be right?"}
        for number, name in enumerate(self.deliverables, 1):
            asked[f"file-{number}"] = f"{OPEN}what must {name} contain to be right?"
        return tuple(LeafEntry(id=name, says=says) for name, says in asked.items())

    def _write_tape(self, folder: Path) -> list[bool]:
        """Write the calls that can be replayed; return for each call whether it is on the tape."""
        taped: list[bool] = []
        tape = Tape.record(folder, dataset=DATASET, origin="live")
        with closing(tape), tempfile.TemporaryDirectory(prefix="gta-draft-") as place:
            tape.offer(self.tools.specs.values())
            workspace = Workspace.create(Path(place), {})
            for call in self.trace.calls:
                line = self._make_line(call, workspace)
                taped.append(line is not None)
                if line is not None:
                    number = tape.count(line.call) + 1
                    tape.keep(line.model_copy(update={"number": number}))
        return taped

    def _make_line(self, call: ObservedCall, workspace: Workspace) -> CallLine | None:
        """Return a call as a tape has it; None if it cannot be replayed."""
        reply = _make_reply(call, self.trace.format)
        if call.arguments is None or reply is None:
            return None
        name = self.tools.names[call.tool]
        spec = self.tools.specs[name]
        unit = TapeUnit(DATASET, self.name, 1)
        made = tape_call(unit, name, call.arguments, spec, workspace, current_redactor())
        if spec.served is not None:
            # As recorded outside of a task: found whatever files the task has by then.
            server = self.tools.digests[spec.served.server]
            return CallLine(
                call=session_call(made).model_copy(update={"server": server}), reply=reply
            )
        named = [*_iter_paths(dict(call.arguments))]
        digests = {one.name: one.sha256 for one in self.trace.files if one.sha256 is not None}
        written = call.reply is not None and any(
            path.startswith("outputs/") for part in call.reply for path in _iter_paths(part.content)
        )
        if written or any(path not in digests for path in named):
            return None  # a call of our tools depends on the content of files, or writes one
        return CallLine(
            call=made.model_copy(update={"files": {path: digests[path] for path in named}}),
            reply=reply,
        )

    def _describe_fields(self, taped: int) -> Iterator[tuple[DraftFieldName, DraftField]]:
        yield "request", self._describe_request()
        yield "tools", self._describe_tools()
        yield "inputs", self._describe_inputs()
        yield "deliverables", self._describe_deliverables()
        yield "tape", self._describe_tape(taped)
        if self.proposed is not None:
            note = f"Proposed by {self.proposed.model}. Is every leaf asked for, and right?"
            yield "tree", DraftField(state="inferred", note=note)
        else:
            yield "tree", _missing("What makes the work right? Replace the leaves of task.toml.")
        yield (
            "gold",
            _missing(
                f"Was the work right? {NOTES} has the answer. Put two right deliveries into "
                "gold/NAME/, with final.txt for an answer."
            ),
        )
        yield "wrong", _missing("Which mistakes must fail? Put each into wrong/NAME/.")
        yield "category", _missing("Name a category in task.toml.")
        yield "license", _missing("May the content of this trace be used? Name a license.")

    def _describe_request(self) -> DraftField:
        trace = self.trace
        if trace.request is None:
            return _missing("The trace has no message of the user. Write request.md.")
        if trace.is_cut or len(trace.request) > MOST_CHARACTERS:
            return _missing("The request was probably cut. Complete request.md.")
        if trace.turns > 1:
            note = f"The first of {trace.turns} messages of the user. Does it say everything?"
            return DraftField(state="inferred", note=note)
        if "[redacted:" in trace.request:
            note = "A secret was removed. Does the request make sense without it?"
            return DraftField(state="inferred", note=note)
        return DraftField(state="observed")

    def _describe_tools(self) -> DraftField:
        if not self.tools.specs:
            note = "No tool in the trace, so the task offers all. Which tools does it need?"
            return DraftField(state="inferred", note=note)
        notes = [*self.tools.notes]
        return DraftField(state="inferred" if notes else "observed", note=" ".join(notes))

    def _describe_inputs(self) -> DraftField:
        if self.lost:
            names = join_first([shorten(one) for one in self.lost])
            return _missing(f"The trace names files without their content: {names}.")
        if self.inputs:
            return DraftField(state="observed")
        return DraftField(state="inferred", note="The trace attaches no file.")

    def _describe_deliverables(self) -> DraftField:
        if self.trace.delivered is not None:
            unknown = len(self.trace.delivered) - len(self.deliverables)
            if unknown:
                files = format_count(unknown, "file")
                return _missing(f"{files} of other kinds: which ones does the request ask for?")
            return DraftField(state="observed")
        given = {PurePosixPath(one.name).name for one in self.trace.files}
        named = [one for one in find_file_names(self.trace.request or "") if one not in given]
        if named:
            return _missing(
                f"The request names {join_first([shorten(one) for one in named])}: which of them "
                "are inputs, and which must the system deliver?"
            )
        return DraftField(state="inferred", note="No file is named: the answer is all there is.")

    def _describe_tape(self, taped: int) -> DraftField:
        calls = self.trace.calls
        if not calls and self.trace.request is None:
            return _missing("The trace shows no call, because its content is missing.")
        if taped < len(calls):
            return _missing(
                f"{len(calls) - taped} of {format_count(len(calls), 'call')} cannot be replayed: "
                f"{NOTES} says which. Record the task with its tools, or go without a tape."
            )
        return DraftField(state="observed", note="" if calls else "No tool was called.")


def _make_reply(call: ObservedCall, format: str) -> TapeReply | None:
    """Return the reply of a call; None if it is not complete, or is a file that the trace lacks."""
    if call.error is not None:
        return ErrorReply(message=call.error)
    if call.reply is None or any(part.type in FILE_TYPES for part in call.reply):
        return None
    return DoneReply(parts=call.reply, tool_version="", backend=f"trace ({format})")


def _iter_paths(value: JsonValue) -> Iterator[str]:
    """Yield the files of a workspace that a value mentions."""
    for text in iter_texts(value):
        yield from dict.fromkeys(re.findall(r"\b(?:inputs|outputs)/[^\s'\"<>|,;)\]]+", text))


def _name_inputs(files: Sequence[ObservedFile]) -> Iterator[tuple[str, ObservedFile]]:
    """Yield the files that the trace contains, each with a name that says what its bytes are."""
    total, counts = 0, dict[str, int]()
    for file in files:
        total += len(file.data or b"")
        if not file.data or total > MOST_INPUT_BYTES:
            continue
        try:
            stem = PurePosixPath(clean_name(file.name)).stem
        except ToolError:
            stem = "input"
        counts[stem] = counts.get(stem, 0) + 1
        suffix = KINDS[identify("", file.data).kind].suffixes
        yield f"{stem}-{counts[stem]}{suffix[0] if suffix else '.bin'}", file


def _name_deliverables(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    for path in paths:
        name = path.removeprefix("outputs/")
        kind = KIND_OF_SUFFIX.get(PurePosixPath(name).suffix.lower())
        parts = PurePosixPath(name).parts
        if kind is not None and ".." not in parts and not PurePosixPath(name).is_absolute():
            yield name, kind


def _missing(note: str) -> DraftField:
    return DraftField(state="missing", note=note)
