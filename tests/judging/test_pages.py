"""The notes on a page that a browser rendered."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from gta_bench.content.browser import Strip, WebPage
from gta_bench.content.identify import identify
from gta_bench.content.links import find_html_references
from gta_bench.content.xlsx import Sheet, SheetCell
from gta_bench.judging.showing.draft import Draft, EvidenceLimits, Subject
from gta_bench.judging.showing.sheets import _add_sheet
from gta_bench.judging.showing.texts import _add_page, _add_refused, _without_data
from gta_bench.runs.artefacts import ArtefactStore
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from tests.content import samples
from tests.judging.shown import Desk, facts
from tests.needs import needs


def draft(folder: Path) -> Draft:
    return Draft(
        Subject(
            path="site/page.html",
            data=b"<p>",
            identity=identify("page.html", b"<p>"),
            equipment=Equipment(Settings()),
            limits=EvidenceLimits(),
            keep=ArtefactStore(folder).keep,
        )
    )


def page(**changes: object) -> WebPage:
    picture = samples.image(100, 50)
    whole: dict[str, object] = {
        "title": "T",
        "text": "two words",
        "width": 100,
        "height": 100,
        "scripts": True,
        "refused": (),
        "faults": (),
        "strips": (Strip(0, 100, 50, picture), Strip(50, 100, 50, picture)),
    }
    return WebPage(**{**whole, **changes})  # type: ignore[arg-type]


def test_a_complete_page_has_no_gaps(tmp_path: Path) -> None:
    made = draft(tmp_path)
    _add_page(made, page())
    assert [picture.label for picture in made.pictures] == [
        "the page, 0 to 50 pixels",
        "the page, 50 to 100 pixels",
    ]
    assert (made.cut, made.findings) == ([], [])


def test_gaps_and_faults_are_reported(tmp_path: Path) -> None:
    made = draft(tmp_path)
    _add_page(made, page(width=3000, height=9000, scripts=False, faults=("Error: no",)))
    assert made.cut == [
        "the page below 100 of 9,000 pixels is not shown",
        "the page right of 100 of 3,000 pixels is not shown",
    ]
    assert made.findings == [
        "its scripts come to no end: the page is shown without them",
        'script errors: "Error: no"',
    ]


def test_requests_that_the_source_names_are_not_reported_twice(tmp_path: Path) -> None:
    made = draft(tmp_path)
    references = find_html_references('<img src="a b.png"><img src="https://web.invalid/x">')
    refused = ("site/a%20b.png", "https://web.invalid/x", "site/by-script.json")
    _add_refused(made, page(refused=refused), references)
    assert made.findings == ['further requests that got no answer: "site/by-script.json"']


def test_embedded_bytes_are_left_out_of_the_source(tmp_path: Path) -> None:
    made = draft(tmp_path)
    short = _without_data(made, f'<img src="data:image/png;base64,{"A" * 5000}"> x')
    assert short == '<img src="data:… (5,022 characters)"> x'
    assert made.cut == ["the bytes of 1 embedded files are left out of the source"]


@pytest.mark.slow
@needs("bwrap", "chromium")
def test_a_page_depends_on_what_its_style_sheet_loads(desk: Desk) -> None:
    files = {
        "p.html": b'<link href="css/s.css"><a href="gone.html">',
        "css/s.css": b"a{b:url(x.png)}",
    }
    first = desk.show({**files, "css/x.png": samples.image(1, 1)})["p.html"]
    assert facts(first)["broken links"] == 1
    entries = len(list(desk.store.folder.glob("**/*.json")))
    desk.show({**files, "css/x.png": samples.image(2, 2)})
    assert len(list(desk.store.folder.glob("**/*.json"))) == entries + 2, "the picture and the page"


@pytest.mark.parametrize(
    ("rows", "cut"),
    [
        ([1, 400, 1_048_576], ["empty rows"]),
        ([*range(1, 200), 400, 500, 1_048_576], ["empty rows", "rows 401 to 1,048,576"]),
        (range(1, 301), ["rows 201 to 300"]),
    ],
    ids=["sparse", "sparse and long", "full"],
)
def test_rows_of_a_sheet_that_are_shown_are_not_said_to_be_cut(
    rows: Sequence[int], cut: list[str], tmp_path: Path
) -> None:
    """Row 400 was shown, but reported as not shown."""
    made = draft(tmp_path)
    cells = tuple(SheetCell(row, 1, f"in row {row}", "text", None) for row in rows)
    _add_sheet(made, Sheet("S", False, rows[-1], 1, cells, ()))
    assert [words.partition(" of sheet")[0] for words in made.cut] == cut
