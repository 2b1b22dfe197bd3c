"""`gta judge calibrate|list|bridge|drift|cascade`: a judge against people and other judges."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from gta_bench.cli.options import FOLDER, NEW_FOLDER, command_settings, json_option
from gta_bench.cli.output import say, write_json, write_table
from gta_bench.errors import UsageError, format_count
from gta_bench.metrics.labels import People, combine_labels, find_disputed_leaves
from gta_bench.packages import require_packages
from gta_bench.records.checks import CHECK
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import VerdictKey, VerdictRow
from gta_bench.records.workflow_scores import JudgeScores, WorkflowScores
from gta_bench.reports.tables import Table, with_interval
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.labels import read_adjudication, require_labels
from gta_bench.runs.verdicts import read_judges, read_verdicts
from gta_bench.settings import Settings

DAY = "%Y-%m-%d"
SHARING = {
    "yes": "Runs of both judges can share a table: the difference is within the margin.",
    "no": "Runs of both judges must not share a table: judge the old runs again, or start a new "
    "table.",
    "unknown": "It is unknown whether runs of both judges can share a table: the bridge set is "
    "too small.",
}
CORRECTED_WORDS = (0, 1, 6)


@click.command()
@click.argument("run", type=FOLDER)
@click.option("--out", required=True, type=NEW_FOLDER, help="Folder for the bridge set.")
@click.option(
    "--tasks", "count", type=click.IntRange(1), show_default="all", help="Number of tasks to copy."
)
@click.option("--seed", default=0, help="Seed for the random choice of tasks.")
def bridge(run: Path, out: Path, count: int | None, seed: int) -> None:
    """Copy deliverables of RUN, without verdicts, as a bridge set to compare judges on.

    Copy the set once for each date. Judge each copy with `gta score SET --judge MODEL`, then
    compare them with `gta judge drift`.
    """
    from gta_bench.judge_quality.judge_runs import make_bridge

    leaves = format_count(make_bridge(run, out, count=count, seed=seed), "leaf", "leaves")
    say(f"Copied {leaves} to {out}. Next: gta score {out} --judge MODEL")


@click.command("list")
@click.argument("run", type=FOLDER)
@json_option
def list_judges(run: Path, as_json: bool) -> None:
    """List the judges that scored RUN: name, digest of the full configuration, dates."""
    found = read_judges(run).judges
    if as_json:
        write_json([one.model_dump(mode="json") for one in found])
        return
    rows = tuple(
        (one.name, one.digest[:12], one.prompts[:12], f"{one.first:{DAY}}", f"{one.last:{DAY}}")
        for one in found
    )
    write_table(Table(("judge", "digest", "prompts", "first asked", "last asked"), rows), (0, 1, 2))


@click.command()
@click.argument("old", type=FOLDER)
@click.argument("new", type=FOLDER)
@click.option(
    "--judge",
    "judges",
    multiple=True,
    show_default="the only judge of each",
    help="The judge in OLD; a second --judge names the one in NEW.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0),
    show_default="0.5",
    help="Largest acceptable change of Root Score, in points.",
)
@json_option
def drift(
    old: Path, new: Path, judges: tuple[str, ...], margin: float | None, as_json: bool
) -> None:
    """Compare two judges, or one judge at two dates, on the leaves that OLD and NEW share.

    OLD and NEW are copies of a bridge set (`gta judge bridge`), or the same run twice to compare
    two of its judges. Says whether runs of both can share a table; exits with 0 if they can,
    otherwise with 1.
    """
    require_packages("gta judge drift", "scipy", extra="report")
    from gta_bench.judge_quality.paired_judges import MARGIN, drift_table, pair_judges
    from gta_bench.judge_quality.paired_judges import drift as measure_drift

    before, after = read_verdicts(old), read_verdicts(new)
    first = _find_judge(before, old, judges[:1])
    names = judges[1:2] or (judges[:1] if old != new else ())
    second = _find_judge(after, new, names, besides=first)
    pairs = pair_judges(before.values(), first, after.values(), second)
    if not pairs.leaves:
        raise UsageError(
            f"{first} and {second} have no scored leaf with the same evidence in common: make a "
            "set with `gta judge bridge` and let both judge it."
        )
    found = measure_drift(
        pairs,
        _read_units(old),
        names=(first, second),
        threshold=command_settings().judge.leaf_threshold,
        margin=MARGIN if margin is None else margin,
    )
    if as_json:
        write_json(found.model_dump(mode="json"))
    else:
        write_table(drift_table(found), (0,))
        say(
            f"{second} against {first}: {format_count(found.leaves, 'leaf', 'leaves')} of "
            f"{format_count(found.tasks, 'task')}, {found.left_out} left out; "
            f"{with_interval(found.flips, factor=100)} % of them pass with one judge only."
        )
        say(
            f"Agreement (95 %): kappa of the scores {with_interval(found.kappa)}, AC1 of pass or "
            f"fail {with_interval(found.ac1)}."
        )
        for one in (*read_judges(old).of(first), *read_judges(new).of(second)):
            say(f"{one.name}: {one.digest[:12]}, asked {one.first:{DAY}} to {one.last:{DAY}}")
        if not found.same_prompts:
            say("Their prompts differ.")
        say(SHARING[found.sharing])
    raise click.exceptions.Exit(0 if found.sharing == "yes" else 1)


@click.command()
@click.argument("run", type=FOLDER)
@click.option("--cheap", required=True, help="The judge of RUN that would be asked first.")
@click.option("--strong", required=True, help="The judge of RUN that would be asked second.")
@click.option(
    "--band",
    "bands",
    multiple=True,
    type=click.FloatRange(0, 10),
    show_default="0, 0.5, 1, 1.5, 2, 3 and 4",
    help="Ask the strong judge if the cheap one's score is within this many points of the "
    "threshold; repeatable.",
)
@click.option(
    "--error",
    "limit",
    type=click.FloatRange(0, 100),
    show_default="5",
    help="Largest acceptable percentage of outcomes that differ from the strong judge's.",
)
@json_option
def cascade(
    run: Path,
    cheap: str,
    strong: str,
    bands: tuple[float, ...],
    limit: float | None,
    as_json: bool,
) -> None:
    """Estimate what a cascade of two judges would save and cost, from their verdicts on RUN.

    The cheap judge scores every leaf; the strong judge scores those within BAND of the threshold
    and those that the cheap one leaves unscored. Each repeat counts as a run of its own. Scores
    are those of the cascade minus those of the strong judge alone. The last row is the narrowest
    band within --error; its figures are cross-validated: the band is chosen on nine tenths of the
    tasks and measured on the rest. Next: `gta score RUN --judge CHEAP --judge STRONG --cascade
    BAND`.
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

    rows = read_verdicts(run)
    for name in (cheap, strong):
        _find_judge(rows, run, (name,))
    draws = draw_verdicts(rows.values(), cheap, strong)
    if not any(draw.cheap is not None and draw.strong is not None for draw in draws.draws):
        raise UsageError(
            f"{cheap} and {strong} have no scored leaf in common in {run}: judge it with both by "
            f"`gta score {run} --judge MODEL`."
        )
    found = simulate_cascade(
        draws,
        _read_units(run),
        threshold=command_settings().judge.leaf_threshold,
        bands=bands or BANDS,
        limit=LIMIT if limit is None else limit,
    )
    if as_json:
        write_json(found.model_dump(mode="json"))
        return
    write_table(cascade_table(found), ())
    for remark in cascade_remarks(found):
        say(remark)


def _find_judge(
    rows: Mapping[VerdictKey, VerdictRow], run: Path, names: Sequence[str], besides: str = ""
) -> str:
    """Return the judge that is named, or the only judge other than `besides`."""
    known = sorted({key.judge for key in rows})
    if not known:
        raise UsageError(f"No judge has scored {run}: run `gta score {run} --judge MODEL`.")
    listed = ", ".join(known) or "none"
    if names:
        if names[0] not in known:
            raise UsageError(f"No judge {names[0]!r} in {run}. Known judges: {listed}.")
        return names[0]
    asked = [name for name in known if name != CHECK] or known
    others = [name for name in asked if name != besides] or asked
    if len(others) != 1:
        raise UsageError(f"Choose a judge of {run} with --judge. Known judges: {listed}.")
    return others[0]


def _read_units(run: Path) -> tuple[WorkflowUnit, ...]:
    from gta_bench.runs.logs import read_units

    spec = read_manifest(run).spec
    return read_units(log_folder(run), spec.tasks, spec.epochs, WorkflowUnit).units


class _LabeledRun(NamedTuple):
    """A run with the scores of its judges and the labels of people."""

    path: Path
    scores: WorkflowScores
    people: People
    units: tuple[WorkflowUnit, ...]

    def judges(self, names: tuple[str, ...]) -> dict[str, JudgeScores]:
        """Return the judges with these names, or all judges if there are no names."""
        known = {table.judge: table for table in self.scores.judges}
        if unknown := [name for name in names if name not in known]:
            raise UsageError(
                f"No judge {unknown[0]!r} in {self.path}. Known judges: {', '.join(known)}."
            )
        return {name: known[name] for name in names or known}

    def say_unscored(self, judge: str) -> None:
        """Say how many leaves the judge did not score, if there are any."""
        (table,) = (one for one in self.scores.judges if one.judge == judge)
        leaves = {
            (task.task, task.epoch, leaf.leaf): leaf.value
            for task in table.tasks
            for leaf in task.leaves
        }
        missing = [key for key, value in leaves.items() if value is None]
        if missing:
            labeled = sum(key in self.people.settled for key in missing)
            say(
                f"{judge} has no score for {len(missing)} of "
                f"{format_count(len(leaves), 'leaf', 'leaves')} of {self.path}, {labeled} of them "
                "labeled; its scores, raw and corrected, are over the other leaves."
            )


@click.command()
@click.argument("run", type=FOLDER)
@click.option(
    "--judge", "judges", multiple=True, show_default="all", help="Only this judge; repeatable."
)
@click.option(
    "--against",
    type=FOLDER,
    help="Another labeled run on the same tasks: print the corrected difference RUN minus this "
    "one.",
)
@json_option
def calibrate(run: Path, judges: tuple[str, ...], against: Path | None, as_json: bool) -> None:
    """Compare the judges of RUN with the people who labeled it (`gta judge label`).

    Prints how often each judge is right, its bias by category and kind of file, and its success
    rates, raw and corrected by the labeled tasks (prediction-powered inference). With --against,
    prints the difference between two systems, each corrected by its own labels, because a judge
    may favor one of them.
    """
    require_packages("gta judge calibrate", "scipy", extra="report")
    settings = command_settings()
    first = _read_labeled(run, settings)
    if against is not None:
        _compare(first, _read_labeled(against, settings), judges, as_json)
        return
    from gta_bench.judge_quality.calibration import bias_table, correction_table, figure_table
    from gta_bench.judge_quality.calibration import calibrate as compare

    compared = [
        compare(judge, first.people, first.units, first.scores)
        for judge in first.judges(judges).values()
    ]
    found = [one for one in compared if one is not None]
    if not found:
        raise UsageError(
            f"No judge of {run} has scored a labeled leaf: run `gta score {run} --judge MODEL`."
        )
    for one in found:
        first.say_unscored(one.judge)
    if as_json:
        write_json([one.model_dump(mode="json") for one in found])
        return
    write_table(figure_table(found), (0,))
    click.echo("\nScores, raw and corrected by people")
    write_table(correction_table({one.judge: one.scores for one in found}), CORRECTED_WORDS)
    click.echo("\nBias: points by which the judge is above people")
    write_table(bias_table(found), (0, 1, 2))


def _compare(
    first: _LabeledRun, second: _LabeledRun, judges: tuple[str, ...], as_json: bool
) -> None:
    """Print the difference between two runs for each judge that scored both."""
    from gta_bench.judge_quality.calibration import (
        collect_judged_parts,
        correct_differences,
        correction_table,
    )

    ones, twos = first.judges(judges), second.judges(judges)
    found = {}
    for name in (one for one in ones if one in twos):
        parts = [
            collect_judged_parts(own, run.people, run.units, run.scores)
            for own, run in ((ones[name], first), (twos[name], second))
        ]
        if scores := tuple(correct_differences(*parts)):
            found[name] = scores
            first.say_unscored(name)
            second.say_unscored(name)
    if not found:
        raise UsageError(
            f"No judge has scored labeled leaves of the same tasks in both {first.path} and "
            f"{second.path}: run `gta score RUN --judge MODEL` for both."
        )
    if as_json:
        write_json(
            {name: [one.model_dump(mode="json") for one in own] for name, own in found.items()}
        )
        return
    click.echo(f"{first.path} minus {second.path}, raw and corrected by people")
    write_table(correction_table(found), CORRECTED_WORDS)


def _read_labeled(run: Path, settings: Settings) -> _LabeledRun:
    from gta_bench.runs.scoring import score_workflow_run

    raters = require_labels(run)
    scores = score_workflow_run(run, settings)
    people = combine_labels(raters, read_adjudication(run), scores.leaf_threshold)
    disputed = set(find_disputed_leaves(raters, scores.leaf_threshold)) - set(people.settled)
    if disputed:
        leaves = format_count(len(disputed), "disputed leaf", "disputed leaves")
        say(f"{leaves} left out; settle them on the page of `gta judge label {run}`.")
    if not people.settled:
        raise UsageError(f"{run} has no usable label: run `gta judge label {run}`.")
    return _LabeledRun(run, scores, people, _read_units(run))
