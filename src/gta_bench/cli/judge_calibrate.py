"""`gta judge calibrate`: the judges of a run against people's labels."""

from pathlib import Path

import click

from gta_bench.cli.options import config_path, json_option
from gta_bench.cli.output import say, write_json, write_table
from gta_bench.errors import UsageError, counted
from gta_bench.metrics.labels import disputed_leaves, settled_scores
from gta_bench.packages import require_packages
from gta_bench.records.units import WorkflowUnit
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.labels import read_adjudication, read_labels
from gta_bench.settings import read_settings


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@click.option("--judge", "judges", multiple=True, help="Only this judge of the run.")
@json_option
@click.pass_obj
def calibrate(config_file: str | None, run: str, judges: tuple[str, ...], as_json: bool) -> None:
    """Set the judges of RUN against the people who labelled it (`gta judge label`).

    How often a judge is right, how it leans by category and kind of file, and its success rates
    corrected by the labelled tasks (prediction-powered inference) beside the raw ones.
    """
    require_packages("gta judge calibrate", "scipy", extra="report")
    from gta_bench.reports.calibration import (
        bias_table,
        corrected_table,
        figure_table,
    )
    from gta_bench.reports.calibration import calibrate as compare
    from gta_bench.runs.logs import read_units
    from gta_bench.runs.workflow_scoring import score_workflow_run

    folder = Path(run)
    raters, words = read_labels(folder), read_adjudication(folder)
    if not raters:
        raise UsageError(f"{run} has no labels yet: `gta judge label {run}`.")
    settings = read_settings(config_path(config_file)).settings
    scores = score_workflow_run(folder, settings)
    known = [table.judge for table in scores.judges]
    if unknown := [name for name in judges if name not in known]:
        raise UsageError(f"No judge {unknown[0]!r} in {run}. Known judges: {', '.join(known)}.")
    settled = settled_scores(raters, words, scores.leaf_threshold)
    manifest = read_manifest(folder)
    units = read_units(
        log_folder(folder), manifest.spec.tasks, manifest.spec.epochs, WorkflowUnit
    ).units
    compared = [
        compare(table, settled, units, scores)
        for table in scores.judges
        if not judges or table.judge in judges
    ]
    found = [one for one in compared if one is not None]
    if not found:
        raise UsageError(f"No judge of {run} scored a labelled leaf: `gta score {run} --judge M`.")
    disputed = set(disputed_leaves(raters, scores.leaf_threshold)) - set(settled)
    if disputed:
        leaves = counted(len(disputed), "disputed leaf", "disputed leaves")
        say(f"{leaves} left out; the label page settles them.")
    if as_json:
        write_json([one.model_dump(mode="json") for one in found])
        return
    write_table(figure_table(found), (0,))
    for title, table, words_ in (
        ("Scores, raw and corrected by people", corrected_table(found), (0, 1, 6)),
        ("By how many points the judge is above people", bias_table(found), (0, 1, 2)),
    ):
        click.echo(f"\n{title}")
        write_table(table, words_)
