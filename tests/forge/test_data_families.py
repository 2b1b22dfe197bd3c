"""The families about data: their truth, computed again from the inputs by other means."""

import csv
import hashlib
import io
import json
import re
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import pypdfium2
import pytest

from gta_bench.datasets.folders import GroupEntry, LeafEntry
from gta_bench.forge.catalog import FAMILIES
from gta_bench.forge.draft import LEVELS, TaskDraft, TaskLevel, Work
from gta_bench.forge.writing import Order, list_files, make_task
from gta_bench.records.checks import AnswerLine, JsonPath, TableValue

NAMES = ("bundle", "clean", "invoices", "schedule", "terms")
MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
every_level = pytest.mark.parametrize("level", LEVELS)
every_seed = pytest.mark.parametrize("seed", ["1", "autumn"])


def forge(name: str, level: TaskLevel, seed: str = "1") -> TaskDraft:
    return make_task(FAMILIES[name], Order("public", seed, level), 1)


def find_leaves(draft: TaskDraft) -> dict[str, LeafEntry]:
    leaves: dict[str, LeafEntry] = {}
    for node in draft.nodes:
        for one in node.leaf if isinstance(node, GroupEntry) else (node,):
            leaves[one.id] = one
    return leaves


def read_rows(data: bytes) -> list[dict[str, str]]:
    text = data.decode("utf-8-sig")
    separator = ";" if '";"' in text else ","
    return [*csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)]


def wanted(draft: TaskDraft) -> dict[tuple[str, str], object]:
    """What the checks of cells want, by row and column."""
    checks = [check for leaf in find_leaves(draft).values() for check in leaf.checks]
    return {(one.row, one.column): one.equals for one in checks if isinstance(one, TableValue)}


@pytest.mark.parametrize("name", NAMES)
@every_level
@every_seed
def test_golds_differ_in_every_file_and_works_have_all_files(
    name: str, level: TaskLevel, seed: str
) -> None:
    draft = forge(name, level, seed)
    one, two = draft.gold.values()
    assert all(one.files[file] != two.files[file] for file in draft.deliverables)
    works = [*draft.gold.values(), *(wrong.work for wrong in draft.wrong.values())]
    assert all({*work.files} == {*draft.deliverables} for work in works)


@pytest.mark.parametrize("name", NAMES)
@every_level
def test_bytes_depend_on_neither_clock_nor_time_zone(
    name: str, level: TaskLevel, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = dict(list_files(forge(name, level), "a"))
    now, local = time.time, time.localtime
    later = 40_000_000.0
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    monkeypatch.setattr(time, "time", lambda: now() + later)
    monkeypatch.setattr(
        time, "localtime", lambda when=None: local(now() + later if when is None else when)
    )
    try:
        assert dict(list_files(forge(name, level), "a")) == first
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("name", NAMES)
def test_the_wording_varies_by_seed(name: str) -> None:
    requests = [forge(name, 1, str(seed)).request for seed in range(6)]
    assert len({*requests}) > 3
    assert len({request[:12] for request in requests}) > 1


@every_level
@every_seed
def test_clean_wants_what_a_second_reading_of_the_list_gives(level: TaskLevel, seed: str) -> None:
    draft = forge("clean", level, seed)
    days_first = "day/month/year" in draft.request
    found: dict[str, tuple[str, ...]] = {}
    for row in csv.reader(io.StringIO(draft.inputs["members.csv"].decode())):
        if not re.fullmatch(r"M\d{4}", row[0]) or row[5:] == ["left"]:
            continue
        name, city = (" ".join(part.capitalize() for part in one.split()) for one in row[1:3])
        fee = re.sub(r"[^\d.]", "", row[4])
        member = (name, city, _read_day(row[3], days_first), fee)
        assert found.setdefault(row[0], member) == member, "a repeated line says something else"
    values = wanted(draft)
    assert {row for row, _ in values} == {*found}
    for key, (name, city, day, fee) in found.items():
        assert values[key, "Name"] == name
        assert values[key, "City"] == city
        assert values[key, "Joined"] == day
        assert values[key, "Fee"] == fee
    for gold in draft.gold.values():
        rows = read_rows(gold.files["clean.csv"])
        assert {row["ID"]: tuple(row.values())[1:] for row in rows} == found
        assert [row["ID"] for row in rows] == sorted(found)


def _read_day(text: str, days_first: bool) -> str:
    if "/" in text:
        one, two, year = text.split("/")
        day, month = (one, two) if days_first else (two, one)
        return f"{year}-{int(month):02}-{int(day):02}"
    if " " in text:
        day, name, year = text.split()
        return f"{year}-{MONTHS.index(name) // 3 + 1:02}-{int(day):02}"
    return text


@every_level
@every_seed
def test_terms_keeps_keys_and_fields_and_uses_the_glossary(level: TaskLevel, seed: str) -> None:
    draft = forge("terms", level, seed)
    source = [(row["Key"], row["English"]) for row in read_rows(draft.inputs["texts.csv"])]
    terms = {row.pop("English"): row for row in read_rows(draft.inputs["glossary.csv"])}
    for gold in draft.gold.values():
        rows = [tuple(row.values()) for row in read_rows(gold.files["translated.csv"])]
        assert [key for key, _ in rows] == [key for key, _ in source]
        for (_, english), (_, text) in zip(source, rows, strict=True):
            assert text != english
            assert Counter(re.findall(r"\{.*?\}", text)) == Counter(
                re.findall(r"\{.*?\}", english)
            )  # fmt: skip
            for term, translated in terms.items():
                if re.search(rf"\b{term}\b", english):
                    assert next(iter(translated.values())) in text
    used = {term for term in terms if any(term in english.lower() for _, english in source)}
    assert len(used) >= 3


@every_level
@every_seed
def test_bundle_indexes_what_the_archive_really_has(level: TaskLevel, seed: str) -> None:
    draft = forge("bundle", level, seed)
    kept: dict[bytes, str] = {}
    with zipfile.ZipFile(io.BytesIO(draft.inputs["delivery.zip"])) as archive:
        for path in sorted(archive.namelist()):
            if path.rpartition("/")[2] not in (".DS_Store", "Thumbs.db", "~$draft.docx"):
                kept.setdefault(archive.read(path), path.rpartition("/")[2])
    expected = {}
    for data, name in kept.items():
        kind, folder = _tell_kind(data)
        digest = hashlib.sha256(data).hexdigest()
        expected[f"{folder}/{name}"] = {"sha256": digest, "bytes": len(data), "kind": kind}
    index = {"files": expected, "total_bytes": sum(map(len, kept))}
    for gold in draft.gold.values():
        assert json.loads(gold.files["index.json"]) == index
        with zipfile.ZipFile(io.BytesIO(gold.files["bundle.zip"])) as archive:
            assert {one: len(archive.read(one)) for one in archive.namelist()} == {
                path: about["bytes"] for path, about in expected.items()
            }
    checks = [check for leaf in find_leaves(draft).values() for check in leaf.checks]
    paths = {check.path: check.equals for check in checks if isinstance(check, JsonPath)}
    assert paths.pop("$.total_bytes") == index["total_bytes"]
    assert paths.pop("$.*") is None and paths.pop("$.files.*") is None
    assert {path: paths.pop(f"$.files['{path}']") for path in expected} == dict.fromkeys(expected)
    assert paths == {
        f"$.files['{path}'].{key}": value
        for path, about in expected.items()
        for key, value in about.items()
    }


def _tell_kind(data: bytes) -> tuple[str, str]:
    if data.startswith(b"\x89PNG"):
        return "png", "pictures"
    if data.startswith(b"{"):
        return "json", "data"
    commas = {line.count(b",") for line in data.splitlines()}
    return ("csv", "tables") if commas == {2} else ("text", "notes")


class ReadPlan:
    """The part of a check's argument that the family's checks use."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def tables(self, path: str) -> list[list[list[str]]]:
        assert path == "plan.csv"
        return [[*csv.reader(io.StringIO(self.data.decode()))]]


def load_checks(draft: TaskDraft) -> dict[str, Callable[[ReadPlan], Mapping[str, Any]]]:
    names: dict[str, Any] = {}
    exec(draft.checks["plan.py"], names)
    return {name: names[name] for name in find_leaves(draft)}


@every_level
@every_seed
def test_the_rules_of_schedule_pass_every_gold_and_fail_exactly_what_is_broken(
    level: TaskLevel, seed: str
) -> None:
    draft = forge("schedule", level, seed)
    checks = load_checks(draft)

    def failed(work: Work) -> set[str]:
        plan = ReadPlan(work.files["plan.csv"])
        return {name for name, check in checks.items() if not check(plan)["score"]}

    assert [failed(gold) for gold in draft.gold.values()] == [set(), set()]
    for wrong in draft.wrong.values():
        assert failed(wrong.work) == {*wrong.breaks}
    for cheat in draft.cheat.values():
        assert failed(cheat) == {*checks}


@every_level
@every_seed
def test_plans_of_schedule_meet_the_given_file(level: TaskLevel, seed: str) -> None:
    draft = forge("schedule", level, seed)
    given = json.loads(draft.inputs["sessions.json"])
    for gold in draft.gold.values():
        rows = read_rows(gold.files["plan.csv"])
        slot = {row["Session"]: int(row["Slot"]) for row in rows}
        assert sorted(slot) == sorted(given["sessions"]) and len(rows) == len(slot)
        assert len({(row["Room"], row["Slot"]) for row in rows}) == len(rows)
        taken = {(given["sessions"][name]["speaker"], at) for name, at in slot.items()}
        assert len(taken) == len(rows)
        for row in rows:
            session, room = given["sessions"][row["Session"]], given["rooms"][row["Room"]]
            at = slot[row["Session"]]
            assert session["seats"] <= room["seats"]
            assert all(one in room["has"] for one in session["needs"])
            assert at not in given["away"].get(session["speaker"], ())
            assert session["after"] is None or slot[session["after"]] < at
            assert 1 <= at <= given["latest_slot"] < given["slots"]


def read_pdf_text(data: bytes) -> Iterator[str]:
    document = pypdfium2.PdfDocument(data)
    try:
        for page in document:
            yield page.get_textpage().get_text_bounded()
    finally:
        document.close()


@every_level
@every_seed
def test_invoices_wants_the_differences_of_pdfs_and_ledger(level: TaskLevel, seed: str) -> None:
    draft = forge("invoices", level, seed)
    invoiced: dict[str, Decimal] = {}
    for name, data in draft.inputs.items():
        if name.endswith(".pdf"):
            text = "\n".join(read_pdf_text(data))
            (printed,) = re.findall(r"Invoice (R\d+)", text)
            (amount,) = re.findall(r"Total ([\d,.]+)", text)
            assert name == f"{printed}.pdf"
            invoiced[printed] = Decimal(amount.replace(",", ""))
    booked: defaultdict[str, Decimal] = defaultdict(Decimal)
    for row in read_rows(draft.inputs["ledger.csv"]):
        booked[row["Invoice no."]] += Decimal(row["Amount"])
    expected: dict[tuple[str, str], object] = {}
    for number in {*invoiced, *booked}:
        bill, entry = invoiced.get(number), booked.get(number)
        if bill != entry:
            problem = "no invoice" if bill is None else "other amount" if entry else "not booked"
            expected[number, "Problem"] = problem
            bill, entry = bill or Decimal(0), entry or Decimal(0)
            expected[number, "Invoiced"], expected[number, "Booked"] = float(bill), float(entry)
            expected[number, "Difference"] = float(bill - entry)
    assert wanted(draft) == expected
    total = sum(invoiced.values(), Decimal(0)) - sum(booked.values())
    (check,) = find_leaves(draft)["sum"].checks
    assert isinstance(check, AnswerLine) and check.equals == float(total)
    for gold in draft.gold.values():
        rows = read_rows(gold.files["differences.csv"])
        assert {row["Number"] for row in rows} == {number for number, _ in expected}
        assert f"{total:.2f}" in gold.answer.replace(",", "")


def test_swapped_cities_are_different_ones() -> None:
    """The first two members of this task live in one city, so that the wrong work was right."""
    draft = make_task(FAMILIES["clean"], Order("public", "1", 2), 5)
    wrong = draft.wrong["cities-swapped"]
    assert wrong.work.files != draft.gold[wrong.origin].files
