"""A gate that runs NEW: how far it goes, that it goes on, and that nothing else changes it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gta_bench.decisions.gate import decide_gate
from gta_bench.decisions.gate_run import (
    PlayTasks,
    decide_planned,
    digest_outcomes,
    expect_outcomes,
    plan_gate,
    refuse_other_question,
    run_gate,
)
from gta_bench.decisions.gate_tables import format_gate_junit, list_remarks, state_decision
from gta_bench.errors import GtaError
from gta_bench.records.digests import TaskDigests
from gta_bench.records.gate import GatePlan, GateResult, Repeats, RunOutcomes, TaskOutcomes
from tests.builders import manifest
from tests.decisions.test_gate import WHEN, newer, passing, show

BROKEN = 8


class World:
    """A system that breaks the first tasks, run task by task; some attempts leave no score."""

    def __init__(
        self, *, tasks: int = 20, broken: int = BROKEN, failing: tuple[str, ...] = ()
    ) -> None:
        self.base = passing(*[1] * tasks)
        self.truth = {str(number): float(number >= broken) for number in range(tasks)}
        self.failing = failing
        self.done: dict[str, Repeats] = {}
        self.played: list[tuple[str, ...]] = []
        self.starts = 0

    def plan(self, margin: float = 15, seed: str = "night 1") -> GatePlan:
        blank = newer(self.base).model_copy(
            update={"tasks": tuple(TaskOutcomes(task=task, values=(None,)) for task in self.truth)}
        )
        return plan_gate(self.base, blank, margin=margin, seed=seed, when=WHEN)

    def read(self) -> RunOutcomes | None:
        if not self.done:
            return None
        given = dict.fromkeys([*(self.played[-1] if self.played else ()), *self.done])
        tasks = tuple(TaskOutcomes(task=one, values=self.done.get(one, (None,))) for one in given)
        return newer(self.base).model_copy(update={"tasks": tasks})

    def play(self, tasks: tuple[str, ...]) -> bool:
        self.played.append(tasks)
        for task in tasks:
            if task not in self.done or None in self.done[task]:
                self.starts += 1
                self.done[task] = (None if task in self.failing else self.truth[task],)
        return False

    def gate(self, play: PlayTasks | None = None, *, margin: float = 15, at_once: int = 1) -> Any:
        return run_gate(self.base, self.plan(margin), self.read, play or self.play, at_once=at_once)


def test_it_runs_no_more_tasks_than_the_test_uses_and_decides_the_same() -> None:
    world = World()
    found = world.gate()
    whole = newer(passing(*(int(one) for one in world.truth.values())))
    expected = decide_gate(world.base, whole, margin=15, sequential=True, seed="night 1")
    assert (
        (found.decision, found.used) == (expected.decision, expected.used) == ("worse", found.used)
    )
    assert world.starts == found.used < 20
    assert found.tasks == expected.tasks
    assert found.unused == expected.tasks[found.used :]
    assert len(world.played) < found.used, "one look for every task that could decide"
    assert f"{found.used} of 20 tasks used, in random order" in state_decision(found)


def test_each_part_is_the_fewest_tasks_that_could_decide() -> None:
    world = World(tasks=60, broken=0)
    found = world.gate(margin=10)
    assert found.decision == "not worse"
    assert world.starts == found.used == 38
    assert [len(part) for part in world.played][:3] == [6, 12, 18]


@pytest.mark.parametrize("at_once", [2, 4])
def test_workers_change_nothing_but_what_was_run_in_vain(at_once: int) -> None:
    alone, together = World(), World()
    one, many = alone.gate(), together.gate(at_once=at_once)
    assert one == many
    assert alone.starts <= together.starts < alone.starts + at_once


def test_it_goes_on_after_an_interruption_with_what_is_finished() -> None:
    """Killed in the second part, when a later task was done before an earlier one."""
    world = World()

    def killed(tasks: tuple[str, ...]) -> bool:
        if len(world.played) == 1:
            world.done[tasks[-1]] = (world.truth[tasks[-1]],)
            world.starts += 1
            world.played.append(tasks)
            raise KeyboardInterrupt
        return world.play(tasks)

    with pytest.raises(KeyboardInterrupt):
        world.gate(killed)
    waiting = world.plan().tasks[len(world.done) - 1]
    assert waiting not in world.done
    assert world.gate() == World().gate()
    assert world.starts == World().gate().used or world.starts == len(world.done)
    before = world.starts
    assert world.gate() == World().gate(), "a decided gate stays decided"
    assert world.starts == before


def test_a_task_that_finished_early_waits_for_those_before_it() -> None:
    """Eight broken tasks are done, but the first of the order is not: nothing is decided."""
    world = World()
    order = world.plan().tasks
    world.done = {task: (world.truth[task],) for task in order[1:]}
    looked = world.read()
    assert looked is not None
    found = decide_planned(world.base, looked, world.plan(), tried=0)
    assert (found.decision, found.used, found.flips) == ("undecided", 0, ())
    assert world.gate() == World().gate()
    assert world.starts == 1


def test_a_budget_that_is_spent_leaves_it_undecided_and_it_goes_on_later() -> None:
    world = World(tasks=60, broken=0)

    def spent(tasks: tuple[str, ...]) -> bool:
        world.play(tasks[:4])
        world.played[-1] = tasks
        return True

    found = world.gate(spent, margin=10)
    assert (found.decision, found.exit_code, found.used) == ("undecided", 11, 4)
    assert len(found.unused) == 56
    said = "not looked at, because the gate stopped before them"
    assert any(one.startswith(said) for one in list_remarks(found))
    xml = format_gate_junit(found, show, when=WHEN).decode()
    assert 'message="The gate stopped before it."' in xml
    assert world.gate(margin=10).decision == "not worse"
    nothing = World()

    def spent_at_once(tasks: tuple[str, ...]) -> bool:
        nothing.played.append(tasks)
        nothing.done[tasks[0]] = (None,)
        return True

    none = nothing.gate(spent_at_once)
    assert (none.exit_code, none.used) == (11, 0)
    assert "No task is scored in both runs." in state_decision(none)


def test_tasks_without_a_score_are_tried_again_and_bounded() -> None:
    order = World().plan().tasks
    first = next(task for task in order if int(task) < BROKEN)
    world = World(failing=(first,))
    found = world.gate()
    assert found.decision == "worse"
    assert found.used > World().gate().used
    assert found.missing == (first,)
    assert world.starts > len(world.done)
    lost = World(failing=order)
    none = lost.gate()
    assert (none.decision, none.exit_code) == (None, 3)
    assert len(lost.done) == 20


def test_it_stops_where_the_other_tasks_cannot_decide_any_more() -> None:
    world = World(tasks=20, broken=3)
    found = world.gate()
    assert found.decision == "undecided"
    assert 0 < len(found.unused) < 20
    assert world.starts == 20 - len(found.unused)


def test_few_tasks_are_refused_before_anything_runs() -> None:
    with pytest.raises(GtaError, match="4 tasks cannot decide about a margin of 15 points"):
        World(tasks=4).plan()
    hopeless = World(tasks=60)
    hopeless.base = passing(*[0] * 60)
    with pytest.raises(GtaError, match="so low in root_sr that 15 points over 60 tasks cannot be"):
        hopeless.plan()


def test_the_unused_tasks_are_skipped_in_junit() -> None:
    found: GateResult = World().gate()
    xml = format_gate_junit(found, show, when=WHEN).decode()
    assert f'skipped="{len(found.unused)}"' in xml
    assert 'message="The gate did not need it."' in xml
    assert any("decided without them" in one for one in list_remarks(found))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"margin": 10.0}, "began with a margin of 15 points, not a margin of 10 points"),
        ({"seed": "night 2"}, "began with the seed 'night 1', not the seed 'night 2'"),
        ({"metric": "leaf_sr"}, "began with the metric root_sr, not the metric leaf_sr"),
        ({"created": WHEN + timedelta(days=3)}, "began with another BASE."),
    ],
)
def test_another_question_than_the_first_is_refused(changes: dict[str, Any], said: str) -> None:
    world = World()
    asked: dict[str, Any] = {"margin": 15.0, "seed": None}
    base = world.base
    for name, value in changes.items():
        if name in asked:
            asked[name] = value
        else:
            base = base.model_copy(update={name: value})
    plan = world.plan()
    if "metric" in changes:
        plan = plan.model_copy(update={"base": digest_outcomes(base)})
    with pytest.raises(GtaError) as raised:
        refuse_other_question(plan, base, "runs/b", **asked)
    assert said in str(raised.value)
    assert raised.value.exit_code == 2
    refuse_other_question(world.plan(), world.base, "runs/b", margin=None, seed=None)


def test_more_epochs_than_planned_are_refused() -> None:
    world = World()
    world.play(("0",))
    new = world.read()
    assert new is not None
    more = new.model_copy(update={"spec": new.spec.model_copy(update={"epochs": 3})})
    with pytest.raises(GtaError, match="began with 1 epochs, not 3 epochs"):
        decide_planned(world.base, more, world.plan())


def test_tasks_that_changed_since_the_baseline_are_not_planned() -> None:
    base = passing(*[1] * 20)
    digest = TaskDigests(request="a" * 32)
    run = manifest(dataset="workflow", mode="workflow", tasks=tuple(map(str, range(22))))
    new = expect_outcomes(
        "runs/b",
        run.model_copy(update={"dataset_digest": "e", "created": datetime.now(UTC)}),
        base,
        dict.fromkeys(run.spec.tasks, digest),
        judge="strict",
        thresholds=(7.0, 7.0),
    )
    tasks = plan_gate(base, new, margin=15, seed="s", when=WHEN).tasks
    assert {*tasks} == {str(number) for number in range(20)}
    changed = base.tasks[0].model_copy(update={"digest": "b" * 32})
    other = base.model_copy(update={"tasks": (changed, *base.tasks[1:])})
    assert "0" not in plan_gate(other, new, margin=15, seed="s", when=WHEN).tasks
    with pytest.raises(GtaError, match="the thresholds differ"):
        plan_gate(
            base,
            new.model_copy(update={"thresholds": (6.0, 7.0)}),
            margin=15,
            seed="s",
            when=WHEN,
        )
