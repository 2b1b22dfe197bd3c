"""Atomic families: what they write, whether it is true, and whether it is the same every time."""

import asyncio
import json
import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.datasets.atomic import load_atomic
from gta_bench.errors import GtaError, ToolError, UsageError
from gta_bench.forge.atomic import SAVED, AtomicFamily, Forged, Question, forge_with, solve_task
from gta_bench.forge.catalog import ATOMIC_FAMILIES, FAMILIES, find_atomic_families
from gta_bench.forge.draft import LEVELS, TaskDice, TaskLevel
from gta_bench.forge.pictures import Canvas
from gta_bench.forge.writing import Order, forge_tasks
from gta_bench.records.atomic import WhitelistAnswer
from gta_bench.records.dialogue import AnswerTurn
from tests.forge.scripted_tools import ScriptedTools

ALL = [*ATOMIC_FAMILIES.values()]
SEEDS = range(4)
Case = tuple[str, TaskLevel, int]


def forge(
    families: Sequence[AtomicFamily], level: TaskLevel, count: int, out: Path, misread: int = 0
) -> Forged:
    """Forge with scripted tools."""
    tools = ScriptedTools(misread)
    watched = [tools.watch(one) for one in families]
    return asyncio.run(forge_with(tools, watched, Order("public", "7", level), count, out))


def read_all(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def make(family: str, level: TaskLevel, seed: int) -> Question:
    """A question."""
    return ATOMIC_FAMILIES[family].make(TaskDice(f"test/{seed}"), level)


def texts(question: Question, picture: int = 0) -> list[str]:
    """What was written on a picture, in its order."""
    return [line.text for line in question.pictures[picture].lines]


def pairs(question: Question) -> dict[str, Fraction]:
    """The names and the prices that follow them."""
    found = texts(question)
    return {
        name: Fraction(price)
        for name, price in pairwise(found)
        if re.fullmatch(r"\d+\.\d\d", price)
    }


def cases(family: str) -> pytest.MarkDecorator:
    """Questions of every level."""
    made = [(family, level, seed) for level in LEVELS for seed in SEEDS]
    return pytest.mark.parametrize("case", made, ids=lambda one: f"{one[1]}-{one[2]}")


@pytest.mark.parametrize("level", LEVELS)
def test_a_folder_loads_without_findings_and_has_what_a_run_needs(
    level: TaskLevel, tmp_path: Path
) -> None:
    assert forge(ALL, level, 2 * len(ALL), tmp_path / "a") == Forged(2 * len(ALL), 0)
    data = load_atomic(tmp_path / "a")
    assert data.findings == () and len(data.tasks) == 2 * len(ALL)
    for name, task in data.tasks.items():
        family = ATOMIC_FAMILIES[name.split("-")[0]]
        used = [turn.call.name for turn in task.calls]
        assert {*used} <= {*family.tools} <= {*task.offered} <= {*data.tools}
        assert len(task.offered) == min(len(family.tools) + level - 1, len(data.tools))
        assert used[0] == "OCR" and task.attachments
        assert all((tmp_path / "a" / one.source).is_file() for one in task.attachments)
        last = task.dialogue[-1]
        assert isinstance(last, AnswerTurn)
        assert (
            (task.answer is None) == (last.content == SAVED) == (family.name in ("bars", "label"))
        )
        given = [one for turn in task.calls for one in turn.call.arguments.values()]
        assert any(str(one).startswith("inputs/") for one in given)


def test_a_folder_has_the_same_bytes_whether_or_not_it_was_continued(tmp_path: Path) -> None:
    count = 2 * len(ALL)
    forge(ALL, 2, count, tmp_path / "whole")
    # Other families first, then all: the order of the tasks does not tell.
    assert forge(ALL[3:5], 2, 2, tmp_path / "part").new == 2
    assert forge(ALL, 2, count, tmp_path / "part").new == count - 2
    assert read_all(tmp_path / "whole") == read_all(tmp_path / "part")
    assert forge(ALL, 2, count, tmp_path / "part").new == 0


def test_requests_and_pictures_vary(tmp_path: Path) -> None:
    for family in ALL:
        questions = [family.make(TaskDice(str(seed)), 1) for seed in range(8)]
        words = {re.sub(r"\d+|[A-Z]\w+ \w+|\b[a-z]\b", "", one.request) for one in questions}
        assert len(words) > 1, family.name
        assert len({one.pictures[0].data for one in questions}) == 8


def test_a_picture_that_the_tools_misread_is_drawn_again_and_counted(tmp_path: Path) -> None:
    receipt = [ATOMIC_FAMILIES["receipt"]]
    assert forge(receipt, 1, 2, tmp_path / "plain") == Forged(2, 0)
    assert forge(receipt, 1, 2, tmp_path / "again", misread=2) == Forged(2, 2)
    plain, again = (read_all(tmp_path / name) for name in ("plain", "again"))
    first, second = (f"image/receipt-public-7-1-0000{n}-1.png" for n in (1, 2))
    assert plain[first] != again[first] and plain[second] == again[second]
    with pytest.raises(GtaError, match="no picture of 20 led to the answer; the last: no items"):
        forge(receipt, 1, 1, tmp_path / "never", misread=100)


def test_a_tool_that_fails_stops_the_forge_and_the_same_command_continues(tmp_path: Path) -> None:
    """A busy machine must not decide which picture a number gets."""
    receipt = ATOMIC_FAMILIES["receipt"]
    tools, order = ScriptedTools(fails=True), Order("public", "7", 1)
    with pytest.raises(ToolError, match="took too long"):
        asyncio.run(forge_with(tools, [tools.watch(receipt)], order, 2, tmp_path / "a"))
    assert forge([receipt], 1, 2, tmp_path / "a") == Forged(2, 0)
    forge([receipt], 1, 2, tmp_path / "b")
    assert read_all(tmp_path / "a") == read_all(tmp_path / "b")


def test_an_answer_that_can_be_copied_from_the_picture_is_refused() -> None:
    canvas = Canvas(200, 100)
    canvas.write((10, 50), "Total 12.34", 20)

    async def solve(desk: object) -> str:
        return "12.34"

    accepted = WhitelistAnswer(whitelist=(("12.34",),))
    question = Question("How much?", (canvas.finish(),), solve, "12.34", accepted)
    family = AtomicFamily("copy", "", ("", "", ""), ("OCR",), lambda dice, level: question)
    with pytest.raises(GtaError, match="everything that can be read together is accepted"):
        asyncio.run(solve_task(ScriptedTools(), family, Order("public", "7", 1), 1))


def test_both_kinds_do_not_share_a_command_or_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="receipt is an atomic family and sales is not"):
        find_atomic_families(["sales", "receipt"])
    assert find_atomic_families(["sales"]) == []
    assert (
        find_atomic_families(["all-atomic"]) == find_atomic_families(["sign", "all-atomic"]) == ALL
    )
    assert find_atomic_families(["sign", "sign"]) == [ATOMIC_FAMILIES["sign"]]
    order, sales = Order("public", "7", 1), [FAMILIES["sales"]]
    forge_tasks(sales, order, 1, tmp_path / "w")
    with pytest.raises(UsageError, match="has tasks of workflow families"):
        forge(ALL, 1, 1, tmp_path / "w")
    forge(ALL, 1, 1, tmp_path / "a")
    with pytest.raises(UsageError, match="has tasks of atomic families"):
        forge_tasks(sales, order, 1, tmp_path / "a")
    listed = CliRunner().invoke(app, ["forge", "--list"]).stdout
    assert all(name in listed for name in ATOMIC_FAMILIES)
    assert {*ATOMIC_FAMILIES}.isdisjoint(FAMILIES)


@cases("receipt")
def test_a_receipt_adds_up(case: Case) -> None:
    question = make(*case)
    total = Fraction(0)
    for name, price in pairs(question).items():
        total += int(name.split(" x ")[0]) * price
    service = [Fraction(one[15:-1]) for one in texts(question) if one.startswith("Service charge")]
    numbers = [int(one) for one in re.findall(r"\d+", question.request)]
    wanted = total
    if case[1] == 2:
        wanted = numbers[0] - total
    elif case[1] == 3:
        wanted = total * (1 + service[0] / 100) / numbers[0]
    assert abs(Fraction(question.answer) - wanted) <= Fraction(1, 200)


@cases("prices")
def test_a_shopping_list_costs_what_it_says(case: Case) -> None:
    question = make(*case)
    wanted = question.request if case[1] < 3 else "\n".join(texts(question, 1))
    total = Fraction(0)
    for name, price in pairs(question).items():
        total += sum(int(one) for one in re.findall(rf"(\d+) x {name}\b", wanted)) * price
    if case[1] == 3:
        total = int(re.findall(r"\d+", question.request)[0]) - total
    assert Fraction(question.answer) == total


@cases("equation")
def test_values_solve_all_equations(case: Case) -> None:
    question = make(*case)
    values = dict(re.findall(r"([a-z]) = (\d+)", question.answer))
    assert len(values) == len(texts(question)) == case[1]
    for line in texts(question):
        left, right = line.split(" = ")
        for letter, value in values.items():
            left = left.replace(letter, f"*{value}")
        assert eval(left) == int(right)


@cases("graph")
def test_bars_have_the_values_that_are_written_above_them(case: Case) -> None:
    question = make(*case)
    found = texts(question)[1:]
    values = dict(zip(found[1::2], map(int, found[::2]), strict=True))
    if case[1] == 1:
        wanted = Fraction(sum(values.values()))
    elif case[1] == 2:
        a, b, c, d = re.findall(r"[A-Z]\w+", question.request.partition("do ")[2])
        wanted = Fraction(values[a] + values[b] - values[c] - values[d])
        assert wanted > 0
    else:
        limit = int(re.findall(r"\d+", question.request)[0])
        high = [one for one in values.values() if one > limit]
        wanted = Fraction(sum(high), len(high))
    assert abs(Fraction(question.answer) - wanted) <= Fraction(1, 200)


@cases("sign")
def test_a_sign_is_read_as_a_person_would(case: Case) -> None:
    question = make(*case)
    found = texts(question)[1:]
    rows = dict(zip(found[::2], (one.split(" - ") for one in found[1::2]), strict=True))
    times = re.findall(r"\d\d:\d\d", question.request)
    if case[1] == 1:
        day = next(one for one in rows if one in question.request)
        assert question.answer == rows[day][1]
    elif case[1] == 2:
        week = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
        day_at = next(at for at, day in enumerate(week) if f"{day}" in question.request)
        spans = {name: [week.index(one[:3]) for one in name.split(" to ")] for name in rows}
        name = next(one for one, span in spans.items() if span[0] <= day_at <= span[-1])
        (hour, minute), (end, past) = (
            map(int, one.split(":")) for one in (times[0], rows[name][1])
        )
        assert int(question.answer) == 60 * (end - hour) + past - minute > 0
    else:
        wanted = [shop for shop, (start, end) in rows.items() if start <= times[0] < end]
        assert question.answer == ", ".join(wanted) and 0 < len(wanted) < len(rows)


@cases("label")
def test_the_marked_dish_is_the_cheapest_or_the_dearest(case: Case) -> None:
    question = make(*case)
    menu = pairs(question)
    wanted = (min if "cheapest" in question.request else max)(menu, key=lambda one: menu[one])
    (box,) = [line.box for line in question.pictures[0].lines if line.text == wanted]
    assert question.marked == box
    if case[1] == 3:
        assert question.shown[-1] == f"Total {float(sum(menu.values())):.2f}"


@cases("bars")
def test_a_chart_shows_every_cell_of_the_table(case: Case) -> None:
    question = make(*case)
    cells = texts(question)[3 if case[1] == 3 else 2 :]
    assert [*question.shown[1:]] == cells and question.shown[0] in question.request


@pytest.mark.slow
def test_real_tools_solve_a_task_of_each_family_and_the_reference_scores_100(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    wanted = [
        "forge",
        "all-atomic",
        "--seed",
        "7",
        "--count",
        str(len(ALL)),
        "--out",
        str(data),
    ]
    forged = CliRunner().invoke(app, wanted)
    assert forged.exit_code == 0, forged.output
    assert len(load_atomic(data).tasks) == len(ALL)
    strict = {}
    for mode in ("step", "end-to-end"):
        options = ["--agent", "gold", "--similarity", "exact-or-half", "--mode", mode]
        out = tmp_path / mode
        command = ["run", "atomic", *options, "--data", str(data), "--out", str(out)]
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
        strict[mode] = json.loads((out / "scores.json").read_bytes())["strict"]
    for name in ("inst_acc", "tool_acc", "arg_acc", "summ_acc"):
        assert strict["step"][name] == 100.0, name
    assert strict["end-to-end"]["ans_acc"] == 100.0
    assert strict["end-to-end"]["ans_acc_i"] == 100.0
    assert strict["end-to-end"]["tool_call_error"] == 0
