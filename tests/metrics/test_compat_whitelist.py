"""Upstream's word-boundary rule, on upstream's own results and on the real references."""

from collections.abc import Mapping
from typing import Any

import pytest

from gta_bench.metrics.compat.view import matches, self_rejecting_groups
from gta_bench.metrics.reference import reference_steps
from gta_bench.records.atomic import AtomicTask, WhitelistAnswer
from gta_bench.records.steps import AnswerStep
from tests.metrics.atomic_variants import vectors

CASES = vectors("whitelist_match")


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["pred"]))
def test_a_text_matches_exactly_where_upstream_says_so(case: dict[str, Any]) -> None:
    answer = WhitelistAnswer(whitelist=case["whitelist"], blacklist=case["blacklist"])
    assert matches(case["pred"], answer) is case["correct"]


def test_all_recorded_cases_are_there() -> None:
    assert len(CASES) == 30


def test_the_blacklist_is_one_search_over_all_its_groups() -> None:
    answer = WhitelistAnswer(whitelist=(("12",),), blacklist=(("13",), ("14", "15")))
    assert matches("12", answer)
    assert not matches("12, 15", answer)


def test_the_references_match_in_143_of_156_tasks(atomic_tasks: Mapping[str, AtomicTask]) -> None:
    answers = [task for task in atomic_tasks.values() if isinstance(task.answer, WhitelistAnswer)]
    assert len(answers) == 156
    assert sum(_reference_matches(task) for task in answers) == 143


def test_eleven_tasks_reject_their_own_aliases(atomic_tasks: Mapping[str, AtomicTask]) -> None:
    found = [
        name
        for name, task in atomic_tasks.items()
        if isinstance(task.answer, WhitelistAnswer) and self_rejecting_groups(task.answer)
    ]
    assert found == ["19", "67", "69", "71", "72", "83", "94", "170", "171", "198", "206"]


def test_only_the_groups_without_any_usable_alias_are_named() -> None:
    answer = WhitelistAnswer(whitelist=(("-2",), ("4",), ("-5", "minus five")))
    assert self_rejecting_groups(answer) == (("-2",),)


def _reference_matches(task: AtomicTask) -> bool:
    last = reference_steps(task)[-1]
    assert isinstance(task.answer, WhitelistAnswer)
    return isinstance(last, AnswerStep) and matches(last.content, task.answer)
