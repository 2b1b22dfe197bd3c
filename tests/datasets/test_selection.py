"""Which tasks a command works on, and samples that stay the same and grow."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.model import AtomicDataset
from gta_bench.datasets.selection import (
    Selection,
    Traits,
    choose_tasks,
    name_subset,
    sample_order,
    sample_tasks,
    select_tasks,
    task_traits,
)
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import UsageError
from tests.builders import atomic_task, write_atomic

# Samples that people have published results for: these lists never change.
GOLDEN_ATOMIC = "2 22 30 33 37 54 79 103 114 142 146 176 183 185 189 191 192 196 205 222"
GOLDEN_WORKFLOW = "14 61 71 79 82 90 111 121 122 127 133 151"


@pytest.fixture
def small(tmp_path: Path) -> AtomicDataset:
    return load_atomic(write_atomic(tmp_path, {name: atomic_task() for name in "abcde"}))


@pytest.mark.parametrize(
    ("chosen", "tasks"),
    [
        (Selection(), "abcde"),
        (Selection(tasks="1:3"), "bc"),
        (Selection(tasks="d, a,d"), "da"),
        (Selection(ids=("d", "a", "d")), "da"),
        (Selection(limit=2), "ab"),
        (Selection(limit=9), "abcde"),
        (Selection(sample=5, sample_seed=3), "abcde"),
    ],
)
def test_tasks_are_chosen_in_one_way(small: AtomicDataset, chosen: Selection, tasks: str) -> None:
    assert choose_tasks(small, chosen) == tuple(tasks)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (Selection(tasks="0:1", limit=1), "--tasks and --limit exclude each other"),
        (Selection(ids=("a",), sample=1), "--task and --sample exclude each other"),
        (Selection(limit=1, sample=1, sample_seed=1), "--limit and --sample exclude each other"),
        (Selection(sample_seed=1), "--sample-seed needs --sample N"),
        (Selection(sample=6), "A sample of 6 is too large; the dataset has 5 tasks"),
        (Selection(ids=("a", "z")), "--task: the dataset has no task 'z'"),
        (Selection(tasks="z"), "--tasks: the dataset has no task 'z'. Its ids: a, b"),
        (Selection(tasks="x:2"), "is not a range. Write it as 0:10"),
        (Selection(tasks="5:"), "selects no task; the dataset has 5."),
    ],
)
def test_what_chooses_nothing_or_too_much_is_refused(
    small: AtomicDataset, chosen: Selection, said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        choose_tasks(small, chosen)
    assert said in str(caught.value)


def test_a_list_of_no_tasks_has_nothing_to_choose() -> None:
    assert select_tasks([], None) == ()
    assert sample_order({}, seed=0) == []


@given(
    kinds=st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("1234")), min_size=1),
    seed=st.integers(0, 3),
)
def test_every_beginning_of_the_order_has_each_kind_by_its_share(
    kinds: list[tuple[str, str]], seed: int
) -> None:
    traits: dict[str, Traits] = {str(number): kind for number, kind in enumerate(kinds)}
    order = sample_order(traits, seed=seed)
    assert sorted(order) == sorted(traits)
    whole = Counter(kind for kind, _ in kinds)
    for size in range(len(order) + 1):
        part = Counter(traits[one][0] for one in order[:size])
        for kind, count in whole.items():
            share = count / len(kinds)
            assert abs(part[kind] - share * size) <= 1 + share * len(whole)


def test_another_seed_is_another_sample_and_every_task_has_its_chance() -> None:
    traits: dict[str, Traits] = {str(number): (str(number % 3),) for number in range(30)}
    drawn = Counter(one for seed in range(300) for one in sample_order(traits, seed=seed)[:10])
    assert set(drawn) == set(traits)
    # 100 are expected of each, with a standard deviation of 8.
    assert max(drawn.values()) < 140
    assert min(drawn.values()) > 60


def test_samples_of_gta_atomic_are_the_same_everywhere_and_contain_each_other(
    atomic_dir: Path,
) -> None:
    dataset = load_atomic(atomic_dir)
    assert " ".join(sample_tasks(dataset, 20)) == GOLDEN_ATOMIC
    samples = [set(sample_tasks(dataset, size, seed=5)) for size in (1, 20, 21, 40, 100, 229)]
    assert all(one < two for one, two in pairwise(samples))
    kinds = Counter(task_traits(dataset.tasks[one])[0] for one in sample_tasks(dataset, 50))
    whole = Counter(task_traits(task)[0] for task in dataset.tasks.values())
    assert all(abs(kinds[kind] - count * 50 / 229) < 1.5 for kind, count in whole.items())


def test_samples_of_gta_workflow_are_the_same_everywhere(workflow_dir: Path) -> None:
    dataset = load_workflow(workflow_dir)
    chosen = sample_tasks(dataset, 12)
    assert " ".join(chosen) == GOLDEN_WORKFLOW
    assert len({task_traits(dataset.tasks[one])[0] for one in chosen}) >= 5


def test_the_name_of_a_subset_tells_other_tasks_and_other_contents_apart(tmp_path: Path) -> None:
    task = atomic_task()
    other = atomic_task(gt_answer={"whitelist": [["8"]], "blacklist": None})
    one = load_atomic(write_atomic(tmp_path / "one", {"a": task, "b": task, "c": task}))
    two = load_atomic(write_atomic(tmp_path / "two", {"a": task, "b": other}))
    first = name_subset(one, ("a",), "atomic-1-seed0")
    assert first.name.startswith("atomic-1-seed0-")
    assert first == name_subset(two, ("a",), "atomic-1-seed0")
    names = {
        name_subset(data, tasks, "x").name for data in (one, two) for tasks in ("a", "b", "ab")
    }
    assert len(names) == 5
