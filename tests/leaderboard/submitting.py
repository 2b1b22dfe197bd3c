"""Runs that are submitted, as honest people do it, and what the check says of them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model

from gta_bench.cli.bundles import make_bundle
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.workflow import load_workflow
from gta_bench.leaderboard.submission import EntryLabel
from gta_bench.leaderboard.verification import Checked, check_bundle
from gta_bench.metrics.workflow_scores import Thresholds
from gta_bench.records.attempts import AttemptLine
from gta_bench.records.steps import AnswerStep
from gta_bench.records.units import AtomicUnit
from gta_bench.runs.directory import open_run, write_scores
from gta_bench.runs.imported import write_imported
from gta_bench.runs.logs import append_attempts
from gta_bench.settings import Settings
from gta_bench.similarity.catalog import load_similarity, score_units
from tests.leaderboard.bundles import SIMILARITY, manifest

NAME = "mockllm/model"


class Made(NamedTuple):
    """An honest run, its dataset and its bundle."""

    run: Path
    data: Path
    bundle: Path


def model(text: str, answers_as: str = NAME) -> Model:
    def reply(*_: Any) -> ModelOutput:
        output = ModelOutput.from_content(answers_as, text)
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output

    return get_model(NAME, custom_outputs=reply, memoize=False)


def imported(data: Mapping[str, Path], run: Path, tried: int = 0, **changes: Any) -> Path:
    """Results as `gta import` leaves them, or with other facts in manifest and logs."""
    dataset = load_atomic(data["atomic"])
    units = [
        AtomicUnit(
            task=task,
            trace=(AnswerStep(content="7"),),
            digests=task_digests(dataset, name),
            attempts=tried or None,
        )
        for name, task in dataset.tasks.items()
    ]
    stated = manifest(dataset, "atomic", "end-to-end", **changes)
    write_imported(run, open_run(run, stated), units)
    if tried:
        _try(run, [unit.task.id for unit in units], tried)
    write_scores(run, score_units(units, "end-to-end", load_similarity(SIMILARITY)))
    return run


def _try(run: Path, tasks: Sequence[str], tried: int) -> None:
    """So many attempts at each task, of which the last one is in the log."""
    (file,) = (run / "logs").glob("*.eval")
    log = read_eval_log(str(file))
    for sample in log.samples or ():
        sample.uuid = f"{sample.id}-{tried}"
    write_eval_log(log, str(file))
    for task in tasks:
        for number in range(1, tried + 1):
            name, when = f"{task}-{number}", datetime.now(UTC)
            begun = AttemptLine(task=task, epoch=1, attempt=name, when=when)
            end = "finished" if number == tried else "failed"
            append_attempts(run, [begun, begun.model_copy(update={"end": end})])


def pack(run: Path, data: Path, folder: Path) -> Path:
    out = folder / f"{run.name}.zip"
    make_bundle([run], out, folder / "key.pem", EntryLabel(), None, Settings(), str(data))
    return out


def check(bundle: Path, data: Path, folder: Path, now: datetime | None = None) -> Checked:
    folder.mkdir()
    dataset = load_workflow(data) if (data / "end.json").exists() else load_atomic(data)
    return check_bundle(
        bundle, folder, load=lambda _: dataset, thresholds=Thresholds(7, 7), now=now
    )


def found(checked: Checked) -> set[str]:
    return {one.check for one in checked.findings}
