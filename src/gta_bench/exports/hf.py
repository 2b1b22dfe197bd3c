"""Export the main score of a run as an evaluation result of a model on the Hugging Face Hub."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

from gta_bench.errors import RunError
from gta_bench.exports.uncertainty import list_metrics
from gta_bench.exports.unit_scores import UnitScores, choose_judge
from gta_bench.metrics import table
from gta_bench.redaction import current_redactor
from gta_bench.reports.estimates import Estimate
from gta_bench.runs.store import StorePath, write_bytes_atomically

FOLDER: Final = ".eval_results"


@dataclass(frozen=True, kw_only=True)
class HubBenchmark:
    """The benchmark on the Hub: its dataset, the task's id there, and where the result is from."""

    dataset: str
    task: str
    revision: str | None = None
    url: str | None = None
    organization: str | None = None


def export_hf(run: StorePath, out: Path, benchmark: HubBenchmark, judge: str | None = None) -> Path:
    """Write the file below `out`, which has the layout of a model's repository.

    The Hub has one value and no interval, so only complete runs of all tasks are exported, with the
    interval and the system in the notes.
    """
    scores = UnitScores(run, judge)
    judge = choose_judge(scores, "a result on the Hub")
    tasks, whole = len(scores.manifest.spec.tasks), scores.manifest.dataset_tasks
    if not scores.scores.complete or (whole is not None and tasks < whole):
        raise RunError(
            f"{run} is not complete, and the Hub would show its score like any other: run and "
            "score all tasks of the dataset first."
        )
    found = _estimate(scores, judge)
    entry: dict[str, Any] = {
        "dataset": {"id": benchmark.dataset, "task_id": benchmark.task},
        "value": round(found.value, 4),
        "date": scores.manifest.created.date().isoformat(),
    }
    if benchmark.revision is not None:
        entry["dataset"]["revision"] = benchmark.revision
    if benchmark.url is not None:
        entry["source"] = {"url": benchmark.url, "name": "gta-bench"}
        if benchmark.organization is not None:
            entry["source"]["org"] = benchmark.organization
    entry["notes"] = _describe(scores, found, judge)
    file = out / FOLDER / f"gta-{scores.manifest.spec.dataset}-{benchmark.task}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump([entry], sort_keys=False, allow_unicode=True, width=1000)
    write_bytes_atomically(file, current_redactor().data(text.encode()))
    return file


def _estimate(scores: UnitScores, judge: str | None) -> Estimate:
    """Return the primary metric with its interval."""
    primary = table.primary(scores.manifest.spec.mode)
    metrics = next(one for one in list_metrics(scores) if one.judge == (judge or ""))
    found = next(iter(metrics.estimates()), None)
    if found is None or found.metric != primary.name:
        raise RunError(f"{scores.run} has no task that {primary.label} measures.")
    return found


def _describe(scores: UnitScores, found: Estimate, judge: str | None) -> str:
    spec = scores.manifest.spec
    by = "" if judge is None else f", judged by {judge}"
    return (
        f"{table.label(found.metric)}{by}; 95 % interval {found.span} over {found.n} tasks; "
        f"{spec.describe()}; gta-bench {scores.manifest.packages.get('gta-bench', '')}"
    ).rstrip()
