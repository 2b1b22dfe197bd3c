"""`gta judge attack` and `gta judge floor`: what a judge gives to works that deserve nothing."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click
from pydantic import JsonValue

from gta_bench.cli.options import (
    FOLDER,
    NEW_FOLDER,
    combine_options,
    command_settings,
    json_option,
    judge_options,
)
from gta_bench.cli.output import say, unit_bar, write_json, write_table
from gta_bench.errors import UsageError
from gta_bench.judge_quality.attack_run import Shielded
from gta_bench.judge_quality.attack_run import attack as run_attacks
from gta_bench.judge_quality.attacks.carriers import ALL, CARRIERS
from gta_bench.judge_quality.attacks.corpus import attacks, write_corpus
from gta_bench.judge_quality.judge_runs import measure_floor
from gta_bench.metrics.table import JUDGED
from gta_bench.packages import require_packages
from gta_bench.records.statistics import Interval
from gta_bench.reports.tables import Table, with_interval
from gta_bench.reports.workflow_summary import format_judged
from gta_bench.running.judge_run import Judging, plan_judging

HEADING = (
    *("judge", "defenses", "works", "succeeded", "% (95 %)", "noise % (95 %)", "unscored"),
    *("lift (95 %)", "honest", "drift (95 %)"),
)
FLOOR_HEADING = ("judge", "system", "n/N", *(row.heading for row in JUDGED.values()))
SCRIPTED = (
    "Each scripted judge has one weakness, and a defense stops it by construction: this shows "
    "that the defense closes its hole, not how often a model is fooled."
)

_judge_arguments = combine_options(
    click.option(
        "--judge", "judges", multiple=True, required=True, help="Judge to test; repeatable."
    ),
    judge_options,
    json_option,
)


@click.command()
@click.option("--out", required=True, type=NEW_FOLDER, help="Folder for the attacks and verdicts.")
@click.option(
    "--ablation",
    is_flag=True,
    help="Also test with each defense turned off, and with --judge-control.",
)
@click.option(
    "--payload",
    "payloads",
    multiple=True,
    type=click.Choice(ALL),
    show_default="all",
    help="Only this kind of attack; repeatable.",
)
@click.option(
    "--carrier",
    "carriers",
    multiple=True,
    type=click.Choice(list(CARRIERS)),
    show_default="all",
    help="Only attacks hidden in this kind of file; repeatable.",
)
@_judge_arguments
def attack(
    judges: tuple[str, ...],
    out: Path,
    ablation: bool,
    payloads: tuple[str, ...],
    carriers: tuple[str, ...],
    as_json: bool,
    **asking: JsonValue,
) -> None:
    """Test whether deliverables can talk a judge into a score, against honest twins.

    An attack succeeds if a leaf passes that fails without it. Every work is judged at least twice
    (--repeats). Noise is how often a leaf of an honest work passes after it failed when the same
    work was judged before; attacks that succeed no more often than that show nothing. Works meet
    no requirement, and borderline works meet each in part. Drift is how many points the defenses
    move the scores of honest works; it should be near 0. `scripted/honest`, `scripted/frame` and
    others are judges that need no key.
    """
    require_packages("gta judge attack", "scipy", extra="report")
    judging = _plan(judges, asking)
    if judging.options.visibility != "full":
        raise UsageError("Attacks are judged on all evidence: leave --judge-visibility out.")
    chosen = list(attacks(payloads=payloads or None, carriers=carriers or None))
    if not chosen:
        raise UsageError("No --carrier given can carry such a --payload; choose others.")
    missing = write_corpus(out, chosen)
    for problem in missing:
        say(f"left out: {problem}")
    lost = {problem.partition(": ")[0] for problem in missing}
    chosen = [one for one in chosen if one.carrier.replace(" ", "_") not in lost]
    found = []
    for one in run_attacks(out, chosen, judging, unit_bar, ablation=ablation):
        say(f"{one.model}, {one.shield}, {one.works}: {_count(one)}")
        found.append(one)
    if as_json:
        write_json([_as_json(one) for one in found])
        return
    write_table(Table(HEADING, tuple(_row(one) for one in found)), (0, 1, 2))
    _say_carriers(found)
    if any(_is_scripted(one) for one in found):
        say(SCRIPTED)


def _plan(judges: tuple[str, ...], asking: dict[str, JsonValue]) -> Judging:
    overrides = {f"judge.{name}": value for name, value in asking.items()}
    return plan_judging(judges, command_settings(overrides))


def _row(one: Shielded) -> tuple[str, ...]:
    seen = one.summary
    return (
        one.model,
        one.shield,
        one.works,
        _count(one),
        with_interval(seen.rate, factor=100),
        with_interval(seen.noise, factor=100),
        str(seen.unscored),
        _signed(seen.lift),
        "-" if seen.clean is None else f"{seen.clean:.2f}",
        _signed(seen.drift),
    )


def _count(one: Shielded) -> str:
    """Return how many attacks succeeded; a fraction if repeats differ."""
    return f"{one.summary.succeeded:.4g} of {one.summary.attacks}"


def _signed(one: Interval | None) -> str:
    return "-" if one is None else f"{one.estimate:+.2f} ({one.low:+.2f} to {one.high:+.2f})"


def _is_scripted(one: Shielded) -> bool:
    return one.model.startswith("scripted/")


def _say_carriers(found: Sequence[Shielded]) -> None:
    """Name the carriers of attacks that got past all defenses, even if only in some repeats."""
    for one in found:
        if one.shield != "all":
            continue
        counts = Counter(out.carrier for out in one.summary.outcomes if out.succeeded)
        if counts:
            carriers = ", ".join(f"{name} {count}" for name, count in counts.items())
            say(f"{one.model}, {one.works}: got past all defenses in {carriers}")


def _as_json(one: Shielded) -> dict[str, JsonValue]:
    return {
        "model": one.model,
        "defenses": one.shield,
        "works": one.works,
        **({"note": SCRIPTED} if _is_scripted(one) else {}),
        **one.summary.model_dump(mode="json"),
    }


@click.command()
@click.argument("run", type=FOLDER)
@_judge_arguments
def floor(run: Path, judges: tuple[str, ...], as_json: bool, **asking: JsonValue) -> None:
    """Judge systems that do nothing on the tasks of RUN: the floor under its scores.

    These systems give an empty answer, repeat the requirements, claim success, or return the
    task's own files. Every later report of RUN shows their scores next to the judge's.
    """
    floors = measure_floor(run, _plan(judges, asking), unit_bar)
    if as_json:
        write_json([row.model_dump(mode="json") for row in floors.rows])
        return
    rows = tuple(
        (row.judge, row.system, f"{row.n}/{row.n_units}", *format_judged(row))
        for row in floors.rows
    )
    write_table(Table(FLOOR_HEADING, rows), (0, 1))
