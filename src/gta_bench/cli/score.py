"""`gta score`: score or judge a stored run, or score a prediction file; `gta measure`."""

from collections import Counter
from inspect import unwrap
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import JsonValue

from gta_bench.cli.lazy import same_command
from gta_bench.cli.options import (
    FOLDER,
    RUN,
    backend_options,
    command_settings,
    data_option,
    json_option,
    judge_options,
    preflight_option,
    setting_option,
    similarity_option,
)
from gta_bench.cli.output import say, say_if_slow, unit_bar, write_json, write_rows, write_table
from gta_bench.cli.report import write_reports
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.installed import NamedDatasets, dataset_root
from gta_bench.datasets.upstream import read_predictions
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import UsageError, format_count
from gta_bench.records.finding import Finding
from gta_bench.records.run import Mode
from gta_bench.records.scores import RunScores
from gta_bench.records.verdicts import Cause, Unscored
from gta_bench.records.versions import RunNeeds
from gta_bench.reports.summary import (
    SCORINGS,
    Scoring,
    custom_metric_table,
    metrics,
    missing_remark,
    select_scores,
)
from gta_bench.reports.tables import line
from gta_bench.running.backends.backend import Backend, open_backend
from gta_bench.runs.directory import read_manifest, write_manifest
from gta_bench.runs.store import StorePath
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.settings import Settings
from gta_bench.similarity.catalog import choose_similarity, load_similarity, score_units

if TYPE_CHECKING:
    # Reading logs and judging need the evaluation engine; scoring a prediction file does not.
    from gta_bench.running.judge_run import JudgedBy, Judging


@click.command()
@click.argument("run", required=False, type=RUN)
@click.option(
    "--predictions",
    type=click.Path(exists=True, path_type=Path),
    help="Instead of RUN: a prediction file of the published pipeline, or a folder of its parts.",
)
@click.option(
    "--dataset", type=click.Choice(["atomic"]), help="Required with --predictions: the dataset."
)
@click.option(
    "--mode",
    type=click.Choice(["step", "end-to-end"]),
    help="Required with --predictions: the mode.",
)
@click.option(
    "--scoring",
    type=click.Choice(SCORINGS),
    default="strict",
    help="Which scoring to put under `metrics` in the JSON.",
)
@click.option(
    "--judge",
    "judges",
    multiple=True,
    help="GTA-Workflow: ask this model about every leaf that it has not scored yet; repeatable.",
)
@click.option(
    "--cascade",
    type=click.FloatRange(0, 10),
    metavar="BAND",
    help="With two judges: ask the second only if the first one's score is within BAND of the "
    "threshold.",
)
@setting_option("--panel", "judge.panel", type=click.Choice(["mean", "majority"]))
@judge_options
@click.option(
    "--estimate",
    "only_estimate",
    is_flag=True,
    help="Only estimate the calls, tokens and cost of judging; send and write nothing.",
)
@preflight_option
@backend_options
@similarity_option
@data_option
@json_option
def score(
    run: StorePath | None,
    predictions: Path | None,
    dataset: str | None,
    mode: Mode | None,
    scoring: Scoring,
    judges: tuple[str, ...],
    cascade: float | None,
    only_estimate: bool,
    preflight: bool,
    workers: int | None,
    cluster: str | None,
    similarity: str | None,
    folder: str | None,
    as_json: bool,
    **asking: JsonValue,
) -> None:
    """Score RUN again, or score the file that --predictions names.

    No model is called without --judge. Exits with 1 if something has no score. Next: `gta report
    RUN`.
    """
    settings = command_settings(
        {
            "data.atomic": folder,
            "scoring.similarity": similarity,
            **{f"judge.{name}": value for name, value in asking.items()},
        }
    )
    if cascade is not None and not judges:
        raise UsageError("--cascade needs two judges: add --judge WEAK --judge STRONG.")
    if only_estimate:
        _say_estimate(run, judges, settings, cascade, folder)
        return
    if run is not None and predictions is None and read_manifest(run).spec.mode == "workflow":
        stopped = False
        if folder is not None:
            _adopt_version(run, folder, settings.datasets)
        check_with_line(run, settings)
        if judges:
            with open_backend(workers, cluster) as backend:
                stopped = _judge(run, judges, settings, backend, cascade, preflight=preflight)
        say_leaks(run, settings)
        complete = _score_workflow(run, settings, as_json=as_json)
        raise click.exceptions.Exit(0 if complete and not stopped else 1)
    if judges:
        raise UsageError(
            "--judge needs the folder of a Workflow run; GTA-Atomic has no judge: leave it out."
        )
    findings: tuple[Finding, ...] = ()
    if run is not None and predictions is None:
        scores = _score_atomic(run, settings, folder)
    elif run is None and predictions is not None and dataset is not None and mode is not None:
        scores, findings = _score_predictions(predictions, mode, settings)
    else:
        raise UsageError(
            "Give either a run folder, or --predictions FILE with --dataset and --mode."
        )
    _write_scores(scores, scoring, findings, run, as_json=as_json)
    raise click.exceptions.Exit(0 if scores.complete else 1)


def _score_predictions(
    predictions: Path, mode: Mode, settings: Settings
) -> tuple[RunScores, tuple[Finding, ...]]:
    loaded = load_atomic(dataset_root(settings.data.atomic, settings.datasets))
    units, findings = read_predictions(predictions, loaded, mode)
    similarity = load_similarity(choose_similarity(settings.scoring))
    return score_units(units, mode, similarity), findings


def _say_estimate(
    run: StorePath | None,
    judges: tuple[str, ...],
    settings: Settings,
    cascade: float | None,
    folder: str | None,
) -> None:
    if run is None or not judges or folder is not None:
        raise UsageError(
            "--estimate needs the folder of a Workflow run and --judge, and no --data."
        )
    from gta_bench.running.estimate_judging import estimate_stored
    from gta_bench.running.judge_run import plan_judging

    found = estimate_stored(run, plan_judging(judges, settings, cascade=cascade))
    for one in found:
        say(str(one))
    if not found:
        say(f"{run}: nothing to estimate: these judges have scored every leaf.")


def _adopt_version(run: StorePath, folder: str, named: NamedDatasets) -> None:
    """Follow the dataset to another version, and say what still needs a judge or the system."""
    from gta_bench.running.versions import describe_version
    from gta_bench.runs.versions import adopt_version, read_needs

    dataset = load_workflow(dataset_root(folder, named))
    version = describe_version(dataset)
    manifest = read_manifest(run)
    if version.digest == manifest.dataset_digest:
        if version.canaries != manifest.canaries:
            write_manifest(run, manifest.model_copy(update={"canaries": version.canaries}))
        return
    needs = read_needs(run, version)
    kept = adopt_version(run, version)
    say(f"{folder}: {format_needs(needs)}; {format_count(kept, 'verdict')} kept.")
    if needs.judge:
        say(f"Judge again: gta score {run} --judge JUDGE")
    if needs.to_run:
        say(f"Run again: gta run workflow --data {folder} --out {run}, with the system's options.")


def format_needs(needs: RunNeeds) -> str:
    """Return what a run needs for another version of its dataset, as a part of a sentence."""
    total = sum(needs.units.values())
    kept = total - needs.to_run - needs.units.get("removed", 0)
    parts = [f"{kept} of {format_count(total, 'unit')} kept"]
    for count, what in (
        (needs.units.get("rescore", 0), "rescored"),
        (needs.recheck, "checked again"),
        (needs.judge, "to judge again"),
        (needs.units.get("run", 0), "to run again"),
        (needs.units.get("removed", 0), "removed"),
    ):
        if count:
            leaves = what in ("checked again", "to judge again")
            words = ("leaf", "leaves") if leaves else ("unit", "units")
            parts.append(f"{format_count(count, *words)} {what}")
    return ", ".join(parts)


def _judge(
    run: StorePath,
    judges: tuple[str, ...],
    settings: Settings,
    backend: Backend,
    cascade: float | None,
    *,
    preflight: bool,
) -> bool:
    """Ask the judges; return whether the budget stopped one of them."""
    from gta_bench.running.judge_run import plan_judging
    from gta_bench.running.preflight import check_judges

    judging = plan_judging(judges, settings, cascade=cascade)
    if preflight:
        check_judges(judging, run, say)
    return any(one.stopped for one in judge_with_bar(run, judging, backend))


def judge_with_bar(run: StorePath, judging: "Judging", backend: Backend) -> "list[JudgedBy]":
    """Ask the judges about the leaves that they have not scored, and report the outcome."""
    from gta_bench.running.judge_run import judge_run

    judged = []
    for found in judge_run(run, judging, unit_bar, backend):
        leaves = format_count(found.wanted, "leaf", "leaves")
        if found.stopped is None:
            say(f"{found.judge}: {leaves} asked, {found.scored} scored.")
        else:
            say(
                f"{found.judge}: stopped at {found.stopped}; {found.scored} of {leaves} scored. "
                f"Continue with: {same_command()}"
            )
        if found.scored < found.wanted:
            _say_unscored(run, found.judge)
        judged.append(found)
    return judged


def check_with_line(
    run: StorePath, settings: Settings, tasks: tuple[str, ...] | None = None
) -> None:
    """Decide the leaves with checks, and say how many got a score; nothing if there were none."""
    from gta_bench.running.check_run import check_run

    with say_if_slow(f"{run}: deciding checks …"):
        found = check_run(run, settings, tasks)
    if found.wanted:
        leaves = format_count(found.wanted, "leaf", "leaves")
        say(f"check: {leaves} checked, {found.scored} scored.")
    if found.problem:
        say(f"check: {found.wanted - found.scored} without a score. The first: {found.problem}")


def say_leaks(run: StorePath, settings: Settings, tasks: tuple[str, ...] | None = None) -> None:
    """Warn about answers and files that contain a canary of the dataset."""
    from gta_bench.running.canary_scan import find_leaks

    for leak in find_leaks(run, settings, tasks):
        epoch = f", epoch {leak.epoch}" if leak.epoch > 1 else ""
        say(
            f"Warning: task {leak.task}{epoch}: {leak.place} contains the dataset's canary. The "
            "system has seen files of the dataset that it was not given."
        )


def _say_unscored(run: StorePath, judge: str) -> None:
    """Say why leaves have no score, with the first example of each cause."""
    times: Counter[Cause] = Counter()
    first: dict[Cause, str] = {}
    # Sorted by task and leaf, so that the same run always gives the same examples.
    found = (
        (key, row.verdict)
        for key, row in read_verdicts(run).items()
        if key.judge == judge and isinstance(row.verdict, Unscored)
    )
    for key, verdict in sorted(found, key=lambda one: (one[0].task, one[0].leaf)):
        times[verdict.cause] += 1
        first.setdefault(verdict.cause, f"task {key.task}, {key.leaf}: {verdict.detail}")
    for cause, count in times.most_common():
        leaves = format_count(count, "leaf", "leaves")
        say(f"{judge}: {cause}, {leaves} without a score. The first: {line(first[cause], 300)}")


def _score_workflow(run: StorePath, settings: Settings, *, as_json: bool) -> bool:
    """Score a Workflow run by its verdicts; return whether every leaf has a score."""
    from gta_bench.runs.scoring import score_workflow_run

    scores = score_workflow_run(run, settings)
    if as_json:
        write_json(scores.model_dump(mode="json"))
    else:
        write_reports([run])
    return scores.complete


def _score_atomic(run: StorePath, settings: Settings, folder: str | None) -> RunScores:
    from gta_bench import api

    if folder is not None:
        raise UsageError(
            "--data with a run folder is for GTA-Workflow, whose requirements can be judged "
            "again. An Atomic run keeps its own reference: leave --data out."
        )
    scores = unwrap(api.score)(run, settings=settings)
    assert isinstance(scores, RunScores)
    return scores


def _write_scores(
    scores: RunScores,
    scoring: Scoring,
    findings: tuple[Finding, ...],
    run: StorePath | None,
    *,
    as_json: bool,
) -> None:
    for check, count in Counter(finding.check for finding in findings).items():
        first = next(finding for finding in findings if finding.check == check)
        say(f"{format_count(count, 'finding')} `{check}`; the first: {first.message}")
    if scores.missing:
        say(missing_remark(scores))
    n, values = select_scores(scores, scoring).n, metrics(scores, scoring)
    if as_json:
        write_json(
            {
                "scoring": scoring,
                "metrics": dict(values),
                **scores.model_dump(mode="json", exclude={"units", "strict", "compat"}),
                "n": n,
                "n_tasks": len({unit.task for unit in chain(scores.units, scores.unscored)}),
                "findings": [finding.model_dump(mode="json") for finding in findings],
            }
        )
    elif run is not None:
        write_reports([run])
    else:
        counts = ("n/N", f"{n}/{scores.n_units}")
        write_rows([counts, *((name, str(value)) for name, value in values.items())])


@click.command()
@click.argument("run", type=FOLDER)
@click.argument("metrics", nargs=-1, required=True)
@json_option
def measure(run: Path, metrics: tuple[str, ...], as_json: bool) -> None:
    """Apply METRICS to RUN: names from installed packages, or pkg.mod:function.

    A metric is a function of one unit (what the system did in one task) that returns a number, or
    None to leave the unit out. Prints the mean of each metric and over how many units it is.
    """
    from gta_bench import api

    found = [unwrap(api.measure)(run, name) for name in metrics]
    if as_json:
        write_json([one.model_dump(mode="json") for one in found])
    else:
        write_table(custom_metric_table(found), (0,))
