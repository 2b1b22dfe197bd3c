"""A small Workflow dataset, scripted systems and scripted judges."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inspect_ai.model import ChatMessage, Model, ModelOutput, get_model

from gta_bench.agents.models import ChosenModel
from gta_bench.records.progress import RunProgress
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.running.feedback import Judged
from gta_bench.running.system_run import execute
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import read_units
from gta_bench.runs.scoring import score_workflow_run
from gta_bench.runs.store import StorePath
from gta_bench.runs.verdicts import append_verdicts, read_verdicts
from gta_bench.settings import ModelSettings, Settings
from tests.builders import checkpoint, parameter, tool, workflow_task, write_workflow
from tests.planning import Planned, planned
from tests.tasks.test_atomic_step import native_call, said

WRITER = tool("HtmlFileGenerator", parameter("html_code"), parameter("filename"))
SECRETS = {"cp1-1": "Quokkas are named", "cp1-2": "Wombats are named", "cp2": "Numbats are named"}
WORDS = {"cp1-1": "quokka", "cp1-2": "wombat", "cp2": "numbat"}
JUDGE = "scripted"
MODEL = ChosenModel("mockllm/model", ModelSettings(model="mockllm/model"))


def write_dataset(root: Path) -> Path:
    """Two tasks with three leaves each."""
    tree = [
        checkpoint(
            "cp1",
            *(checkpoint(leaf, requirements=SECRETS[leaf]) for leaf in ("cp1-1", "cp1-2")),
            requirements="Animals",
        ),
        checkpoint("cp2", requirements=SECRETS["cp2"]),
    ]
    dialogs = [{"role": "user", "content": "Write a page about animals."}]
    task = workflow_task(sub_tasks=tree, dialogs=dialogs)
    return write_workflow(root, {"1": task, "2": task}, toolmeta=[WRITER])


def wanted(data: Path, **changes: Any) -> Planned:
    return planned(data, "workflow", **{"model": MODEL, **changes})


def scripted(reply: Callable[[list[ChatMessage]], ModelOutput]) -> Model:
    return get_model("mockllm/model", custom_outputs=lambda input, *_: reply(input), memoize=False)


def write_page(text: str, filename: str = "page.html") -> ModelOutput:
    return native_call("HtmlFileGenerator", {"html_code": f"<p>{text}</p>", "filename": filename})


def one_page(text: str) -> Callable[[list[ChatMessage]], ModelOutput]:
    """Writes one page, then answers."""

    def reply(messages: list[ChatMessage]) -> ModelOutput:
        return said("Done.") if messages[-1].role == "tool" else write_page(text)

    return reply


def judged_run(folder: Path) -> Path:
    """A small run in the folder, with a scripted system and judge."""
    run = wanted(write_dataset(folder / "data"))
    model = scripted(one_page("quokka"))
    execute(*run, folder / "run", lambda well: None, model=model)
    judge_by_words(folder / "run")
    return folder / "run"


def judge_by_words(run: StorePath) -> Judged:
    """10 for a leaf whose animal stands in a deliverable, else 3; a score that is there holds."""
    manifest, store = read_manifest(run), ArtefactStore(run / ARTEFACTS)
    known = read_verdicts(run)
    for unit in read_units(
        log_folder(run), manifest.spec.tasks, manifest.spec.epochs, WorkflowUnit
    ).units:
        text = b" ".join(store.read(file.digest) for file in unit.deliverables).decode()
        for leaf in unit.task.leaves():
            key = VerdictKey(task=unit.task.id, epoch=unit.epoch, leaf=leaf.id, judge=JUDGE)
            value = 10 if WORDS[leaf.id] in text else 3
            if key not in known:
                verdict = Scored(value=value, reason=f"the {WORDS[leaf.id]} was looked for")
                append_verdicts(run, [VerdictRow(key=key, verdict=verdict)])
    return Judged(JUDGE, score_workflow_run(run, Settings()))


@contextmanager
def unwatched(_: StorePath) -> Iterator[Callable[[RunProgress], None]]:
    yield lambda _: None


def shown(messages: list[ChatMessage]) -> str:
    """Everything that a model was sent, as one text."""
    return json.dumps([message.model_dump(mode="json") for message in messages])
