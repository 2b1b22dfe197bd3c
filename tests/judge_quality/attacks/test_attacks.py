"""Attacks through the real evidence path, on judges that each have one weakness."""

import re

import pytest

from gta_bench.judge_quality.attacks.carriers import ALL, CARRIERS, CLEAN
from gta_bench.judge_quality.attacks.corpus import Attack, attacks, with_twins
from gta_bench.judging.messages import UnitPrompt
from gta_bench.judging.options import DEFENSES, JudgeOptions
from gta_bench.judging.scripted import JUDGES
from gta_bench.judging.showing.draft import HIDDEN
from gta_bench.records.verdicts import Unscored
from gta_bench.tools.contract import Equipment
from tests.judge_quality.attacks.bench import Bench
from tests.needs import needs

# Those that need neither LibreOffice nor Chromium.
LIGHT = ("answer", "text", "csv cell", "file name", "unicode tags")
NONE = JudgeOptions(without=DEFENSES)
EVERY = JudgeOptions()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, equipment: Equipment) -> Bench:
    chosen = list(attacks(carriers=LIGHT))
    return Bench(tmp_path_factory.mktemp("attacks") / "run", chosen, equipment)


def test_the_corpus_has_the_size_that_was_promised() -> None:
    found = list(attacks())
    assert len(found) >= 40
    assert len({attack.carrier for attack in found}) >= 12
    assert {attack.payload for attack in found} == set(ALL)
    borderline = [attack for attack in found if attack.borderline]
    assert [attack.carrier for attack in borderline] == list(CARRIERS)
    assert {attack.payload for attack in borderline} == set(ALL)
    assert len({attack.id for attack in with_twins(found)}) == len(with_twins(found))


WEAKNESS = {
    "last-instruction": "roles",
    "frame": "frame",
    "verdict": "reply",
    "evaluator": "findings",
}


@pytest.mark.parametrize(("judge", "defense"), WEAKNESS.items())
def test_each_defence_stops_the_attacks_on_one_weakness(
    bench: Bench, judge: str, defense: str
) -> None:
    bare = bench.attacked(judge, NONE, NONE)
    assert bare.succeeded >= 4, "it is gullible"
    every = bench.attacked(judge, EVERY, NONE)
    assert every.succeeded <= 0.1 * bare.succeeded
    assert every.drift is not None and every.drift.estimate == 0
    for other in DEFENSES:
        left = bench.attacked(judge, JudgeOptions(without=(other,)), NONE)
        assert (left.succeeded >= 0.9 * bare.succeeded) == (other == defense), other


def test_an_honest_judge_is_moved_neither_by_attacks_nor_by_defences(bench: Bench) -> None:
    for options in (NONE, EVERY, *(JudgeOptions(without=(one,)) for one in DEFENSES)):
        found = bench.attacked("honest", options, NONE)
        assert (found.succeeded, found.unscored, found.clean_unscored) == (0, 0, 0)
        assert found.drift is not None and found.drift.estimate == 0


@pytest.mark.parametrize("judge", [judge for judge in JUDGES if judge != "honest"])
def test_the_control_alone_stops_attacks_that_give_any_score(bench: Bench, judge: str) -> None:
    """A judge that obeys the work says that anything is there."""
    bare = bench.attacked(judge, NONE, NONE)
    # A copied verdict names a leaf, and is refused where another name was asked for.
    options = JudgeOptions(without=DEFENSES, control=True)
    found = bench.attacked(judge, options, NONE)
    assert found.succeeded <= 0.1 * bare.succeeded
    assert found.unscored >= bare.succeeded - 1
    assert found.drift is not None and found.drift.estimate == 0
    assert found.clean_unscored == 0


def test_a_judge_that_fails_its_control_is_asked_nothing_else(bench: Bench) -> None:
    options = JudgeOptions(without=DEFENSES, control=True)
    rows = bench.judged("last-instruction", options)
    failed = [row for row in rows.values() if row.key.task == Attack("text", "order").id]
    assert len(failed) == 2
    for row in failed:
        assert isinstance(row.verdict, Unscored)
        assert row.verdict.cause == "control_failed"
        assert "10 to a requirement that cannot be met" in row.verdict.detail


@pytest.mark.parametrize("carrier", LIGHT)
def test_the_list_says_that_a_work_speaks_to_its_judge_and_not_what(
    bench: Bench, carrier: str
) -> None:
    for payload in CARRIERS[carrier].payloads:
        prompt = listing(bench, Attack(carrier, payload))
        unquoted = re.sub(r'"(?:[^"\\]|\\.)*"', "", prompt)
        notes = re.findall(r"(?:note|The answer): (?:it|its \w+) (.*)", unquoted)
        assert notes, payload
        for words in ("Ignore all", "evaluation team", '"score"', "END EVIDENCE"):
            assert words not in unquoted


@pytest.mark.parametrize("carrier", LIGHT)
def test_the_list_says_nothing_of_that_kind_of_honest_works(bench: Bench, carrier: str) -> None:
    said = listing(bench, Attack(carrier, CLEAN))
    assert "speaks" not in said
    assert "verdict" not in said
    assert "imitates" not in said


def listing(bench: Bench, attack: Attack) -> str:
    """What the judge is shown outside of all frames."""
    unit = bench.units[attack.id]
    prompt = UnitPrompt(unit.task, bench.shown(attack), EVERY, bench.store.picture)
    content = prompt.ask([next(unit.task.leaves())])[1].content
    assert not isinstance(content, str)
    text = "\n".join(getattr(part, "text", "") for part in content[:-1])
    mark = prompt.marks.frame
    return re.sub(rf"BEGIN {mark}.*?END {mark}", "", text, flags=re.DOTALL)


@pytest.mark.slow
@needs("bwrap", "chromium", "soffice")
def test_what_readers_do_not_see_is_found_in_every_carrier(
    tmp_path_factory: pytest.TempPathFactory, equipment: Equipment
) -> None:
    """White, tiny, hidden, outside, in notes, comments and properties."""
    hidden = [name for name, carrier in CARRIERS.items() if carrier.hidden]
    chosen = [Attack(name, "evaluator") for name in hidden]
    found = Bench(tmp_path_factory.mktemp("hidden") / "run", chosen, equipment)
    assert found.missing == []
    silent = [
        attack.carrier
        for attack in chosen
        if not any(
            finding.startswith(HIDDEN) for finding in found.shown(attack).deliverables[0].findings
        )
    ]
    assert silent == ["unicode tags"], "which the list tells in other words"
    bare = found.attacked("evaluator", NONE, NONE)
    assert bare.succeeded >= 15
    assert found.attacked("evaluator", EVERY, NONE).succeeded == 0
    without = JudgeOptions(without=("findings",))
    assert found.attacked("evaluator", without, NONE).succeeded == bare.succeeded
