"""`gta score`: score a stored run again, or a prediction file of the published pipeline."""

from collections import Counter
from pathlib import Path

import click
from pydantic import JsonValue

from gta_bench.cli.options import (
    RUN,
    backend_options,
    config_path,
    data_option,
    json_option,
    judge_options,
    preflight_option,
    similarity_option,
)
from gta_bench.cli.output import say, write_json, write_rows
from gta_bench.cli.report import write_reports
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import dataset_digest
from gta_bench.datasets.installed import dataset_root
from gta_bench.datasets.upstream import read_predictions
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import UsageError, counted
from gta_bench.records.finding import Finding
from gta_bench.records.run import Mode
from gta_bench.records.scores import RunScores
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.reports.summary import SCORINGS, Scoring, chosen_scores, metrics, missing_remark
from gta_bench.running.backends.backend import Backend, open_backend
from gta_bench.runs.directory import log_folder, read_manifest, write_scores
from gta_bench.runs.store import StorePath
from gta_bench.settings import Settings, read_settings
from gta_bench.similarity.catalog import chosen_similarity, load_similarity, scored


@click.command()
@click.argument("run", required=False, type=RUN)
@click.option(
    "--predictions",
    type=click.Path(exists=True),
    help="A prediction file of the published pipeline, or a folder of its parts.",
)
@click.option("--dataset", type=click.Choice(["atomic"]), help="With --predictions.")
@click.option("--mode", type=click.Choice(["step", "end-to-end"]), help="With --predictions.")
@click.option(
    "--scoring",
    type=click.Choice(SCORINGS),
    default="strict",
    show_default=True,
    help="Which scoring stands under `metrics` of the JSON.",
)
@click.option(
    "--judge",
    "judges",
    multiple=True,
    help="GTA-Workflow: ask this model for every leaf that has no score of it yet.",
)
@click.option(
    "--cascade",
    type=click.FloatRange(0, 10),
    metavar="BAND",
    help="With two judges: ask the second only where the first is so near to the threshold.",
)
@click.option(
    "--panel",
    type=click.Choice(["mean", "majority"]),
    help="Score by all judges together too: their mean, or what most of them say.",
)
@judge_options
@click.option(
    "--estimate",
    "only_estimate",
    is_flag=True,
    help="Say how many calls, tokens and dollars the judges would take; send and write nothing.",
)
@preflight_option
@backend_options
@similarity_option
@data_option
@json_option
@click.pass_obj
@click.pass_context
def score(
    context: click.Context,
    config_file: str | None,
    /,
    run: StorePath | None,
    predictions: str | None,
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
    """Score RUN again, or the file that --predictions names; no model is asked without --judge."""
    overrides = {
        "data.atomic": folder,
        "scoring.similarity": similarity,
        **{f"judge.{name}": value for name, value in asking.items()},
    }
    settings = read_settings(config_path(config_file), overrides=overrides).settings
    if only_estimate:
        _estimate(run, judges, settings, cascade=cascade, folder=folder)
        return
    if run is not None and predictions is None and read_manifest(run).spec.mode == "workflow":
        stopped = False
        _adopt_requirements(run, folder)
        if judges:
            with open_backend(workers, cluster) as backend:
                stopped = _judge(
                    run, judges, settings, backend, cascade=cascade, preflight=preflight
                )
        complete = _score_workflow(run, settings, as_json=as_json)
        context.exit(0 if complete and not stopped else 1)
    if judges:
        raise UsageError(
            "--judge needs the folder of a Workflow run: GTA-Atomic has no judge; leave it out."
        )
    findings: tuple[Finding, ...] = ()
    if run is not None and predictions is None:
        _refuse_data(folder)
        scores = _score_run(run, settings)
        write_scores(run, scores)
    elif run is None and predictions is not None and dataset is not None and mode is not None:
        loaded = load_atomic(dataset_root(settings.data.atomic))
        found = read_predictions(Path(predictions), loaded, mode)
        findings = found.findings
        similar = load_similarity(chosen_similarity(settings.scoring))
        scores = scored(found.units, mode, similar)
    else:
        raise UsageError(
            "Give a run's folder, or --predictions FILE with --dataset and --mode, not both."
        )
    _say_findings(scores, findings)
    if as_json:
        _write_json(scores, scoring, findings)
    elif run is not None:
        write_reports([run])
    else:
        of = ("n/N", f"{chosen_scores(scores, scoring).n}/{scores.n_units}")
        write_rows([of, *((name, str(value)) for name, value in metrics(scores, scoring).items())])
    context.exit(0 if scores.complete else 1)


def _estimate(
    run: StorePath | None,
    judges: tuple[str, ...],
    settings: Settings,
    *,
    cascade: float | None,
    folder: str | None,
) -> None:
    """Say what the judges would take."""
    if run is None or not judges or folder is not None:
        raise UsageError("--estimate needs the folder of a Workflow run and --judge, not --data.")
    from gta_bench.running.estimate_judging import estimate_stored
    from gta_bench.running.judge_run import plan_judging

    found = estimate_stored(run, plan_judging(judges, settings, cascade=cascade))
    for one in found:
        say(str(one))
    if not found:
        say(f"{run}: nothing to estimate: every leaf has a score of these judges.")


def _refuse_data(folder: str | None) -> None:
    if folder is not None:
        raise UsageError(
            "--data with the folder of a run is for GTA-Workflow, whose requirements can be "
            "judged again. An Atomic run keeps its own reference: leave --data out."
        )


def _say_findings(scores: RunScores, findings: tuple[Finding, ...]) -> None:
    for check, count in Counter(finding.check for finding in findings).items():
        first = next(finding for finding in findings if finding.check == check)
        say(f"{counted(count, 'finding')} `{check}`; the first: {first.message}")
    if scores.missing:
        say(missing_remark(scores))


def _adopt_requirements(run: StorePath, folder: str | None) -> None:
    """Take the requirements of another dataset over, and say what is to be judged again."""
    if folder is None:
        return
    from gta_bench.runs.logs import read_units
    from gta_bench.runs.verdicts import adopt_requirements

    dataset, manifest = load_workflow(dataset_root(folder)), read_manifest(run)
    digest = dataset_digest(dataset)
    if digest == manifest.dataset_digest:
        return
    spec = manifest.spec
    units = read_units(log_folder(run), spec.tasks, spec.epochs, WorkflowUnit).units
    found = adopt_requirements(run, units, dataset.tasks, digest)
    say(
        f"Requirements of {folder}: {found.changed} of {counted(found.leaves, 'leaf', 'leaves')} "
        f"say something else and are judged again; {counted(found.kept, 'verdict')} kept."
    )


def _score_workflow(run: StorePath, settings: Settings, *, as_json: bool) -> bool:
    """Score a Workflow run by the verdicts that it has; whether all of it has a score."""
    # Reading logs needs the evaluation engine, scoring a prediction file does not.
    from gta_bench.runs.scoring import score_workflow_run

    judged = score_workflow_run(run, settings)
    if as_json:
        write_json(judged.model_dump(mode="json"))
    else:
        write_reports([run])
    return judged.complete


def _judge(
    run: StorePath,
    judges: tuple[str, ...],
    settings: Settings,
    backend: Backend,
    *,
    cascade: float | None,
    preflight: bool,
) -> bool:
    """Ask the judges, and whether the budget ended it; the engine is needed for that only."""
    from gta_bench.cli.judging import judge_with_bar
    from gta_bench.running.judge_run import plan_judging
    from gta_bench.running.preflight import check_judges

    judging = plan_judging(judges, settings, cascade=cascade)
    if preflight:
        check_judges(judging, run, say)
    return any(one.stopped for one in judge_with_bar(run, judging, backend))


def _score_run(run: StorePath, settings: Settings) -> RunScores:
    # Reading logs needs the evaluation engine, scoring a prediction file does not.
    from gta_bench.runs.logs import read_units

    manifest = read_manifest(run)
    found = read_units(log_folder(run), manifest.spec.tasks, manifest.spec.epochs, AtomicUnit)
    similar = load_similarity(chosen_similarity(settings.scoring))
    assert manifest.spec.mode != "workflow"
    return scored(found.units, manifest.spec.mode, similar, found.not_run)


def _write_json(scores: RunScores, scoring: Scoring, findings: tuple[Finding, ...]) -> None:
    write_json(
        {
            "scoring": scoring,
            "metrics": dict(metrics(scores, scoring)),
            **scores.model_dump(mode="json", exclude={"units", "strict", "compat"}),
            "n": chosen_scores(scores, scoring).n,
            "n_tasks": len({unit.task for unit in (*scores.units, *scores.unscored)}),
            "findings": [finding.model_dump(mode="json") for finding in findings],
        }
    )
