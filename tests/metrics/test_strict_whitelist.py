"""The boundary-aware rule: signs can match, numbers are never cut."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.strict.outcome import matches
from gta_bench.records.atomic import AtomicTask, WhitelistAnswer
from gta_bench.records.steps import AnswerStep

FOUND = [
    ("58", "58"),
    ("58", "The answer is 58."),
    ("58", "58, 60"),
    ("58", "57,58"),
    ("58", "(58)"),
    ("58", "58.00"),
    ("58", "$58"),
    ("58", "58%"),
    ("58", "**58**"),
    ("58", r"\boxed{58}"),
    ("58", "40-58"),
    ("3", "13-3"),
    ("3", "10 - 3 = 7"),
    ("60%", "50%-60%"),
    ("1797", "1,797"),
    ("24,185", "24185"),
    ("24185", "24,185.00 in all"),
    ("22.5", "22.50"),
    ("0.44", ".44"),
    ("2012", "12.05.2012"),
    ("2012", "2012/05/12"),
    ("-3", "-3"),
    ("-3", "The answer is -3."),
    ("-3", "x=-3"),
    ("-3", "x = \u22123"),
    ("-3", "($-3$)"),
    ("-3", r"\boxed{-3}"),
    ("-3", "-3.0"),
    ("-3", "2 or -3"),
    ("$12", "$12"),
    ("$12", "It costs $12."),
    ("$12", "US$12"),
    ("$12", "$ 12"),
    ("$12", r"\$12.00"),
    ("$2697", "$2,697"),
    ("-$12", "a loss of -$12"),
    ("$-12", "a loss of -$12"),
    ("50%", "50%"),
    ("50%", "it is 50 %."),
    ("50%", r"50\%"),
    ("50%", "50.0%"),
    ("C++", "C++"),
    ("C++", "in c++."),
    ("C++", "C++ and C"),
    ("C#", "C#, Java"),
    ("#1", "we are #1"),
    (r"-\sqrt{2}", r"x = -\sqrt{2}"),
    (r"-\sqrt{2}", r"\boxed{-\sqrt{2}}"),
    ("London", "in LONDON, of course"),
    ("New York", "New\nYork"),
    ("Grandma's Slice", "grandma\u2019s slice"),
    ("blue", "blue-green"),
    ("14:00-16:30", "14:00\u201316:30"),
    ("7:04", "at 7:04."),
    ("48 million", "about 48 million"),
    ("i5-14600KF", "the i5-14600KF"),
    ("Q4", "Q4"),
    ("007", "agent 007"),
    ("20 degrees", "up to 20 degrees"),
    ("room 12", "room 12, 13"),
    ("  padded ", "padded"),
    ("\u00e9", "\u00e9"),
]

NOT_FOUND = [
    ("58", "158"),
    ("58", "581"),
    ("58", "58.5"),
    ("58", "58,000"),
    ("58", "1.58"),
    ("58", "1,258"),
    ("58", ".58"),
    ("58", "-58"),
    ("58", "x = \u221258"),
    ("58", "-$58"),
    ("58", "58kg"),
    ("58", "58.5kg"),
    ("58", "x58"),
    ("5", "v1.5"),
    ("1", "1.5GB"),
    ("58", "58_000"),
    ("13", "13th May"),
    ("4", "7:04"),
    ("3", "x = -3"),
    ("-3", "3"),
    ("-3", "13-3"),
    ("-3", "a-3"),
    ("-3", "(2)-3"),
    ("-3", "-3.5"),
    ("-3", "-35"),
    ("-3", "-3,000"),
    ("$12", "12"),
    ("$12", "$12.5"),
    ("$12", "$120"),
    ("$12", "-$12"),
    ("$12", "\u20ac12"),
    ("50%", "50"),
    ("50%", "150%"),
    ("50%", "0.50%"),
    ("50%", "-50%"),
    ("C++", "C"),
    ("C+", "C++"),
    ("C++", "ABC++"),
    (r"-\sqrt{2}", r"1-\sqrt{2}"),
    ("London", "Londonderry"),
    ("7:04", "17:04"),
    ("7:04", "7:045"),
    ("48 million", "1.48 million"),
    ("48 million", "-48 million"),
    ("48 million", "loss: -48 million"),
    ("room 12", "room 12.5"),
    ("room 12", "room 12,500"),
    ("007", "1007"),
    ("3.14", "3x14"),
    ("", "anything"),
    (" ", "anything"),
]


def accepts(alias: str, text: str) -> bool:
    return matches(text, WhitelistAnswer(whitelist=((alias,),)))


@pytest.mark.parametrize(("alias", "text"), FOUND)
def test_an_alias_that_stands_alone_is_found(alias: str, text: str) -> None:
    assert accepts(alias, text)


@pytest.mark.parametrize(("alias", "text"), NOT_FOUND)
def test_a_piece_of_something_longer_is_not_the_alias(alias: str, text: str) -> None:
    assert not accepts(alias, text)


def test_every_group_is_needed_and_any_alias_of_it_will_do() -> None:
    answer = WhitelistAnswer(whitelist=(("12", "twelve"), ("-3",)))
    assert matches("twelve or -3", answer)
    assert not matches("12", answer)


def test_nothing_of_the_blacklist_may_be_named() -> None:
    answer = WhitelistAnswer(whitelist=(("12",),), blacklist=(("13",), ("50%",)))
    assert matches("12, not 13th", answer)
    assert not matches("12 or 50%", answer)


def test_an_empty_whitelist_takes_any_answer_but_a_blank_one() -> None:
    answer = WhitelistAnswer(whitelist=())
    assert matches("anything", answer)
    assert not matches(" \n", answer)


def test_the_references_match_in_all_whitelist_tasks_but_two(
    atomic_tasks: Mapping[str, AtomicTask],
) -> None:
    """115 has no final turn; the final text of 211 lacks the answer."""
    missed = []
    for name, task in atomic_tasks.items():
        last = reference_steps(task)[-1]
        if isinstance(task.answer, WhitelistAnswer) and not (
            isinstance(last, AnswerStep) and matches(last.content, task.answer)
        ):
            missed.append(name)
    assert missed == ["115", "211"]


@given(st.text(), st.lists(st.text(), max_size=3))
def test_no_text_and_no_alias_can_break_the_matcher(text: str, aliases: list[str]) -> None:
    answer = WhitelistAnswer(whitelist=(tuple(aliases),), blacklist=((text,),))
    assert matches(text, answer) in (True, False)


@given(st.integers(-(10**40), 10**40), st.sampled_from(["", "$", "%"]))
def test_every_number_matches_itself_in_a_sentence(number: int, sign: str) -> None:
    alias = f"{number}%" if sign == "%" else f"{sign}{number}"
    assert accepts(alias, f"So it is {alias}.")
    assert not accepts(alias, f"So it is {alias.rstrip('%')}7{sign}.")


@given(st.integers(1000, 10**12))
def test_thousands_separators_do_not_change_a_number(number: int) -> None:
    assert accepts(str(number), f"{number:,}")
    assert accepts(f"{number:,}", f"{number}.00")
