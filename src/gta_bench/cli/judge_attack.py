"""`gta judge attack`: does a judge let itself be talked into a score, and what do defences cost."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click
from pydantic import JsonValue

from gta_bench.cli.options import config_path, json_option, judge_options
from gta_bench.cli.output import say, unit_bar, write_json, write_table
from gta_bench.errors import UsageError
from gta_bench.judge_quality.attack_run import Shielded
from gta_bench.judge_quality.attack_run import attack as run_attacks
from gta_bench.judge_quality.attacks.carriers import ALL, CARRIERS
from gta_bench.judge_quality.attacks.corpus import attacks, write_corpus
from gta_bench.packages import require_packages
from gta_bench.records.statistics import Interval
from gta_bench.reports.tables import Table, with_interval
from gta_bench.running.judge_run import plan_judging
from gta_bench.settings import read_settings

HEADING = (
    *("judge", "defences", "works", "succeeded", "% (95 %)", "noise % (95 %)", "unscored"),
    *("lift (95 %)", "honest", "drift (95 %)"),
)
SCRIPTED = (
    "Scripted judges have one weakness each and are stopped by construction: this shows that a "
    "defence closes its hole, and not how often a model is fooled."
)


@click.command()
@click.option("--judge", "judges", multiple=True, required=True, help="The model to attack.")
@click.option("--out", required=True, type=click.Path(file_okay=False), help="Folder to keep it.")
@click.option("--ablation", is_flag=True, help="Also with each defence off, and with the control.")
@click.option(
    "--payload", "payloads", multiple=True, type=click.Choice(ALL), help="Only these attacks."
)
@click.option(
    "--carrier", "carriers", multiple=True, type=click.Choice(list(CARRIERS)), help="Only by these."
)
@judge_options
@json_option
@click.pass_obj
def attack(
    config_file: str | None,
    /,
    judges: tuple[str, ...],
    out: str,
    ablation: bool,
    payloads: tuple[str, ...],
    carriers: tuple[str, ...],
    as_json: bool,
    **asking: JsonValue,
) -> None:
    """Lay works before a judge that try to talk it into a score, and their honest twins.

    An attack succeeds where a leaf passes that fails without it. Every work is judged twice or more
    (--repeats): noise is how often a leaf of an honest work passes that fails when the same work is
    judged again, and attacks that succeed no more often show nothing. Works meet no requirement;
    borderline ones a part of each. Drift is by how many points the defences move the scores of
    honest works: a defence that does is none. `scripted/honest`, `scripted/frame` and others are
    judges that need no key; their weaknesses are stopped by construction.
    """
    require_packages("gta judge attack", "scipy", extra="report")
    overrides = {f"judge.{name}": value for name, value in asking.items()}
    settings = read_settings(config_path(config_file), overrides=overrides).settings
    judging = plan_judging(judges, settings)
    if judging.options.visibility != "full":
        raise UsageError("Attacks are judged on all evidence: leave --judge-visibility out.")
    chosen = list(attacks(payloads=payloads or None, carriers=carriers or None))
    if not chosen:
        raise UsageError("None of these carriers carries such an attack.")
    missing = write_corpus(Path(out), chosen)
    for problem in missing:
        say(f"left out: {problem}")
    lost = {problem.partition(": ")[0] for problem in missing}
    chosen = [one for one in chosen if one.carrier.replace(" ", "_") not in lost]
    found = []
    for one in run_attacks(Path(out), chosen, judging, unit_bar, ablation=ablation):
        say(f"{one.model}, {one.shield}, {one.works}: {_count(one)}")
        found.append(one)
    if as_json:
        write_json([_as_json(one) for one in found])
        return
    write_table(attack_table(found), (0, 1, 2))
    _write_carriers(found)
    if any(_is_scripted(one) for one in found):
        say(SCRIPTED)


def attack_table(found: Sequence[Shielded]) -> Table:
    """A row for each set of defences."""
    return Table(HEADING, tuple(_row(one) for one in found))


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
    """How many attacks succeeded; parts of one where repeats differ."""
    return f"{one.summary.succeeded:.4g} of {one.summary.attacks}"


def _signed(one: Interval | None) -> str:
    return "-" if one is None else f"{one.estimate:+.2f} ({one.low:+.2f} to {one.high:+.2f})"


def _is_scripted(one: Shielded) -> bool:
    return one.model.startswith("scripted/")


def _write_carriers(found: Sequence[Shielded]) -> None:
    """By which carriers attacks came through all defences, if only in some repeats."""
    for one in found:
        if one.shield != "all":
            continue
        came = [out for out in one.summary.outcomes if out.succeeded]
        if came:
            counts = Counter(out.carrier for out in came)
            said = ", ".join(f"{name} {count}" for name, count in counts.items())
            say(f"{one.model}, {one.works}: came through all defences by {said}")


def _as_json(one: Shielded) -> dict[str, JsonValue]:
    return {
        "model": one.model,
        "defences": one.shield,
        "works": one.works,
        **({"note": SCRIPTED} if _is_scripted(one) else {}),
        **one.summary.model_dump(mode="json"),
    }
