"""`gta judge bridge|list|drift|cascade`: judges set against each other on the same leaves."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from gta_bench.cli.options import config_path, json_option
from gta_bench.cli.output import say, write_json, write_table
from gta_bench.errors import UsageError, counted
from gta_bench.packages import require_packages
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import VerdictKey, VerdictRow
from gta_bench.reports.tables import Table, with_interval
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.verdicts import read_judges, read_verdicts
from gta_bench.settings import read_settings

DAY = "%Y-%m-%d"
RUN = click.Path(exists=True, file_okay=False)
WORDS = {
    "yes": "Runs of both may share a table: what moves lies within the margin.",
    "no": "Runs of both may not share a table: judge the old ones again, or begin a new table.",
    "unknown": "Not known whether runs of both may share a table: the bridge set is too small.",
}


@click.command()
@click.argument("run", type=RUN)
@click.option("--out", required=True, type=click.Path(file_okay=False), help="Folder of the set.")
@click.option("--tasks", "count", type=click.IntRange(1), help="So many tasks; all unless given.")
@click.option("--seed", default=0, show_default=True, help="Another random choice.")
def bridge(run: str, out: str, count: int | None, seed: int) -> None:
    """Copy finished works of RUN, without verdicts, as a set to compare judges on.

    Copy it once for each date: `gta score SET --judge M` asks a judge, `gta judge drift` compares.
    """
    from gta_bench.judge_quality.judge_runs import make_bridge

    leaves = make_bridge(Path(run), Path(out), count=count, seed=seed)
    say(f"{counted(leaves, 'leaf', 'leaves')} in {out}: `gta score {out} --judge MODEL`.")


@click.command("list")
@click.argument("run", type=RUN)
@json_option
def list_judges(run: str, as_json: bool) -> None:
    """The judges that RUN was laid before: name, digest of the whole configuration, dates."""
    found = read_judges(Path(run)).judges
    if as_json:
        write_json([one.model_dump(mode="json") for one in found])
        return
    rows = tuple(
        (
            one.name,
            one.digest[:12],
            one.prompts[:12],
            f"{one.first:{DAY}}",
            f"{one.last:{DAY}}",
        )
        for one in found
    )
    write_table(Table(("judge", "digest", "prompts", "first asked", "last asked"), rows), (0, 1, 2))


@click.command()
@click.argument("old", type=RUN)
@click.argument("new", type=RUN)
@click.option("--judge", "judges", multiple=True, help="In OLD, and a second one in NEW.")
@click.option("--margin", type=click.FloatRange(0), help="Points of Root Score that may move; 0.5.")
@json_option
@click.pass_context
def drift(
    context: click.Context,
    old: str,
    new: str,
    judges: tuple[str, ...],
    margin: float | None,
    as_json: bool,
) -> None:
    """Compare two judges, or one at two dates, on the leaves that OLD and NEW have in common.

    OLD and NEW are copies of a bridge set, or the same run for two judges of it. Says whether runs
    of both may share a table; exit 0 where they may, else 1.
    """
    require_packages("gta judge drift", "scipy", extra="report")
    from gta_bench.judge_quality.paired_judges import MARGIN, drift_table, pair_judges
    from gta_bench.judge_quality.paired_judges import drift as compare

    before, after = (read_verdicts(Path(run)) for run in (old, new))
    first = _chosen(before, old, judges[:1])
    second = _chosen(after, new, judges[1:2] or (judges[:1] if old != new else ()), besides=first)
    pairs = pair_judges(before.values(), first, after.values(), second)
    if not pairs.leaves:
        raise UsageError(
            "No leaf has a score of both on the same evidence; `gta judge bridge` makes a set."
        )
    found = compare(
        pairs,
        _units(old),
        names=(first, second),
        threshold=read_settings(config_path(context.obj)).settings.judge.leaf_threshold,
        margin=MARGIN if margin is None else margin,
    )
    if as_json:
        write_json(found.model_dump(mode="json"))
    else:
        write_table(drift_table(found), (0,))
        say(
            f"{second} against {first}: {counted(found.leaves, 'leaf', 'leaves')} of "
            f"{counted(found.tasks, 'task')}, {found.left_out} left out; "
            f"{with_interval(found.flips, factor=100)} % of them pass by one only."
        )
        say(
            f"Agreement (95 %): kappa of scores {with_interval(found.kappa)}, AC1 of passed or not "
            f"{with_interval(found.ac1)}."
        )
        for one in (*read_judges(Path(old)).of(first), *read_judges(Path(new)).of(second)):
            say(f"{one.name}: {one.digest[:12]}, asked {one.first:{DAY}} to {one.last:{DAY}}")
        if not found.same_prompts:
            say("Their prompts differ.")
        say(f"{found.sharing}: {WORDS[found.sharing]}")
    context.exit(0 if found.sharing == "yes" else 1)


@click.command()
@click.argument("run", type=RUN)
@click.option("--cheap", required=True, help="The judge of RUN that would be asked first.")
@click.option("--strong", required=True, help="The one asked near the threshold.")
@click.option("--band", "bands", multiple=True, type=click.FloatRange(0, 10), help="How near.")
@click.option(
    "--error",
    "limit",
    type=click.FloatRange(0, 100),
    help="Percent of outcomes that may not be the strong judge's; 5.",
)
@json_option
@click.pass_obj
def cascade(
    config_file: str | None,
    run: str,
    cheap: str,
    strong: str,
    bands: tuple[float, ...],
    limit: float | None,
    as_json: bool,
) -> None:
    """What a cascade of two judges would save, and cost in error, from their verdicts on RUN.

    The cheap judge scores every leaf, the strong one those within BAND of the threshold and those
    that the cheap one leaves unscored; every repeat is a run of its own. Scores are those of the
    cascade minus those of the strong judge alone. The last row is the narrowest band within
    --error, and its figures are out of fold: chosen on nine tenths of the tasks, taken on the rest.
    """
    require_packages("gta judge cascade", "scipy", extra="report")
    from gta_bench.judge_quality.cascade import (
        BANDS,
        LIMIT,
        cascade_remarks,
        cascade_table,
        draw_verdicts,
        simulate_cascade,
    )

    rows = read_verdicts(Path(run))
    for name in (cheap, strong):
        _chosen(rows, run, (name,))
    draws = draw_verdicts(rows.values(), cheap, strong)
    if not any(draw.cheap is not None and draw.strong is not None for draw in draws.draws):
        raise UsageError(f"{cheap} and {strong} have no scored leaf in common in {run}.")
    settings = read_settings(config_path(config_file)).settings
    found = simulate_cascade(
        draws,
        _units(run),
        threshold=settings.judge.leaf_threshold,
        bands=bands or BANDS,
        limit=LIMIT if limit is None else limit,
    )
    if as_json:
        write_json(found.model_dump(mode="json"))
        return
    write_table(cascade_table(found), ())
    for remark in cascade_remarks(found):
        say(remark)


def _chosen(
    rows: Mapping[VerdictKey, VerdictRow], run: str, names: Sequence[str], besides: str = ""
) -> str:
    """The judge that is named, or the only other one."""
    known = sorted({key.judge for key in rows})
    if names:
        if names[0] not in known:
            listed = ", ".join(known) or "none"
            raise UsageError(f"No judge {names[0]!r} in {run}. Known judges: {listed}.")
        return names[0]
    others = [name for name in known if name != besides] or known
    if len(others) != 1:
        listed = ", ".join(known) or "none"
        raise UsageError(f"Say which judge of {run} with --judge. Known judges: {listed}.")
    return others[0]


def _units(run: str) -> list[WorkflowUnit]:
    from gta_bench.runs.logs import read_units

    folder = Path(run)
    manifest = read_manifest(folder)
    return list(
        read_units(
            log_folder(folder), manifest.spec.tasks, manifest.spec.epochs, WorkflowUnit
        ).units
    )
