import subprocess
import sys
import threading
from datetime import UTC, datetime
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path
from random import Random

import anyio
import pytest
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelName, ModelOutput, ModelUsage, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from gta_bench.running.backends.backend import INLINE, Answering
from gta_bench.running.budget import (
    BETWEEN,
    MINUTE,
    SILENCE,
    STARTING,
    BudgetShare,
    RunLimits,
    SharedBudget,
    count_waiting,
    find_limiters,
    open_share,
)
from gta_bench.running.evaluation import QUIET
from gta_bench.settings import BudgetSettings


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_workers_share_all_connections_and_never_have_more() -> None:
    """Whatever they need and whenever they ask, and nobody starves."""
    random = Random(1)
    budget = SharedBudget(connections=8)
    used = dict.fromkeys("abcd", 0)
    allowed = dict.fromkeys("abcd", 0)
    got: set[str] = set()
    for _ in range(3_000):
        name = random.choice("abcd")
        used[name] = random.randint(0, max(used[name], allowed[name]))
        allowed[name] = budget.hold(name, used[name] + random.randint(1, 12), used[name])
        used[name] = max(used[name], random.randint(0, allowed[name]))
        got |= {one for one in used if used[one]}
        assert sum(max(allowed[one], used[one]) for one in used) <= 8
    assert got == {*"abcd"}


def test_what_one_worker_does_not_need_goes_to_the_others() -> None:
    """But what it may need for its next lease is kept for a while."""
    clock = Clock()
    budget = SharedBudget(connections=8, clock=clock)
    for _ in range(2):
        found = [budget.hold(name, 20, 0) for name in "abcd"]
    assert found == [2, 2, 2, 2]
    budget.hold("a", 1, 1)
    budget.release("b")
    assert [budget.hold(name, 20, 2) for name in "cd"] == [2, 3]
    clock.now = BETWEEN + 1
    for _ in range(2):
        found = [budget.hold(name, 20, 2) for name in "cd"]
    assert sum(found) == 7


def test_a_worker_that_starts_late_finds_its_share() -> None:
    clock = Clock()
    budget = SharedBudget(connections=8, places=4, clock=clock)
    assert budget.hold("a", 20, 0) == 2
    assert budget.hold("b", 20, 0) == 2
    assert budget.hold("a", 20, 2) == 2
    for clock.now in (STARTING - 20, STARTING + 1):
        found = [budget.hold(name, 20, 2) for name in "ab"]
    assert found == [4, 4]


def test_connections_of_a_silent_worker_come_back() -> None:
    clock = Clock()
    budget = SharedBudget(connections=2, clock=clock)
    assert budget.hold("lost", 2, 0) == 2
    assert budget.hold("next", 2, 0) == 0
    clock.now = SILENCE + 1
    assert budget.hold("next", 2, 0) == 2


def test_a_lease_that_is_begun_again_has_the_connections_of_its_lost_attempt() -> None:
    budget = SharedBudget(connections=2)
    assert budget.hold("7", 2, 0) == 2
    assert budget.hold("7", 2, 2) == 2
    assert budget.hold("7", 2, 0) == 2


def test_no_minute_has_more_requests_than_allowed() -> None:
    random, clock = Random(1), Clock()
    budget = SharedBudget(connections=1, rpm=10, clock=clock)
    starts: list[float] = []
    for _ in range(300):
        clock.now += random.expovariate(0.5)
        turn = budget.reserve()
        if turn.seconds and random.random() < 0.2:
            budget.give_back(turn)
        else:
            starts.append(clock.now + turn.seconds)
    starts.sort()
    fullest = max(
        sum(begin <= other < begin + MINUTE - 1e-6 for other in starts) for begin in starts
    )
    assert fullest == 10


def test_a_turn_that_was_given_back_is_for_the_next_request() -> None:
    clock = Clock()
    budget = SharedBudget(connections=1, rpm=1, clock=clock)
    assert budget.reserve().seconds == 0
    waiting = budget.reserve()
    assert waiting.seconds == MINUTE
    budget.give_back(waiting)
    budget.give_back(waiting)
    assert budget.reserve().seconds == MINUTE
    assert SharedBudget(connections=1).reserve().seconds == 0


def test_a_canceled_request_gives_back_its_turn() -> None:
    budget = SharedBudget(connections=1, rpm=1)
    with INLINE.share(budget) as call:
        share = BudgetShare(call, "a", BudgetSettings(rpm=1))

        async def ask() -> None:
            await share.start_request()
            with anyio.move_on_after(0.05):
                await share.start_request()

        anyio.run(ask)
    assert budget.reserve().seconds == pytest.approx(MINUTE, abs=5)
    assert budget.reserve().seconds == pytest.approx(2 * MINUTE, abs=5)


def test_money_of_all_workers_and_the_time_end_the_units() -> None:
    budget = SharedBudget(connections=1, limits=RunLimits(cost_usd=5), spent_usd=2)
    assert budget.find_reached() is None
    budget.spend(2)
    budget.note_spent(3)
    budget.note_spent(None)
    assert budget.find_reached() is None
    budget.note_spent(5)
    assert budget.find_reached() == "The run has spent its budget of $5 (budget.cost_usd)"
    late = SharedBudget(connections=1, limits=RunLimits(deadline=datetime.now(UTC)))
    assert late.find_reached() == "The command has used up its time (budget.hours)"


def test_a_unit_asks_about_limits_only_if_there_are_any() -> None:
    spent = SharedBudget(connections=1, limits=RunLimits(cost_usd=5), spent_usd=6)
    with INLINE.share(spent) as call:
        for budget, found in ((BudgetSettings(cost_usd=5), True), (BudgetSettings(), False)):
            reached = anyio.run(BudgetShare(call, "a", budget).start_unit)
            assert (reached is not None) is found


def test_the_process_of_the_shared_budget_does_not_load_the_engine() -> None:
    script = "import sys, gta_bench.running.budget; print('inspect_ai' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_a_worker_waits_for_its_first_connection_and_gives_all_back() -> None:
    budget = SharedBudget(connections=1)
    with INLINE.share(budget) as call:
        first = BudgetShare(call, "a", BudgetSettings())
        first.begin(3)
        threading.Timer(0.3, first.end).start()
        with open_share(call, "b", BudgetSettings(), units=3) as share:
            assert share.connections == 1
    assert budget.hold("c", 1, 0) == 1


def test_calls_of_other_processes_are_answered_and_strangers_are_not() -> None:
    with Answering(SharedBudget(connections=3)) as answering:
        with pytest.raises(AuthenticationError):
            Client(answering.address, authkey=b"guessed")
        assert answering.call("hold", "a", 2, 0) == 2


def test_inspect_has_a_limiter_of_units_and_one_of_calls_that_can_be_changed(
    tmp_path: Path,
) -> None:
    """They have no public names. One unit raises both limits, and the others run at once."""
    said = ModelOutput.from_content("mockllm/model", "It is 7.")
    said.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    model = get_model("mockllm/model", custom_outputs=[said] * 6)
    running, most = 0, 0

    @solver
    def widen() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await generate(state)
            units, calls = find_limiters({str(ModelName(model))})
            assert (units.limit, calls.limit) in ((1, 1), (3, 3))
            assert units.in_use >= 1
            if units.limit == 1:
                assert count_waiting(units) >= 1
                units.limit = calls.limit = 3
            await anyio.sleep(0.2)
            running -= 1
            return state

        return solve

    model.config.max_connections = 1
    (log,) = eval(
        Task([Sample(id=n, input="?") for n in range(6)], solver=widen()),
        model=model,
        max_samples=1,
        log_dir=str(tmp_path),
        **QUIET,
    )
    assert log.status == "success", log.error
    assert most == 3
