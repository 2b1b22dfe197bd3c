"""Hostile files: no check hangs, crashes or holds."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gta_bench.checks.outcome import is_at_fault
from gta_bench.confine.jail import Jail
from gta_bench.errors import ConfinedError
from gta_bench.records.verdicts import Scored, Unscored
from tests.checks.works import decide, deliver, value
from tests.content import samples
from tests.content.films import counting_film
from tests.content.test_hostile import CARRIERS, LAUGH_TYPE, with_entities
from tests.needs import needs

SECONDS = 60  # for all checks of a file together
NEVER = "never there"
# What no hostile file has.
CHECKS: list[dict[str, Any]] = [
    {"is": "text.contains", "all": [NEVER]},
    {"is": "text.language", "language": "th"},
    {"is": "doc.heading", "texts": [NEVER]},
    {"is": "doc.parts", "tables": 9, "pictures": 9},
    {"is": "table.shape", "head": [NEVER]},
    value("*", "North", "Revenue", 1),
    {"is": "table.sum", "column": "Revenue", "equals": 1},
    {"is": "table.order", "by": "Revenue", "unique": True},
    {"is": "xlsx.cell", "at": "A1", "equals": NEVER},
    {"is": "json.path", "path": "$.a"},
    {"is": "image.facts", "width": {"min": 5_000_000}},
    {"is": "media.facts", "seconds": {"min": 5_000_000}},
    {"is": "zip.members", "all": [NEVER]},
]


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < SECONDS


def decide_all(jail: Jail, name: str, data: bytes) -> list[Scored | Unscored]:
    work = deliver({name: data}, jail)
    return [decide(work, {"file": "*", **check}) for check in CHECKS]


def deep_xml(levels: int) -> bytes:
    return samples.docx("<w:p>" * levels + "</w:p>" * levels)


def nested_zip(levels: int) -> bytes:
    data = b"inside"
    for level in range(levels):
        data = samples.zipped({f"{level}.zip": data})
    return data


HOSTILE: dict[str, Callable[[], bytes]] = {
    "bomb.xlsx": lambda: samples.bomb({"xl/workbook.xml": b""}, 300),
    "bomb.docx": lambda: samples.bomb({"word/document.xml": b""}, 300),
    "bomb.zip": lambda: samples.bomb({"a": b""}, 300),
    "cut.pdf": lambda: samples.pdf([samples.words("x")])[:200],
    "cut.png": lambda: samples.noise(64)[:100],
    "cut.xlsx": lambda: samples.calculated_workbook()[:2000],
    "cut.pptx": lambda: samples.deck()[:5000],
    "deep.json": lambda: b"[" * 100_000,
    "deep.zip": lambda: nested_zip(60),
    "lies.xlsx": lambda: samples.image(4, 4),
    "lies.png": samples.calculated_workbook,
    "lies.pdf": lambda: samples.zipped({"a": "b"}),
    "long.md": lambda: b"|-" * 100_000 + b"\n" + b"|" * 100_000,
    "rules.md": lambda: b"|-|\n" * 20_000,
    "spaces.md": lambda: b"# " + b" " * 200_000 + b"x\n|" + b" " * 200_000 + b"-x\n",
    "nulls.csv": lambda: b"\0" * 1000,
    "empty.csv": lambda: b"",
    "quote.csv": lambda: b'"' + b"a,\n" * 200_000,
}
HEAVY: dict[str, Callable[[], bytes]] = {
    "deep.docx": lambda: deep_xml(20_000),
    "deep.html": lambda: b"<table><tr><td>" * 50_000,
    "deep.pdf": lambda: samples.pdf([samples.words("x")]).replace(
        b"/Resources << ", b"/Deep " + b"[" * 200_000 + b"]" * 200_000 + b" /Resources << "
    ),
    "million.csv": lambda: b"Region,Amount\n" + b"North,1\n" * 1_000_000,
    "million.pdf": lambda: samples.pdf([samples.words("x")]).replace(
        b"xref", b"".join(b"%d 0 obj null endobj\n" % n for n in range(9, 1_000_000)) + b"xref", 1
    ),
    "open.html": lambda: b"<a b='" * 100_000,
    "comments.html": lambda: b"<html>" + b"<!--" * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_fails_its_checks_and_nothing_else(jail: Jail, name: str) -> None:
    for verdict in decide_all(jail, name, HOSTILE[name]()):
        assert isinstance(verdict, Scored) and verdict.value == 0, verdict


@pytest.mark.slow
@pytest.mark.parametrize("name", HEAVY)
def test_a_file_that_is_too_much_gets_no_points(jail: Jail, name: str) -> None:
    for verdict in decide_all(jail, name, HEAVY[name]()):
        # Unscored if a reader was stopped: that says nothing about the work.
        assert (verdict.cause if isinstance(verdict, Unscored) else verdict.value) in (
            0,
            "check_failed",
        ), verdict


def test_a_reader_that_was_stopped_says_something_only_if_it_computed() -> None:
    def stop(*, busy: bool) -> ConfinedError:
        return ConfinedError("stopped", cause="timeout", jail="none", seconds=28.0, busy=busy)

    assert is_at_fault(stop(busy=True)) and not is_at_fault(stop(busy=False))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "data", "part", "after"), CARRIERS)
def test_a_billion_laughs_get_no_points(
    jail: Jail, name: str, data: bytes, part: str, after: bytes
) -> None:
    for verdict in decide_all(jail, name, with_entities(data, part, after, LAUGH_TYPE)):
        assert isinstance(verdict, Unscored) or verdict.value == 0, verdict


@pytest.mark.slow
@needs("ffmpeg")
def test_a_film_that_breaks_off_gets_no_points(jail: Jail, tmp_path: Any) -> None:
    film = counting_film(tmp_path, "film.mp4")
    for verdict in decide_all(jail, "cut.mp4", film[: len(film) // 2]):
        assert isinstance(verdict, Scored) and verdict.value == 0, verdict


def test_a_million_equal_values_are_found_not_to_be_unique(jail: Jail) -> None:
    rows = "".join(f"{n}\n" for n in range(100_000))
    work = deliver({"a.csv": f"Revenue\n{rows}99999\n".encode()}, jail)
    verdict = decide(work, {"is": "table.order", "file": "*", "by": "Revenue", "unique": True})
    assert isinstance(verdict, Scored) and "'99999' more than once" in verdict.reason


def test_a_deck_of_which_only_a_part_is_read_fails(
    jail: Jail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gta_bench.content.pptx.MOST_SLIDES", 1)
    work = deliver({"deck.pptx": samples.deck()}, jail)
    verdict = decide(work, {"is": "text.contains", "file": "*", "none": ["secret"]})
    assert isinstance(verdict, Scored) and "is too large: 1 of" in verdict.reason
    assert verdict.value == 0
    assert decide(work, {"is": "doc.size", "file": "*", "pages": {"min": 2}}).type == "scored"


@pytest.mark.parametrize("pattern", ["^(a+)+$", r"(a|aa)+$", "(.*a){30}$"])
def test_a_pattern_that_takes_forever_on_a_file_fails(
    jail: Jail, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    import gta_bench.checks.documents as module
    from gta_bench.confine.limits import JailLimits

    monkeypatch.setattr(module, "REGEX_LIMITS", JailLimits(wall_seconds=20.0, cpu_seconds=1))
    work = deliver({"a.txt": b"a" * 60 + b"!"}, jail)
    verdict = decide(work, {"is": "text.regex", "file": "a.txt", "pattern": pattern})
    assert isinstance(verdict, Scored) and verdict.value == 0
    assert f"a.txt: finding matches of {pattern!r} took more than 1 s" in verdict.reason


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"Region,Revenue\n" + b"North,1\n" * 500_000, "a.csv: has more than 1,000,000 cells"),
        (b"Region\n" + b"N" * (16 << 20), "a.csv: has more than 16 MiB of text"),
    ],
    ids=["cells", "bytes"],
)
def test_a_table_that_is_too_large_fails(jail: Jail, data: bytes, says: str) -> None:
    work = deliver({"a.csv": data}, jail)
    for check in (value("a.csv", "North", "Revenue", 1), {"is": "file.opens", "file": "a.csv"}):
        verdict = decide(work, check)
        assert isinstance(verdict, Scored) and (verdict.value, verdict.reason) == (0, says)
