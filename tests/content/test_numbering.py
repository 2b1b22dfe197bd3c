"""Labels of lists and headings as Word shows them, where pandoc counts 1, 2, 3."""

import asyncio
import io
import re
import zipfile
from xml.etree import ElementTree

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.content.docx import add_list_labels, read_docx
from tests.content import samples

KINDS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
LINKS = "http://schemas.openxmlformats.org/package/2006/relationships"
STYLES = (
    '<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/><w:pPr><w:numPr>'
    '<w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    '<w:style w:type="paragraph" w:styleId="Clause"><w:name w:val="Clause"/>'
    '<w:basedOn w:val="Heading1"/></w:style>'
)


def level(place: int, form: str, text: str, more: str = "", start: int = 1) -> str:
    return (
        f'<w:lvl w:ilvl="{place}"><w:start w:val="{start}"/><w:numFmt w:val="{form}"/>{more}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def item(text: str, place: int = 0, number: int = 1) -> str:
    numbered = f'<w:numPr><w:ilvl w:val="{place}"/><w:numId w:val="{number}"/></w:numPr>'
    indent = '<w:ind w:left="720"/>'
    return f"<w:p><w:pPr>{numbered}{indent}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def document(body: str, *levels: str, change: str = "", styles: str = "") -> bytes:
    """A document with one list (1), and another (2) of the same kind with a change."""
    lists = (
        f'<w:abstractNum w:abstractNumId="5">{"".join(levels)}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="5"/></w:num>'
        f'<w:num w:numId="2"><w:abstractNumId w:val="5"/>{change}</w:num>'
    )
    entries = "".join(
        f'<Relationship Id="r{name}" Type="{KINDS}/{name}" Target="{name}.xml"/>'
        for name in ("numbering", "styles")
    )
    relations = f'<Relationships xmlns="{LINKS}">{entries}</Relationships>'
    space = f'xmlns:w="{samples.WORD}"'
    return samples.docx(
        body,
        {
            "word/numbering.xml": f"<w:numbering {space}>{lists}</w:numbering>",
            "word/styles.xml": f"<w:styles {space}>{styles}</w:styles>",
            "word/_rels/document.xml.rels": relations,
        },
    )


def lines(data: bytes) -> list[str]:
    """The paragraphs of the copy, without any markup."""
    with zipfile.ZipFile(io.BytesIO(add_list_labels(data).data)) as archive:
        source = archive.read("word/document.xml").decode()
    ElementTree.fromstring(source)
    return [re.sub("<[^<>]+>", "", one) for one in source.split("</w:p>")[:-1]]


ARTICLE = level(0, "upperRoman", "ARTICLE %1:", start=7)
USUAL = (level(0, "decimal", "%1."), level(1, "lowerLetter", "%2."), level(2, "lowerRoman", "%3."))


@pytest.mark.parametrize(
    ("levels", "body", "expected"),
    [
        ((ARTICLE,), item("Pay") + item("Term"), ["ARTICLE VII: Pay", "ARTICLE VIII: Term"]),
        (
            (level(0, "decimal", "%1."), level(1, "decimal", "%1.%2")),
            item("a") + item("b", 1) + item("c", 1) + item("d") + item("e", 1),
            ["1. a", "1.1 b", "1.2 c", "2. d", "2.1 e"],
        ),
        (
            (ARTICLE, level(1, "decimal", "%1-%2", "<w:isLgl/>")),
            item("a") + item("b", 1),
            ["ARTICLE VII: a", "7-1 b"],
        ),
        (
            (level(0, "decimalZero", "%1"), level(1, "upperLetter", "&lt;%2&gt;")),
            item("a") + "".join(item("b", 1) for _ in range(27)),
            ["01 a", *(f"&lt;{chr(65 + n)}&gt; b" for n in range(26)), "&lt;AA&gt; b"],
        ),
        (USUAL, item("a") + item("b", 1) + item("c", 2), ["1. a", "a. b", "i. c"]),
        # What pandoc counts as it is shown is left to it, as are forms that are not known here.
        (USUAL, item("a") + item("b"), ["a", "b"]),
        ((level(0, "bullet", "o"),), item("a"), ["a"]),
        ((level(0, "chineseCounting", "%1"),), item("a"), ["a"]),
    ],
)
def test_labels_are_written_as_shown(
    levels: tuple[str, ...], body: str, expected: list[str]
) -> None:
    assert lines(document(body, *levels)) == expected


def test_another_list_of_the_same_kind_continues_unless_it_restarts() -> None:
    body = item("a") + item("b", number=2)
    assert lines(document(body, ARTICLE))[1] == "ARTICLE VIII: b"
    restart = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
    assert lines(document(body, ARTICLE, change=restart))[1] == "ARTICLE I: b"


def test_a_label_in_an_unknown_form_is_named() -> None:
    assert add_list_labels(document(item("a"), level(0, "chineseCounting", "%1"))).uncounted
    assert not add_list_labels(document(item("a"), ARTICLE)).uncounted


def test_a_tracked_change_of_a_paragraph_keeps_its_place() -> None:
    changed = (
        '<w:p><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr><w:pPrChange w:id="1"><w:pPr>'
        '<w:jc w:val="left"/></w:pPr></w:pPrChange></w:pPr><w:r><w:t>Pay</w:t></w:r></w:p>'
    )
    data = document(changed + item("Term"), ARTICLE)
    assert lines(data) == ["ARTICLE VII: Pay", "ARTICLE VIII: Term"]


def test_the_text_has_the_labels(jail: Jail) -> None:
    """`ARTICLE VII:` was given as 7, and the numbers of headings were lost."""
    heading = '<w:p><w:pPr><w:pStyle w:val="{}"/></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>'
    body = heading.format("Heading1", "Pay") + heading.format("Clause", "Term")
    content = asyncio.run(read_docx(document(body, ARTICLE, styles=STYLES), jail))
    assert content.markdown.splitlines()[::2] == ["# ARTICLE VII: Pay", "# ARTICLE VIII: Term"]
    content = asyncio.run(read_docx(document(item("Pay"), ARTICLE), jail))
    assert content.markdown.strip() == "ARTICLE VII: Pay"
