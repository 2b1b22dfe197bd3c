import pytest

from gta_bench.errors import EnvironmentProblem
from gta_bench.running.leases import (
    MOST_STARTING,
    RETRIES,
    START,
    UNITS_PER_LEASE,
    Items,
    LeaseTable,
    count_useful_workers,
    expect_seconds,
)
from tests.running.virtual import Lease, Work, log_normal, static_makespan, work_off


def table(expected: dict[str, float], places: int = 2, epochs: int = 1) -> LeaseTable[Lease]:
    return LeaseTable(expected, make=Lease, places=places, epochs=epochs, clock=lambda: 0.0)


def test_the_longest_task_is_taken_first_and_equal_ones_in_their_order() -> None:
    leases = table({"a": 1, "b": 100, "c": 1, "d": 3})
    assert leases.take() == Lease("0", ("b",))
    # The other worker has long done the rest when the first is done.
    assert leases.take() == Lease("1", ("d", "a", "c"))
    assert leases.take() is None


def test_leases_shrink_and_none_is_longer_than_a_log_may_be() -> None:
    leases = table({str(number): 1.0 for number in range(10_000)}, places=4)
    sizes = []
    while (lease := leases.take()) is not None:
        sizes.append(len(lease.tasks))
        leases.finish(lease)
    assert sum(sizes) == 10_000
    assert (sizes[0], max(sizes)) == (UNITS_PER_LEASE, UNITS_PER_LEASE)
    assert sizes[-1] <= 15
    first = table({str(number): 1.0 for number in range(10_000)}, epochs=3).take()
    assert first is not None
    assert 3 * len(first.tasks) <= UNITS_PER_LEASE


def test_a_single_worker_takes_all_at_once() -> None:
    taken = table({"a": 1, "b": 2, "c": 3}, places=1).take()
    assert taken == Lease("0", ("c", "b", "a"))


def test_a_lost_lease_comes_back_first_and_keeps_its_name() -> None:
    leases = table({str(number): 1.0 for number in range(40)})
    first, second = leases.take(), leases.take()
    assert first is not None and second is not None
    leases.give_back(first)
    assert leases.take() == first
    assert leases.finish(first)
    assert leases.finish(second)


def test_a_lease_that_is_answered_twice_is_accepted_once() -> None:
    leases = table({"a": 1.0})
    lease = leases.take()
    assert lease is not None
    leases.give_back(lease)
    assert leases.take() == lease
    assert [leases.finish(lease), leases.finish(lease)] == [True, False]
    leases.give_back(lease)
    assert leases.take() is None


def test_the_answer_of_a_worker_that_was_given_up_counts_if_nobody_began_again() -> None:
    leases = table({"a": 1.0})
    lease = leases.take()
    assert lease is not None
    leases.give_back(lease)
    assert leases.finish(lease)
    assert leases.take() is None


@pytest.mark.parametrize("source", [Items(["a"]), table({"a": 1.0})])
def test_work_that_is_lost_again_and_again_is_an_error(source: Items[str]) -> None:
    for _ in range(RETRIES):
        item = source.take()
        assert item is not None
        source.give_back(item)
    item = source.take()
    assert item is not None
    with pytest.raises(EnvironmentProblem, match="killed 6 times"):
        source.give_back(item)


def test_items_are_taken_in_order_and_done_once() -> None:
    items = Items(["a", "b"])
    assert [items.take(), items.take(), items.take()] == ["a", "b", None]
    assert [items.finish("a"), items.finish("a")] == [True, False]
    items.give_back("a")
    items.give_back("b")
    assert [items.take(), items.take()] == ["b", None]


def test_known_times_replace_sizes_and_scale_the_others() -> None:
    assert expect_seconds({"a": 1, "b": 3}, {}) == {"a": 1, "b": 3}
    assert expect_seconds({"a": 1, "b": 3}, {"a": 0.0}) == {"a": 0.0, "b": 3}
    assert expect_seconds({"a": 1, "b": 3}, {"a": 5.0, "z": 9.0}) == {"a": 5.0, "b": 15.0}


@pytest.mark.parametrize("median", [0.05, 0.5, 20.0])
def test_little_time_is_spent_on_starting_evaluations(median: float) -> None:
    """Units of 50 ms have long leases; of those of 20 s, the last leases have one."""
    work = log_normal(2_000, 0.6, known=0.5, seed=1, median=median)
    found = work_off(work, 8)
    assert found.leases * START < 2 * MOST_STARTING * sum(work.seconds.values())


def test_the_last_leases_of_equal_units_end_together_without_crumbs() -> None:
    names = [str(number) for number in range(560)]
    work = Work(dict.fromkeys(names, 0.127), dict.fromkeys(names, 1.0))
    found = work_off(work, 2)
    assert found.leases == 6
    assert found.makespan < work.ideal(2) + found.leases / 2 * START + 0.127


def test_workers_end_together_and_nothing_is_lost_with_a_lost_worker() -> None:
    work = log_normal(1_000, 0.9, known=0.5, seed=1)
    assert work_off(work, 8).makespan < 1.05 * work.ideal(8)
    assert static_makespan(work, 8) > 1.05 * work.ideal(8)
    lost = work_off(work, 8, lose=3)
    assert lost.makespan < 1.5 * work.ideal(8)


@pytest.mark.parametrize(
    ("units", "places", "worth"), [(5, 4, 1), (39, 4, 1), (40, 4, 2), (1000, 4, 4)]
)
def test_workers_are_worth_starting_for_enough_units(units: int, places: int, worth: int) -> None:
    assert count_useful_workers(units, places) == worth
