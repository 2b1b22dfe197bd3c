"""Complete runs without any system, and bundles that somebody laid hands on."""

import json
import zipfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from inspect_ai.model import ChatMessage, ContentText, Model, ModelOutput, ModelUsage, get_model

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import dataset_digest
from gta_bench.datasets.model import Dataset
from gta_bench.datasets.workflow import load_workflow
from gta_bench.demo.script import LEAF
from gta_bench.judging import prompts
from gta_bench.leaderboard.bundle import list_bundle_files, run_digest, sign
from gta_bench.metrics.reference import reference_trace
from gta_bench.records.files import Deliverable
from gta_bench.records.judges import JudgeEntry
from gta_bench.records.leaderboard import BundleManifest
from gta_bench.records.run import RunManifest, RunMode, System
from gta_bench.records.steps import AnswerStep
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.runs.directory import open_run, write_scores
from gta_bench.runs.imported import write_imported
from gta_bench.runs.scoring import score_workflow_run
from gta_bench.runs.verdicts import append_verdicts, record_judge
from gta_bench.settings import Settings
from gta_bench.similarity.catalog import load_similarity, score_units
from tests.builders import checkpoint, workflow_task, write_workflow

SIMILARITY = "exact-or-half"
JUDGE = "mockllm/judge"
LEAVES = [9] * 100 + [8] * 32  # 1,156 leaves, as GTA-Workflow has


def manifest(dataset: Dataset, name: str, mode: RunMode, **changes: Any) -> RunManifest:
    return RunManifest.model_validate(
        {
            "created": datetime.now(UTC),
            "dataset": name,
            "dataset_digest": dataset_digest(dataset),
            "mode": mode,
            "system": System(model="openai/some-model", agent="toolcalling"),
            "imported_from": "elsewhere",
            "tasks": tuple(dataset.tasks),
            "similarity": SIMILARITY,
            **changes,
        }
    )


def gold_run(data: Path, run: Path, *, mode: RunMode = "end-to-end", **changes: Any) -> Path:
    """GTA-Atomic's reference as a finished run."""
    dataset = load_atomic(data)
    assert mode != "workflow"
    traces = {name: reference_trace(task) for name, task in dataset.tasks.items()}
    if mode == "step":
        traces = {
            name: tuple(step for step in trace if step.step != "reply")
            for name, trace in traces.items()
        }
    units = [AtomicUnit(task=task, trace=traces[name]) for name, task in dataset.tasks.items()]
    made = open_run(run, manifest(dataset, "atomic", mode, **changes))
    write_imported(run, made, units)
    write_scores(run, score_units(units, mode, load_similarity(SIMILARITY)))
    return run


def workflow_data(root: Path) -> Path:
    """A dataset of GTA-Workflow's size with small tasks."""
    tasks = {
        str(number): workflow_task(
            sub_tasks=[
                checkpoint(f"cp{leaf}", requirements=f"Chapter {leaf} of book {number} is there")
                for leaf in range(count)
            ]
        )
        for number, count in enumerate(LEAVES)
    }
    return write_workflow(root, tasks)


def workflow_run(data: Path, run: Path) -> Path:
    """Answers and files in every task; every tenth task fails."""
    dataset = load_workflow(data)
    file = Deliverable(path="outputs/a.pdf", digest="a" * 64, size=5)
    units = [
        WorkflowUnit(task=task, trace=(AnswerStep(content="Done."),), deliverables=(file,))
        for task in dataset.tasks.values()
    ]
    made = open_run(run, manifest(dataset, "workflow", "workflow"))
    write_imported(run, made, units)
    give_verdicts(
        run,
        "j",
        {
            (unit.task.id, leaf.id): 2.0 if int(unit.task.id) % 10 == 0 else 9.0
            for unit in units
            for leaf in unit.task.leaves()
        },
    )
    score_workflow_run(run, Settings())
    return run


def give_verdicts(run: Path, judge: str, values: Mapping[tuple[str, str], float]) -> None:
    """Keep these scores of tasks' leaves as the judge's, and that it was asked."""
    now = datetime.now(UTC)
    entry = JudgeEntry(
        name=judge,
        digest="",
        model=judge,
        options={},
        prompts=prompts.digest(),
        first=now,
        last=now,
    )
    record_judge(run, entry.model_copy(update={"digest": entry.compute_digest()}))
    append_verdicts(
        run,
        [
            VerdictRow(
                key=VerdictKey(task=task, leaf=leaf, judge=judge),
                verdict=Scored(value=value, reason="so"),
                prompts=prompts.digest(),
            )
            for (task, leaf), value in values.items()
        ],
    )


def scripted_judge(score: Callable[[str, str], float]) -> Model:
    """A judge whose score follows from what it is shown and from the leaf."""

    def reply(messages: list[ChatMessage], *_: object) -> ModelOutput:
        content = messages[-1].content
        assert not isinstance(content, str)
        parts = [part.text for part in content if isinstance(part, ContentText)]
        leaf = LEAF.findall(parts[-1])[-1]
        value = score("\n".join(parts), leaf.rpartition("~")[0])
        said = {"leaf": leaf, "used": [], "reason": "Because.", "score": value}
        output = ModelOutput.from_content(JUDGE, json.dumps(said))
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output

    return get_model(JUDGE, custom_outputs=reply, memoize=False)


def changed(
    bundle: Path, out: Path, change: Callable[[Path], None], *, signed: bool = False
) -> Path:
    """The bundle after somebody changed its files, signed again by that person or not."""
    folder = out.with_suffix("")
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    change(folder)
    if signed:
        kept = BundleManifest.model_validate_json((folder / "bundle.json").read_bytes())
        (folder / "bundle.json").unlink()
        (folder / "signature.json").unlink()
        files = list_bundle_files(folder)
        digest = run_digest(files)
        rewrite(folder / "entry.json", run_digest=digest)
        files = list_bundle_files(folder)
        again = kept.model_copy(update={"files": files, "run_digest": digest})
        text = again.model_dump_json().encode()
        (folder / "bundle.json").write_bytes(text)
        signature = sign(text, Ed25519PrivateKey.generate())
        (folder / "signature.json").write_text(signature.model_dump_json(), encoding="utf-8")
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder).as_posix())
    return out


def rewrite(file: Path, **changes: Any) -> None:
    value = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**value, **changes}), encoding="utf-8")


def replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    """A change of the first file of that pattern."""

    def change(folder: Path) -> None:
        file = next(iter(sorted(folder.glob(name))))
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")

    return change
