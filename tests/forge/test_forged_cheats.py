"""Work that once passed although it was wrong, or failed although it was right, at every level."""

import asyncio
import csv
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gta_bench.checks.decide import decide_leaf
from gta_bench.confine.jail import Jail
from gta_bench.datasets.folders import load_task
from gta_bench.forge.catalog import FAMILIES
from gta_bench.forge.draft import LEVELS, TaskDraft, TaskLevel, Work
from gta_bench.forge.files import pack
from gta_bench.forge.phrases import FILLER, LANGUAGES
from gta_bench.forge.writing import Order, list_task_files, make_task, write_files
from gta_bench.records.verdicts import Scored
from tests.checks.works import deliver
from tests.content.conftest import jail

__all__ = ["jail"]

every_level = pytest.mark.parametrize("level", LEVELS)
Judged = Callable[[TaskDraft, Work, Sequence[str]], set[str]]


@pytest.fixture
def failed(jail: Jail, tmp_path: Path) -> Judged:
    """Return which of these leaves a work fails."""

    def find(draft: TaskDraft, work: Work, leaves: Sequence[str]) -> set[str]:
        write_files(tmp_path / "task", list_task_files(draft, "task"))
        task = load_task(tmp_path / "task")
        given = deliver(work.files, jail, work.answer)
        lost = set()
        for leaf in task.leaves():
            if leaf.id in leaves:
                verdict = asyncio.run(decide_leaf(leaf, given))
                assert isinstance(verdict, Scored), verdict
                lost |= {leaf.id} if verdict.value < 10 else set()
        return lost

    return find


def forge(name: str, level: TaskLevel) -> tuple[TaskDraft, Work]:
    """A task without its other works, and its first gold."""
    draft = make_task(FAMILIES[name], Order("public", "cheats", level), 1)
    return replace(draft, wrong={}, cheat={}), next(iter(draft.gold.values()))


def read(work: Work, file: str) -> list[list[str]]:
    return [*csv.reader(io.StringIO(work.files[file].decode()))]


def write(work: Work, file: str, rows: Iterable[Sequence[str]]) -> Work:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return work._replace(files={**work.files, file: text.getvalue().encode()})


@every_level
def test_one_sentence_does_not_translate_every_text(level: TaskLevel, failed: Judged) -> None:
    draft, gold = forge("terms", level)
    head, *rows = read(gold, "translated.csv")
    whole = " ".join(text for _, text in rows)
    leaves = ("keys", "fields", "terms", "own")
    same = write(gold, "translated.csv", [head, *((key, whole) for key, _ in rows)])
    assert failed(draft, same, leaves) == {"fields", "terms", "own"}
    # Numbers and keys do not make one sentence several.
    counted = [(key, f"Ein und derselbe Text {at} {key}") for at, (key, _) in enumerate(rows)]
    assert "own" in failed(draft, write(gold, "translated.csv", [head, *counted]), ("own",))


@every_level
def test_an_archive_has_the_wanted_members_and_no_other(level: TaskLevel, failed: Judged) -> None:
    draft, gold = forge("bundle", level)
    leaves = ("members", "contents", "junk", "copies", "others")
    with zipfile.ZipFile(io.BytesIO(gold.files["bundle.zip"])) as archive:
        tidy = {one: archive.read(one) for one in archive.namelist()}
    with zipfile.ZipFile(io.BytesIO(draft.inputs["delivery.zip"])) as archive:
        given = {one: archive.read(one) for one in archive.namelist()}

    def deliver_members(members: dict[str, bytes]) -> set[str]:
        changed = gold._replace(files={**gold.files, "bundle.zip": pack(members)})
        return failed(draft, changed, leaves)

    first = next(iter(tidy))
    assert deliver_members({**tidy, **given}) == {"junk", "copies"}
    assert deliver_members({**tidy, "evil.exe": b"MZ"}) == {"others"}
    assert deliver_members({**tidy, "pictures/.DS_Store": b"Bud1"}) == {"junk"}
    assert deliver_members({**tidy, "notes/again.txt": tidy[first]}) == {"copies"}
    assert deliver_members({f"./{path}": data for path, data in tidy.items()}) == set()


@every_level
def test_an_index_has_no_other_entry(level: TaskLevel, failed: Judged) -> None:
    draft, gold = forge("bundle", level)
    index = json.loads(gold.files["index.json"])
    index["files"]["ghost.txt"] = {"sha256": "0" * 64, "bytes": 1, "kind": "text"}
    changed = gold._replace(files={**gold.files, "index.json": json.dumps(index).encode()})
    assert failed(draft, changed, ("listed", "hashes", "kinds")) == {"listed"}


@every_level
def test_a_list_of_differences_has_no_other_row(level: TaskLevel, failed: Judged) -> None:
    draft, gold = forge("invoices", level)
    rows, leaves = read(gold, "differences.csv"), ("found", "none-invented", "sum")
    extra = write(gold, "differences.csv", [*rows, ["R11111", "not booked", "1", "0", "1"]])
    assert failed(draft, extra, leaves) == {"none-invented"}
    total = write(gold, "differences.csv", [*rows, ["Sum", "", "", "", "5"]])
    assert failed(draft, total, leaves) == {"none-invented"}
    blank = write(gold, "differences.csv", [*rows, [""] * 5])
    assert failed(draft, blank, leaves) == set()


@every_level
def test_a_clean_list_has_no_invented_member_and_no_other_writing(
    level: TaskLevel, failed: Judged
) -> None:
    draft, gold = forge("clean", level)
    head, first, *rows = read(gold, "clean.csv")
    leaves = ("complete", "unique", "members", "names", "fees")
    two = [["M99998", *first[1:]], ["M99999", *first[1:]]]
    assert failed(draft, write(gold, "clean.csv", [head, first, *rows, *two]), leaves) == {
        "members"
    }
    wide = [first[0], first[1].replace(" ", "  "), *first[2:]]
    assert failed(draft, write(gold, "clean.csv", [head, wide, *rows]), leaves) == {"names"}
    long = [*first[:4], f"{first[4]}000"]
    assert failed(draft, write(gold, "clean.csv", [head, long, *rows]), leaves) == {"fees"}


@every_level
def test_a_part_of_a_plan_is_none_and_slots_may_have_a_decimal(
    level: TaskLevel, failed: Judged
) -> None:
    draft, gold = forge("schedule", level)
    head, *rows = read(gold, "plan.csv")
    leaves = ("complete", "rooms", "speakers")
    half = write(gold, "plan.csv", [head, *rows[: len(rows) // 2 + 1]])
    assert failed(draft, half, leaves) == {*leaves}
    repeated = write(gold, "plan.csv", [head, *[rows[0]] * len(rows)])
    assert failed(draft, repeated, leaves) == {*leaves}
    pandas = [[*row[:2], f"{row[2]}.0"] for row in rows]
    assert failed(draft, write(gold, "plan.csv", [head, *pandas, [" ", "", ""]]), leaves) == set()


@every_level
@pytest.mark.parametrize(
    ("family", "leaf"),
    [("sales", "best"), ("chart", "best"), ("invoices", "sum"), ("budget", "named")],
)
def test_an_answer_is_neither_a_list_nor_a_denial(
    family: str, leaf: str, level: TaskLevel, failed: Judged
) -> None:
    draft, gold = forge(family, level)
    assert "`Answer: " in draft.request
    value = gold.answer.rpartition("Answer: ")[2]

    def answer(text: str) -> set[str]:
        return failed(draft, Work({}, text), (leaf,))

    assert answer(gold.answer) == answer(f"Done.\n\n**Answer:** {value}.") == set()
    for text in (
        "",
        value,
        f"Answer: not {value}",
        f"Answer: one of {value}, 7, Yarrow",
        f"Not {value}.\nAnswer: -5",
        f"Answer: {value}\nAnswer: 7",
    ):
        assert answer(text) == {leaf}, text


def test_a_clean_list_has_its_form_and_its_ids(failed: Judged) -> None:
    draft, gold = forge("clean", 1)
    head, *rows = read(gold, "clean.csv")
    leaves = ("complete", "members", "columns", "names")

    def change(*lines: Sequence[str]) -> set[str]:
        return failed(draft, write(gold, "clean.csv", lines), leaves)

    assert change(head, *rows, [], []) == set()
    assert change(head, *([row[0].lower(), *row[1:]] for row in rows)) == {"members"}
    assert change(head, *([f" {cell}" for cell in row] for row in rows)) >= {"columns"}
    assert change(head, *([*row, "junk"] for row in rows)) == {"columns"}
    assert change(head, rows[0], [""] * 5, *rows[1:]) == {"columns"}


@every_level
def test_words_without_a_meaning_are_no_translation(level: TaskLevel, failed: Judged) -> None:
    draft, gold = forge("terms", level)
    head, *rows = read(gold, "translated.csv")
    words = FILLER[LANGUAGES[head[1]]].split()
    kept = [re.findall(r"\{\w+\}", text) for _, text in rows]
    texts = [" ".join([*words[: 3 + at % 9], *fields]) for at, fields in enumerate(kept)]
    made = [(row[0], text) for row, text in zip(rows, texts, strict=True)]
    assert "meaning" in failed(draft, write(gold, "translated.csv", [head, *made]), ("meaning",))


def test_an_index_does_not_name_a_member_twice(failed: Judged) -> None:
    draft, gold = forge("bundle", 1)
    twice = b'{"files": {}, "total_bytes": 1, ' + gold.files["index.json"].strip()[1:]
    changed = gold._replace(files={**gold.files, "index.json": twice})
    leaves = ("listed", "hashes", "total")
    assert failed(draft, changed, leaves) == {*leaves}
