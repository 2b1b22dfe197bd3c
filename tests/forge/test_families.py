"""What every family has, whatever it asks for; the checks themselves run in tests/slow."""

import io
import re
import zipfile
from functools import cache
from pathlib import Path

import pytest

from gta_bench.authoring.lint import lint
from gta_bench.authoring.proofs import read_authored
from gta_bench.datasets.folders import GroupEntry, LeafEntry
from gta_bench.datasets.workflow import load_workflow
from gta_bench.forge.catalog import FAMILIES
from gta_bench.forge.draft import LEVELS, TaskDice, TaskDraft, TaskFamily
from gta_bench.forge.writing import Order, list_files, make_task, write_draft

FAST = [one for one in FAMILIES.values() if "ffmpeg" not in one.needs]
# A deck takes ten seconds to draw; its own tests are in test_office_families.py.
CASES = [
    pytest.param(one, id=one.name, marks=pytest.mark.measure if one.name == "deck" else ())
    for one in FAST
]
ORDERS = [Order("public", "7", level) for level in LEVELS]


@cache
def draft_once(family: TaskFamily, order: Order) -> TaskDraft:
    """The first task of that order; documents with pages take seconds."""
    return make_task(family, order, 1)


def list_leaves(draft: TaskDraft) -> list[LeafEntry]:
    """The leaves of a draft."""
    found: list[LeafEntry] = []
    waiting = [*draft.nodes]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, GroupEntry):
            waiting += [*node.leaf, *node.group]
        else:
            found.append(node)
    return found


@pytest.mark.parametrize("family", CASES)
def test_a_family_has_gold_wrong_work_and_a_cheat_at_every_level(family: TaskFamily) -> None:
    for order in ORDERS:
        draft = draft_once(family, order)
        leaves = {one.id for one in list_leaves(draft)}
        assert len(draft.gold) == 2 and draft.cheat
        assert len(draft.wrong) >= 5
        assert {one for wrong in draft.wrong.values() for one in wrong.breaks} == leaves
        assert all(wrong.origin in draft.gold for wrong in draft.wrong.values())
        assert all(one.checks for one in list_leaves(draft))
        works = [*draft.gold.values(), *(one.work for one in draft.wrong.values())]
        assert len({repr(work) for work in works}) == len(works), "two works are the same"
        assert all(name in draft.request for name in draft.deliverables)
        assert all({*draft.deliverables} <= {*work.files} for work in works)


@pytest.mark.parametrize("family", CASES)
def test_a_family_gives_the_same_bytes_and_other_ones_for_another_seed(family: TaskFamily) -> None:
    first = dict(list_files(draft_once(family, ORDERS[0]), "a"))
    again = dict(list_files(make_task(family, ORDERS[0], 1), "a"))
    assert first == again
    others = [Order("public", "8", 1)]
    if family is FAST[0]:  # the dice have the kind and the key before a family throws them
        others += [Order("train", "7", 1), Order("private", "7", 1, b"k")]
    for order in others:
        other = dict(list_files(make_task(family, order, 1), "a"))
        assert first["request.md"] != other["request.md"] or first != other
        assert {path: data for path, data in first.items() if path.startswith("inputs/")} != {
            path: data for path, data in other.items() if path.startswith("inputs/")
        }


@pytest.mark.parametrize("family", CASES)
def test_a_family_is_without_findings_of_lint(family: TaskFamily, tmp_path: Path) -> None:
    for order in ORDERS:
        write_draft(draft_once(family, order), tmp_path, f"{family.name}-{order.level}")
    found = lint(sorted(tmp_path.iterdir())).findings
    assert [one for one in found if one.severity != "note"] == []
    assert len(load_workflow(tmp_path).tasks) == len(LEVELS)
    assert len(read_authored(tmp_path / f"{family.name}-1").of("gold")) == 2


@pytest.mark.parametrize("family", CASES)
def test_office_files_have_no_time_of_today(family: TaskFamily) -> None:
    for path, data in list_files(draft_once(family, ORDERS[0]), "a"):
        if not path.endswith((".xlsx", ".docx", ".pptx", ".zip")):
            continue
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            assert {one.date_time[0] for one in archive.infolist()} == {1980}, path
            if "docProps/core.xml" in archive.namelist():
                stamps = re.findall(rb"(\d{4})-\d\d-\d\dT", archive.read("docProps/core.xml"))
                assert {*stamps} <= {b"2023"}, path


def test_words_of_the_request_vary() -> None:
    for family in FAST:
        request = draft_once(family, ORDERS[0]).request
        others = (make_task(family, ORDERS[0], number).request for number in range(2, 7))
        assert any(other != request for other in others), family.name


def test_dice_are_of_their_key_and_secret() -> None:
    assert TaskDice("a").random() == TaskDice("a").random() != TaskDice("b").random()
    assert TaskDice("a", b"k").random() != TaskDice("a").random()
    assert f"{TaskDice('a').random():.6f}" == "0.852035"
