"""The page of a task: what the system gets, and what decides its leaves."""

from pathlib import Path

import pytest

from gta_bench.authoring.lint import lint
from gta_bench.authoring.preview import describe_check, preview_task
from gta_bench.authoring.proofs import read_authored
from gta_bench.records.checks import CHECKS, TableOrder
from gta_bench.settings import Settings
from gta_bench.web.preview import render_preview
from tests.authored import write_task
from tests.authoring.folders import write_authored
from tests.content.conftest import jail

__all__ = ["jail"]

MIXED = """\
format = 1
id = "q3-sales"
tools = ["Calculator"]
[[leaf]]
id = "size"
says = "Between 2 and 5 rows, and 3 notes at most."
credit = "share"
checks = [
  { is = "table.shape", file = "plan.csv", rows = { min = 2, max = 5 }, columns = { min = 9 } },
  { is = "json.path", file = "plan.json", path = "$.notes", min = 0 },
  { is = "table.same", file = "plan.csv", reference = "gold/a/plan.csv", key = ["name"] },
]
[[leaf]]
id = "own"
says = "It is feasible."
by = "judge"
checks = [{ is = "python", run = "checks/own.py:check" }]
[[leaf]]
id = "tone"
says = "<b>Polite</b>"
levels = { 0 = "rude", 10 = "polite" }
"""


def test_the_system_gets_files_request_and_tools(tmp_path: Path, jail: object) -> None:
    found = preview_task(read_authored(write_authored(tmp_path)), Settings())
    (first, system), (second, user) = found.messages
    assert (first, second) == ("system", "user") and "may call tools" in system
    assert user.startswith("These files belong to the request: `inputs/sales.csv`\n\nSum up")
    assert len(found.tools) > 30 and found.inputs[0].text.startswith("Region,Amount")
    advice, book = found.nodes
    assert (advice.share, book.share, [one.share for one in book.children]) == (
        *(0.25, 0.75),
        [0.5, 0.25],
    )
    sums = book.children[0]
    assert sums.broken_by == ("wrong/one-sum-off",)
    assert [(one.work, one.state) for one in sums.checks[0].outcomes] == [
        ("gold/plain", "passed"),
        ("gold/wide", "passed"),
    ]
    page = render_preview(found)
    assert "summary.csv &gt; North, Revenue: found 48,210.55, wanted 48,210.55" in page
    assert "Broken by wrong/one-sum-off." in page and "The judge is not asked." in page


def test_checks_are_told_in_words_with_what_gold_gives(tmp_path: Path, jail: object) -> None:
    files = {
        "gold/a/plan.csv": b"name,hours\nAnn,38\nBob,40\n",
        "gold/a/plan.json": b"{}",
        "inputs/photo.png": b"\x89PNG\r\n\x1a\n",
        "checks/own.py": b"def check(work):\n    raise ValueError('no')\n",
    }
    found = preview_task(read_authored(write_task(tmp_path, MIXED, files=files)), Settings())
    size, own, tone = found.nodes
    shape, notes, same = size.checks
    assert shape.words == (
        "A table has that many rows below its head, columns, and these column names."
    )
    assert dict(shape.parameters) == {
        "file": "plan.csv",
        "rows": "2 to 5",
        "columns": "at least 9",
    }
    assert shape.outcomes[0].state == "failed" and notes.outcomes[0].state == "passed"
    assert "rows" not in same.parameters and same.parameters["key"] == "name"
    assert (
        own.checks[0].outcomes[0].state == "unscored" and "raise ValueError" in own.checks[0].code
    )
    assert [tool.name for tool in found.tools] == ["Calculator"] and found.inputs[0].text == ""
    page = render_preview(found)
    assert "&lt;b&gt;Polite&lt;/b&gt;\n0 points: rude\n10 points: polite" in page
    assert "Points by the share of these that hold" in page and tone.checks == ()
    assert "<script" not in page


def test_a_task_without_gold_says_so(tmp_path: Path) -> None:
    authored = read_authored(write_authored(tmp_path, without="wrong"))
    authored = authored._replace(proofs=())
    page = render_preview(preview_task(authored, Settings()))
    assert "There is no work in gold/" in page and "No work in wrong/ breaks it." in page


NEEDED = {
    "file.kind": 'kind = "csv"',
    "text.contains": 'all = ["x"]',
    "text.regex": 'pattern = "x"',
    "text.language": 'language = "en"',
    "doc.heading": 'texts = ["x"]',
    "doc.size": "pages = { max = 2 }",
    "doc.parts": "tables = 1",
    "table.shape": "rows = { min = 2 }",
    "table.value": 'row = "x", column = "x", equals = 1.5',
    "table.sum": 'column = "x", equals = 1.5',
    "table.order": 'by = "x"',
    "table.keys": 'column = "x", all = ["x"]',
    "table.same": 'reference = "checks/table.csv", key = ["x"]',
    "xlsx.cell": 'at = "A1", equals = 1.5',
    "json.path": 'path = "$.x"',
    "image.facts": "width = { min = 2 }",
    "image.text": 'all = ["x"]',
    "html.shows": 'all = ["x"]',
    "media.facts": "audio = true",
    "media.shows": 'at = 1.5, all = ["x"]',
    "media.says": 'all = ["x"]',
    "zip.members": 'all = ["x"]',
    "answer.contains": 'all = ["x"]',
    "answer.line": 'equals = "x"',
    "state.file": 'server = "x", path = "x"',
    "sqlite.query": 'server = "x", path = "x", query = "SELECT x FROM x", equals = "x"',
    "python": 'run = "checks/own.py:check"',
}


def test_every_kind_of_check_is_linted_and_shown(tmp_path: Path) -> None:
    toml = 'format = 1\nid = "q3-sales"\n[deliverables]\n"summary.csv" = "csv"\n'
    for number, kind in enumerate(CHECKS):
        fileless = "file" not in CHECKS[kind].model_fields
        own = () if fileless else ('file = "summary.csv"',)
        text = ", ".join([f'is = "{kind}"', *own, *filter(None, [NEEDED.get(kind)])])
        toml += f'[[leaf]]\nid = "n{number}"\nsays = "It is {kind}."\nchecks = [{{ {text} }}]\n'
    files = {"checks/own.py": b"def check(work):\n    return 1\n", "checks/table.csv": b"x\n1\n"}
    folder = write_task(tmp_path, toml, files=files)
    assert {one.check for one in lint([folder]).findings if one.severity == "error"} == {
        *("T23", "T33")  # most of them cannot read csv, and there is no gold
    }
    found = preview_task(read_authored(folder), Settings())
    assert [node.checks[0].kind for node in found.nodes] == [*CHECKS]
    page = render_preview(found)
    assert all(f"It is {kind}." in page for kind in CHECKS)


@pytest.mark.parametrize("kind", CHECKS)
def test_every_kind_of_check_has_a_sentence(kind: str) -> None:
    said = describe_check(CHECKS[kind])
    assert said[0].isupper() and said.endswith(".") and "`" not in said


def test_a_sentence_is_one_line() -> None:
    assert describe_check(TableOrder) == (
        "The rows are sorted by a column; with unique, no value occurs twice."
    )
