"""What readers of a file do not see does not meet a check."""

import io
from typing import Any

import pytest
from openpyxl import Workbook
from pptx import Presentation

from gta_bench.confine.jail import Jail
from gta_bench.content.shown import drop_comments, drop_vanished
from tests.checks.works import decide, deliver, points, value
from tests.content import samples

TRACE = 'w:id="1" w:author="A" w:date="2026-01-01T00:00:00Z"'
VANISH = "<w:rPr><w:vanish/></w:rPr>"
STYLED = (
    '<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    '<w:style w:type="character" w:styleId="Away"><w:rPr><w:vanish w:val="true"/></w:rPr></w:style>'
    '<w:style w:type="paragraph" w:styleId="Gone"><w:rPr><w:vanish/></w:rPr></w:style></w:styles>'
)
HIDDEN_WORDS = (
    f"<w:p><w:del {TRACE}><w:r><w:delText>deleted</w:delText></w:r></w:del></w:p>",
    f"<w:p><w:moveFrom {TRACE}><w:r><w:t>moved</w:t></w:r></w:moveFrom></w:p>",
    f"<w:p><w:r>{VANISH}<w:t>vanished</w:t></w:r></w:p>",
    '<w:p><w:r><w:rPr><w:rStyle w:val="Away"/></w:rPr><w:t>styled</w:t></w:r></w:p>',
    '<w:p><w:pPr><w:pStyle w:val="Gone"/></w:pPr><w:r><w:t>gone</w:t></w:r></w:p>',
)
SHOWN_WORDS = (
    f"<w:p><w:ins {TRACE}><w:r><w:t>inserted</w:t></w:r></w:ins></w:p>",
    '<w:p><w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>kept</w:t></w:r></w:p>',
    "<w:p><w:r><w:rPr><w:webHidden/></w:rPr><w:t>numbered</w:t></w:r></w:p>",
    f"<w:p><w:pPr>{VANISH}</w:pPr><w:r><w:t>plain</w:t></w:r></w:p>",
)


def contains(file: str, *texts: str) -> dict[str, Any]:
    return {"is": "text.contains", "file": file, "all": texts}


def test_deleted_and_hidden_words_of_a_document_do_not_count(jail: Jail) -> None:
    data = samples.docx("".join(HIDDEN_WORDS + SHOWN_WORDS), {"word/styles.xml": STYLED})
    work = deliver({"a.docx": data}, jail)
    assert points(decide(work, contains("a.docx", "inserted", "kept", "numbered", "plain"))) == 10
    for word in ("deleted", "moved", "vanished", "styled", "gone"):
        assert points(decide(work, contains("a.docx", word))) == 0, word
        lacks = {"is": "text.contains", "file": "a.docx", "none": [word]}
        assert points(decide(work, lacks)) == 0, word


def test_a_document_without_hidden_words_stays_as_it_is() -> None:
    for data in (samples.docx(samples.paragraph("x")), b"no archive"):
        assert drop_vanished(data) is data


@pytest.mark.parametrize(
    "hidden",
    [
        "<div hidden><p>SECRET</p></div>",
        "<div style='color: red; DISPLAY : none'><div>x</div>SECRET</div>",
        "<span style='visibility:hidden'>SECRET</span>",
        "<template><b>SECRET</b></template>",
        "<noscript>SECRET</noscript>",
        "<div hidden><br><img src='x'>SECRET</div>",
        "<div hidden></b>SECRET</div>",
        "<ul><li hidden>SECRET<li>shown</ul>",
        "<div><p hidden>SECRET</div>",
        "<div hidden/>SECRET</div>",
        "<h1 hidden>SECRET</h1>",
        "<table><tr hidden><td>SECRET<td>x<tr><td>shown</td></table>",
        "<!-- SECRET -->",
    ],
)
def test_hidden_parts_of_a_page_do_not_count(jail: Jail, hidden: str) -> None:
    work = deliver({"a.html": f"<p>Before</p>{hidden}<p>after</p>".encode()}, jail)
    assert points(decide(work, contains("a.html", "before", "after"))) == 10
    assert points(decide(work, contains("a.html", "secret"))) == 0
    heading = {"is": "doc.heading", "file": "a.html", "texts": ["secret"]}
    assert points(decide(work, heading)) == 0


def test_text_beside_a_hidden_part_of_a_page_counts(jail: Jail) -> None:
    page = (
        b"<input hidden><h1>Plan</h1><ul><li hidden>no<li>one</ul><p hidden>no<p>two"
        b"<table><tr hidden><td>A<td>9</tr><tr><th>A<th>B</tr><tr><td>x</td><td>1</td></tr></table>"
    )
    work = deliver({"a.html": page}, jail)
    assert points(decide(work, contains("a.html", "plan", "one", "two"))) == 10


def test_comments_of_markdown_do_not_count(jail: Jail) -> None:
    text = "# Plan\n<!--\n# Costs\n\n| a | b |\n|---|---|\n| x | 1 |\n--> after <!-- no -->\n"
    work = deliver({"a.md": text.encode()}, jail)
    assert points(decide(work, contains("a.md", "plan", "after"))) == 10
    for check in (
        contains("a.md", "no"),
        {"is": "doc.heading", "file": "a.md", "texts": ["Costs"]},
        {"is": "text.regex", "file": "a.md", "pattern": "Costs"},
        value("a.md", "x", "b", 1),
    ):
        assert points(decide(work, check)) == 0, check


def test_code_blocks_show_their_comments() -> None:
    code = "```html\n<!-- a -->\n````\n<!-- b -->x\n[//]: # (c)\n[link]: https://a.example\n"
    assert drop_comments(code) == "```html\n<!-- a -->\n````\nx\n[link]: https://a.example\n"
    assert drop_comments("~~~\n```\n<!-- a -->\n") == "~~~\n```\n<!-- a -->\n"
    assert drop_comments("a <!-- b\n```\nc") == "a "


def test_hidden_sheets_rows_and_columns_do_not_count(jail: Jail) -> None:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (("Region", "Revenue", "Cost"), ("North", 5, 2), ("South", 3, 1)):
        sheet.append(row)
    sheet.row_dimensions[3].hidden = True
    sheet.column_dimensions["C"].hidden = True
    away = book.create_sheet("Away")
    away.append(("Region", "Tax"))
    away.append(("North", 7))
    away.sheet_state = "hidden"
    out = io.BytesIO()
    book.save(out)
    work = deliver({"a.xlsx": out.getvalue()}, jail)
    assert points(decide(work, value("a.xlsx", "North", "Revenue", 5))) == 10
    total = {"is": "table.sum", "file": "a.xlsx", "column": "Revenue", "equals": 5}
    assert points(decide(work, total)) == 10
    for check in (
        value("a.xlsx", "South", "Revenue", 3),
        value("a.xlsx", "North", "Cost", 2),
        value("a.xlsx", "North", "Tax", 7),
        value("a.xlsx", "North", "Tax", 7, sheet="Away"),
        contains("a.xlsx", "tax"),
        {"is": "text.contains", "file": "a.xlsx", "none": ["tax"]},
    ):
        assert points(decide(work, check)) == 0, check


def test_hidden_slides_do_not_count(jail: Jail) -> None:
    deck = Presentation()
    for title in ("Results", "Plan"):
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        slide.shapes.title.text = title
    slide._element.set("show", "0")
    out = io.BytesIO()
    deck.save(out)
    work = deliver({"a.pptx": out.getvalue()}, jail)
    for title, score in (("Results", 10), ("Plan", 0)):
        check = {"is": "doc.heading", "file": "a.pptx", "texts": [title]}
        assert points(decide(work, check)) == score
        assert points(decide(work, contains("a.pptx", title))) == score
