"""Rules and thresholds, on pilots with known scores."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gta_bench.authoring.lint import lint
from gta_bench.authoring.proofs import AuthoredTask, read_authored
from gta_bench.authoring.readiness import (
    assess,
    describe_readiness,
    read_readiness,
    read_thresholds,
    write_pilot,
)
from gta_bench.authoring.staleness import reader_versions
from gta_bench.authoring.subject import PILOT_FILE
from gta_bench.datasets.digest import task_digests
from gta_bench.judging import prompts
from gta_bench.metrics.strict.workflow import leaf_shares
from gta_bench.records.pilot import LeafTrial, Pilot, Readiness
from gta_bench.settings import Settings
from tests.authoring.folders import TASK, write_authored

LIMITS = read_thresholds(Settings())
Scores = float | tuple[float | None, ...] | None
RIGHT: Mapping[str, Scores] = {"sums": 10, "order": 10, "advice": 10}
NOTHING: Mapping[str, Scores] = {"sums": 0, "order": 0, "advice": 0}
GOOD: Mapping[str, Mapping[str, Scores]] = {
    "gold/plain": RIGHT,
    "gold/wide": RIGHT,
    "wrong/one-sum-off": {**RIGHT, "sums": 0},
    "wrong/swapped": {**RIGHT, "order": 0, "advice": 0},
    "cheat/head-only": NOTHING,
    "null/empty": NOTHING,
}


@pytest.fixture
def authored(tmp_path: Path) -> AuthoredTask:
    return read_authored(write_authored(tmp_path))


def make_pilot(
    authored: AuthoredTask,
    changed: Mapping[str, Mapping[str, Scores]] | None = None,
    **more: Any,
) -> Pilot:
    """A pilot in which every work got what it should, except for what is changed."""
    trials = {
        work: {
            leaf: make_trial(score)
            for leaf, score in {**scores, **(changed or {}).get(work, {})}.items()
        }
        for work, scores in GOOD.items()
    }
    made = Pilot.model_validate(
        {
            "created": datetime(2026, 11, 17, tzinfo=UTC),
            "task": task_digests(authored.dataset, authored.task.id),
            "readers": reader_versions(),
            "trials": trials,
            **more,
        }
    )
    return made.model_copy(update={"rows": made.compute_rows()})


def make_trial(score: Scores) -> LeafTrial:
    if score is None:
        return LeafTrial(by="judge")
    if isinstance(score, tuple):
        return LeafTrial(by="judge", scores=score, check=10.0, reason="seen")
    return LeafTrial(by="check", scores=(score,), reason="found 1, wanted 2")


def rules(found: Readiness) -> list[tuple[str, str, str | None]]:
    return [(one.check, one.file, one.field) for one in found.findings if one.severity == "error"]


def test_a_task_whose_works_get_what_they_should_is_ready(authored: AuthoredTask) -> None:
    found = assess(authored, make_pilot(authored), LIMITS)
    assert (found.state, found.reasons, found.findings) == ("ready", (), ())
    advice, sums, order = found.leaves
    assert (sums.share, order.share, advice.share) == (0.5, 0.25, 0.25)
    assert (sums.gold, sums.floor, sums.hits, sums.wrongs, sums.alarms, sums.intact) == (
        *(10, 0, 1, 1, 0, 1),
    )
    assert advice.intact == 0, "one wrong breaks it, and it needs what the other one breaks"


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"gold/wide": {"order": 0}}, ("T34", "gold/wide", "order")),
        ({"gold/wide": {"order": (10, 3, 4)}}, ("T34", "gold/wide", "order")),
        ({"null/empty": {"advice": 7}}, ("T35", "null/empty", "advice")),
        ({"cheat/head-only": {"sums": 10, "order": 8}}, ("T36", "cheat/head-only", None)),
        ({"wrong/swapped": {"order": 10}}, ("T37", "wrong/swapped", "order")),
        ({"wrong/one-sum-off": {"order": 0}}, ("T37", "wrong/one-sum-off", "order")),
    ],
)
def test_a_work_that_gets_what_it_should_not_breaks_its_rule(
    authored: AuthoredTask, changed: Mapping[str, Mapping[str, Scores]], rule: tuple[str, ...]
) -> None:
    found = assess(authored, make_pilot(authored, changed), LIMITS)
    assert rules(found) == [rule]
    assert (found.state, found.reasons[0]) == ("unchecked", "1 error")


def test_a_wrong_work_may_also_break_what_needs_the_broken_leaf(authored: AuthoredTask) -> None:
    made = make_pilot(authored, {"wrong/one-sum-off": {"advice": 0}})
    assert assess(authored, made, LIMITS).state == "ready"


def test_a_leaf_that_gold_fails_is_no_false_alarm_of_a_wrong_work(authored: AuthoredTask) -> None:
    made = make_pilot(authored, {"gold/plain": {"order": 0}, "wrong/one-sum-off": {"order": 0}})
    assert rules(assess(authored, made, LIMITS)) == [("T34", "gold/plain", "order")]


def test_a_python_check_that_changes_its_mind_is_an_error(authored: AuthoredTask) -> None:
    made = make_pilot(authored, unstable={"null/empty": ("sums",)})
    assert rules(assess(authored, made, LIMITS)) == [("T28", "null/empty", "sums")]


def test_a_leaf_that_no_wrong_work_breaks_is_a_warning(tmp_path: Path) -> None:
    authored = read_authored(write_authored(tmp_path, **{"wrong/swapped/wrong.toml": ORDER_ONLY}))
    made = make_pilot(authored, {"wrong/swapped": {"advice": 10}})
    found = assess(authored, made, LIMITS)
    assert [(one.check, one.severity, one.field) for one in found.findings] == [
        ("T38", "warning", "advice")
    ]
    assert found.state == "ready"


ORDER_ONLY = 'breaks = ["order"]'


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"gold/plain": {"sums": (8, 9, 8)}}, "gold gets 8.3 of 9 in sums"),
        ({"null/empty": {"sums": 2}}, "work that does nothing gets 2.0 in sums"),
        ({"cheat/head-only": {"order": 10, "advice": 6}}, "root score of 4.0, not below 3"),
        ({"wrong/swapped": {"order": (0, 0, 10)}}, "hits 89%, below 90%"),
        ({"wrong/one-sum-off": {"order": (10, 10, 3)}}, "false alarms 17%, above 5%"),
        ({"wrong/one-sum-off": {"order": (10, 10, 3)}}, "flips 100%, above 10%"),
    ],
)
def test_what_breaks_no_rule_may_still_be_below_a_threshold(
    authored: AuthoredTask, changed: Mapping[str, Mapping[str, Scores]], reason: str
) -> None:
    found = assess(authored, make_pilot(authored, changed), LIMITS)
    assert (rules(found), found.state) == ([], "piloted")
    assert any(reason in one for one in found.reasons), found.reasons


def test_repeats_show_spread_flips_and_agreement_with_checks(authored: AuthoredTask) -> None:
    made = make_pilot(
        authored, {"gold/plain": {"sums": (9, 10, 6)}, "null/empty": {"sums": (0, 1)}}
    )
    sums = assess(authored, made, LIMITS).leaves[1]
    assert (sums.spread, sums.flips, sums.repeated) == (4, 1, 2)
    assert (sums.agreed, sums.compared) == (1, 2)


def test_leaves_that_no_judge_was_asked_about_leave_the_task_checked(
    authored: AuthoredTask,
) -> None:
    made = make_pilot(authored, {work: {"advice": None} for work in GOOD})
    found = assess(authored, made, LIMITS)
    assert (found.state, found.reasons) == ("checked", ("1 leaf not judged",))


def test_a_missing_score_is_neither_passed_nor_failed(authored: AuthoredTask) -> None:
    made = make_pilot(
        authored, {"null/empty": {"advice": (9, None, 9)}, "gold/plain": {"sums": (None,)}}
    )
    found = assess(authored, made, LIMITS)
    assert (found.state, found.reasons) == ("unchecked", ("2 scores missing",))
    assert rules(found) == []


def test_one_gold_and_no_wrong_work_is_too_little_unless_it_is_waived(tmp_path: Path) -> None:
    few = {"gold/plain": RIGHT, "null/empty": NOTHING}
    for number, allow in enumerate(("", 'allow = ["T33: one way only", "T38: nothing to break"]')):
        toml = TASK.replace("[deliverables]", f"{allow}\n[deliverables]")
        folder = write_authored(tmp_path / str(number), toml, without="wrong")
        authored = read_authored(folder)
        whole = make_pilot(authored)
        trials = {work: whole.trials[work] for work in few}
        made = whole.model_copy(update={"trials": trials})
        found = assess(authored, made.model_copy(update={"rows": made.compute_rows()}), LIMITS)
        assert found.state == ("ready" if allow else "piloted")
        assert ("1 gold work of 2" in found.reasons) == (not allow)
        assert {one.severity for one in found.findings} == {"note" if allow else "warning"}


def test_a_waiver_does_not_make_a_task_ready_that_wrong_work_passes(tmp_path: Path) -> None:
    allow = 'allow = ["T35: fine with me", "T37: fine with me"]'
    folder = write_authored(tmp_path, TASK.replace("[deliverables]", f"{allow}\n[deliverables]"))
    authored = read_authored(folder)
    passing = {"null/empty": {"sums": (10,)}, "wrong/one-sum-off": {"sums": (10,)}}
    found = assess(authored, make_pilot(authored, passing), LIMITS)
    assert {one.severity for one in found.findings} == {"note"}
    assert found.state == "piloted"
    assert "work that does nothing gets 10.0 in sums" in found.reasons


def test_every_change_makes_a_pilot_stale_and_notes_do_not(tmp_path: Path) -> None:
    folder = write_authored(tmp_path)
    authored = read_authored(folder)
    write_pilot(folder, make_pilot(authored))
    assert read_readiness(folder, LIMITS).state == "ready"
    (folder / "notes.md").write_text("For myself.")
    assert read_readiness(folder, LIMITS).state == "ready"
    for path, text, said in (
        ("request.md", "Something else in summary.csv.", "request"),
        ("inputs/sales.csv", "Region,Amount\n", "inputs"),
        ("task.toml", TASK.replace("weight = 3", "weight = 2"), "weights"),
        ("task.toml", TASK.replace("48210.55", "48210.56"), "leaves"),
        ("gold/plain/final.txt", "North is weakest.", "gold, wrong or cheat"),
        ("wrong/swapped/wrong.toml", 'breaks = ["order"]', "gold, wrong or cheat"),
    ):
        before = (folder / path).read_bytes()
        (folder / path).write_text(text)
        found = read_readiness(folder, LIMITS)
        assert (found.state, found.reasons) == ("stale", (f"changed since the pilot: {said}",))
        (folder / path).write_bytes(before)
    assert read_readiness(folder, LIMITS).state == "ready"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"readers": {"checks": "0"}}, "readers"),
        ({"judge": "j", "prompts": "0"}, "judge's prompts"),
        ({"judge": "j", "prompts": prompts.digest()}, None),
    ],
)
def test_a_pilot_by_other_readers_or_prompts_is_stale(
    authored: AuthoredTask, more: dict[str, Any], said: str | None
) -> None:
    found = assess(authored, make_pilot(authored, **more), LIMITS)
    assert found.state == ("ready" if said is None else "stale")
    assert said is None or found.reasons == (f"changed since the pilot: {said}",)


def test_a_state_cannot_be_written_into_the_file(tmp_path: Path) -> None:
    folder = write_authored(tmp_path)
    assert read_readiness(folder, LIMITS).reasons == ("not piloted yet",)
    authored = read_authored(folder)
    write_pilot(folder, make_pilot(authored, {"gold/plain": {"sums": 0}}))
    file = folder / PILOT_FILE
    file.write_text(file.read_text().replace("0.0", "10.0", 1))
    assert read_readiness(folder, LIMITS).reasons[0].endswith("pilot.json (edited)")
    file.write_text('{"state": "ready"}')
    assert read_readiness(folder, LIMITS).state == "unchecked"


def test_a_dataset_says_how_many_tasks_are_not_ready(tmp_path: Path) -> None:
    folder = write_authored(tmp_path)
    assert describe_readiness(tmp_path, ["q3-sales"], LIMITS) == "not ready: 1 of 1 task"
    write_pilot(folder, make_pilot(read_authored(folder)))
    assert describe_readiness(tmp_path, ["q3-sales"], LIMITS) is None
    assert describe_readiness(tmp_path, ["released"], LIMITS) is None
    (folder / "wrong/swapped/wrong.toml").unlink()
    found = read_readiness(folder, LIMITS)
    assert found.state == "unchecked" and "wrong.toml: is missing" in found.reasons[0]


def test_a_task_with_errors_of_lint_is_unchecked(tmp_path: Path) -> None:
    folder = write_authored(
        tmp_path, TASK.replace("[deliverables]", 'allow = ["T33"]\n[deliverables]')
    )
    found = assess(authored := read_authored(folder), make_pilot(authored), LIMITS)
    assert (found.state, found.reasons) == ("unchecked", ("1 error of `gta task lint`",))
    assert authored.waived == frozenset(), "a waiver needs a reason"


def test_lint_finds_a_stale_pilot(tmp_path: Path) -> None:
    folder = write_authored(tmp_path)
    write_pilot(folder, make_pilot(read_authored(folder)))
    assert stale(folder) == []
    (folder / "notes.md").write_text("For myself.")
    assert stale(folder) == []
    (folder / "request.md").write_text("Sum up inputs/sales.csv in summary.csv.")
    assert stale(folder) == ["changed since the pilot: request; run `gta task pilot` again."]
    (folder / "task.toml").write_text(TASK.replace("q3-sales", "other"))
    assert stale(folder) == [], "T02 says that the task does not load"
    (folder / PILOT_FILE).write_text("{}")
    assert stale(folder) == ["pilot.json cannot be read; run `gta task pilot` again."]


def stale(folder: Path) -> list[str]:
    return [one.message for one in lint([folder]).findings if one.check == "T39"]


def test_shares_of_the_root_add_up_in_nested_groups(tmp_path: Path) -> None:
    nested = TASK + '[[group.group]]\nid = "in"\n[[group.group.leaf]]\nid = "x"\nweight = 0\n'
    nested = nested.replace(
        '[[leaf]]\nid = "advice"', '[[group]]\nid = "text"\n[[group.leaf]]\nid = "advice"'
    )
    task = read_authored(write_authored(tmp_path, nested)).task
    assert leaf_shares(task) == {"sums": 0.5, "order": 0.25, "advice": 0.125, "x": 0.0}
