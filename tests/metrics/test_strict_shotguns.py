"""Answers that list many candidates, against every whitelist of the released tasks."""

from collections.abc import Mapping

import pytest

from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.strict.outcome import matches
from gta_bench.records.atomic import AtomicTask, WhitelistAnswer
from gta_bench.records.steps import AnswerStep

Whitelists = Mapping[str, WhitelistAnswer]

COLORS = "red orange yellow green blue purple pink brown black white gray gold silver"
COUNTRIES = "China Japan France Germany Italy Spain Brazil India Canada Mexico Russia Egypt Chile"


@pytest.fixture(scope="module")
def whitelists(atomic_tasks: Mapping[str, AtomicTask]) -> Whitelists:
    return {
        name: task.answer
        for name, task in atomic_tasks.items()
        if isinstance(task.answer, WhitelistAnswer)
    }


def _aliases(whitelists: Whitelists) -> list[str]:
    return [
        alias for answer in whitelists.values() for group in answer.whitelist for alias in group
    ]


def count_matches(text: str, whitelists: Whitelists) -> int:
    return sum(matches(text, answer) for answer in whitelists.values())


SHOTGUNS = {
    "0 to 1999": (" ".join(map(str, range(2000))), 0),
    "0 to 1999 with commas": (", ".join(map(str, range(2000))), 0),
    "0 to 1999 in lines": ("\n".join(map(str, range(2000))), 7),
    "0 to 1999 in parentheses": (" ".join(f"({n})" for n in range(2000)), 0),
    "0.00 to 9.99": (" ".join(f"{n / 100:.2f}" for n in range(1000)), 0),
    "-20 to 20": (" ".join(map(str, range(-20, 21))), 0),
    "0% to 100%": (", ".join(f"{n}%" for n in range(101)), 0),
    "years": (" ".join(map(str, range(1900, 2030))), 0),
    "an essay of sums": (" ".join(f"Item {n} costs {n} dollars." for n in range(200)), 7),
    "36 numbers as times": (" = ".join(f"{n}:{n + 1}:{n + 2}" for n in range(0, 36, 3)), 0),
    "13 colors": (", ".join(COLORS.split()), 1),
    "13 countries": (", ".join(COUNTRIES.split()), 1),
    # Few enough to be an answer.
    "0 to 11": (" ".join(map(str, range(12))), 28),
    "0 to 11 in prose": (" ".join(f"It may well be the number {n}." for n in range(12)), 28),
    "1, 2 or 3": ("1, 2 or 3", 13),
    "2": ("2", 6),
    "yes or no": ("yes or no", 2),
}


@pytest.mark.parametrize("name", SHOTGUNS)
def test_a_list_of_candidates_matches_so_many_tasks(name: str, whitelists: Whitelists) -> None:
    text, expected = SHOTGUNS[name]
    assert count_matches(text, whitelists) == expected


@pytest.mark.parametrize(("between", "expected"), [(" ", 38), (", ", 38), (" or ", 38), ("\n", 47)])
def test_all_aliases_of_all_tasks_match_the_texts_only(
    between: str, expected: int, whitelists: Whitelists
) -> None:
    """All 156 without the rule. The aliases that are texts have fewer than 120 words."""
    assert count_matches(between.join(_aliases(whitelists)), whitelists) == expected


def test_every_reference_matches_as_before(
    atomic_tasks: Mapping[str, AtomicTask], whitelists: Whitelists
) -> None:
    """All but 115, which has no final turn, and 211, whose final text lacks the answer."""
    missed = []
    for name, answer in whitelists.items():
        last = reference_steps(atomic_tasks[name])[-1]
        if not isinstance(last, AnswerStep) or not matches(last.content, answer):
            missed.append(name)
    assert missed == ["115", "211"]


WORKING = "\n".join(f"{n} * 3 = {3 * n}" for n in range(100, 130))


@pytest.mark.parametrize(
    "text",
    [
        f"{WORKING}\n\nSo the bottle lasts 58 days.",
        f"{WORKING}\n\nThe bottle lasts 58 days.\n</answer>",
        f"{WORKING}\n$$\n\\boxed{{58}}\n$$",
        f"{WORKING}\n**58 days**\n\nEnjoy your summer!\n\nTake care.\n\nBye.",
        f"It lasts 58 days. See below.\n{WORKING}",
        f"See below.\n{WORKING}\nTotal: 58\n\nNote.\n\nPrices vary.\n\nAsk again.",
        "2 * 29 = 58, so with 5 people and 290 capsules it is 58 days.",
        "The amounts are 12, 24, 35, 15, 20 and 30; 58 in total.",
        f"Read the prices 1 to 4.\n{WORKING}\nIt is 58.\n**Step 1.**",
    ],
)
def test_a_long_derivation_counts_by_its_conclusion(text: str) -> None:
    assert matches(text, WhitelistAnswer(whitelist=(("58",),)))


@pytest.mark.parametrize(
    "text",
    [
        f"See below.\n\nThe work.\n{WORKING}\n58 is one.\n{WORKING}\nThat is all.\n\nBye.",
        f"{WORKING}\n{' '.join(map(str, range(40, 80)))}",
        "",
    ],
)
def test_a_number_outside_of_the_conclusion_does_not_count(text: str) -> None:
    assert not matches(text, WhitelistAnswer(whitelist=(("58",),)))


def test_many_numbers_do_not_hide_a_text_nor_many_words_a_number() -> None:
    answer = WhitelistAnswer(whitelist=(("58",), ("Michigan",)))
    essay = " ".join(f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(200))
    assert matches(f"See.\n\nHere.\n{WORKING}\nMichigan\n{WORKING}\nSo 58.\n\nBye.", answer)
    assert not matches(f"It is 58. It is in Michigan {essay} there. So.\n\nWell.", answer)
    assert matches(f"It is 58. It is in Michigan. Not {essay} there. So.\n\nWell.", answer)


def test_a_blacklisted_alias_counts_outside_of_the_conclusion() -> None:
    answer = WhitelistAnswer(whitelist=(("58",),), blacklist=(("cat",), ("101",)))
    assert matches("104\n105\nIt is 58.", answer)
    assert not matches(f"{WORKING}\nIt is 58.", answer)
    assert not matches("It may be a cat. It is 58.", answer)
