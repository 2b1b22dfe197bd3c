"""`gta judge calibrate`: the judges of a run against people's labels."""

from pathlib import Path
from typing import NamedTuple

import click

from gta_bench.cli.options import config_path, json_option
from gta_bench.cli.output import say, write_json, write_table
from gta_bench.errors import UsageError, counted
from gta_bench.metrics.labels import People, agreed_labels, disputed_leaves
from gta_bench.packages import require_packages
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.workflow_scores import JudgeScores, WorkflowScores
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.labels import read_adjudication, read_labels
from gta_bench.settings import Settings, read_settings

RUN = click.Path(exists=True, file_okay=False)


class _Labelled(NamedTuple):
    """A run with what its judges and people said."""

    name: str
    scores: WorkflowScores
    people: People
    units: tuple[WorkflowUnit, ...]

    def judges(self, names: tuple[str, ...]) -> dict[str, JudgeScores]:
        """The judges with these names, all unless there is one."""
        known = {table.judge: table for table in self.scores.judges}
        if unknown := [name for name in names if name not in known]:
            raise UsageError(
                f"No judge {unknown[0]!r} in {self.name}. Known judges: {', '.join(known)}."
            )
        return {name: known[name] for name in names or known}

    def say_unscored(self, judge: str) -> None:
        """Say of which leaves a judge's scores are not, if they are not of all."""
        (table,) = (one for one in self.scores.judges if one.judge == judge)
        places = [
            ((task.task, task.epoch, leaf.leaf), leaf.value)
            for task in table.tasks
            for leaf in task.leaves
        ]
        missing = [place for place, value in places if value is None]
        if missing:
            lost = sum(place in self.people.settled for place in missing)
            every = counted(len(places), "leaf", "leaves")
            say(
                f"{judge} has no score for {len(missing)} of {every} of {self.name}, {lost} of "
                "them labelled: its scores, raw and corrected, are those of the others."
            )


@click.command()
@click.argument("run", type=RUN)
@click.option("--judge", "judges", multiple=True, help="Only this judge of the run.")
@click.option(
    "--against",
    type=RUN,
    help="Another labelled run on the same tasks: print RUN minus this one, corrected.",
)
@json_option
@click.pass_obj
def calibrate(
    config_file: str | None, run: str, judges: tuple[str, ...], against: str | None, as_json: bool
) -> None:
    """Set the judges of RUN against the people who labelled it (`gta judge label`).

    How often a judge is right, how it leans by category and kind of file, and its success rates
    corrected by the labelled tasks (prediction-powered inference) beside the raw ones. With
    --against, the difference of two systems, each corrected by its own labels: a judge may favor
    one.
    """
    require_packages("gta judge calibrate", "scipy", extra="report")
    settings = read_settings(config_path(config_file)).settings
    first = _read(run, settings)
    if against is not None:
        _compare(first, _read(against, settings), judges, as_json)
        return
    from gta_bench.judge_quality.calibration import bias_table, corrected_table, figure_table
    from gta_bench.judge_quality.calibration import calibrate as compare

    compared = [
        compare(judge, first.people, first.units, first.scores)
        for judge in first.judges(judges).values()
    ]
    found = [one for one in compared if one is not None]
    if not found:
        raise UsageError(f"No judge of {run} scored a labelled leaf: `gta score {run} --judge M`.")
    for one in found:
        first.say_unscored(one.judge)
    if as_json:
        write_json([one.model_dump(mode="json") for one in found])
        return
    write_table(figure_table(found), (0,))
    corrected = corrected_table({one.judge: one.scores for one in found})
    for title, table, words_ in (
        ("Scores, raw and corrected by people", corrected, (0, 1, 6)),
        ("By how many points the judge is above people", bias_table(found), (0, 1, 2)),
    ):
        click.echo(f"\n{title}")
        write_table(table, words_)


def _compare(first: _Labelled, second: _Labelled, judges: tuple[str, ...], as_json: bool) -> None:
    """Print what the judges that both runs have say of the difference, and what people would."""
    from gta_bench.judge_quality.calibration import (
        corrected_differences,
        corrected_table,
        judged_parts,
    )

    ones, twos = first.judges(judges), second.judges(judges)
    found = {}
    for name in (one for one in ones if one in twos):
        parts = [
            judged_parts(own, run.people, run.units, run.scores)
            for own, run in ((ones[name], first), (twos[name], second))
        ]
        if scores := tuple(corrected_differences(*parts)):
            found[name] = scores
            first.say_unscored(name)
            second.say_unscored(name)
    if not found:
        raise UsageError(
            f"No judge scored labelled leaves of both {first.name} and {second.name} on the same "
            "tasks: `gta score RUN --judge M`."
        )
    if as_json:
        write_json(
            {name: [one.model_dump(mode="json") for one in own] for name, own in found.items()}
        )
        return
    click.echo(f"{first.name} minus {second.name}, raw and corrected by people")
    write_table(corrected_table(found), (0, 1, 6))


def _read(run: str, settings: Settings) -> _Labelled:
    from gta_bench.runs.logs import read_units
    from gta_bench.runs.scoring import score_workflow_run

    folder = Path(run)
    raters, words = read_labels(folder), read_adjudication(folder)
    if not raters:
        raise UsageError(f"{run} has no labels yet: `gta judge label {run}`.")
    scores = score_workflow_run(folder, settings)
    people = agreed_labels(raters, words, scores.leaf_threshold)
    disputed = set(disputed_leaves(raters, scores.leaf_threshold)) - set(people.settled)
    if disputed:
        leaves = counted(len(disputed), "disputed leaf", "disputed leaves")
        say(f"{leaves} left out; the label page settles them.")
    if not people.settled:
        raise UsageError(f"{run} has no label that counts: `gta judge label {run}`.")
    spec = read_manifest(folder).spec
    units = read_units(log_folder(folder), spec.tasks, spec.epochs, WorkflowUnit).units
    return _Labelled(run, scores, people, tuple(units))
