# ruff: noqa: E501 - lines of markup
"""OpenDocument sources for LibreOffice, and Markdown for pandoc, with planted words."""

from tests.judging.planted.planting import Bed

NAMES = {
    "office": "office:1.0", "text": "text:1.0", "table": "table:1.0", "draw": "drawing:1.0",
    "style": "style:1.0", "presentation": "presentation:1.0", "fo": "xsl-fo-compatible:1.0",
    "meta": "meta:1.0", "svg": "svg-compatible:1.0", "of": "of:1.2",
}  # fmt: skip
SPACES = (
    " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{rest}"'
        for name, rest in NAMES.items()
    )
    + ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'
)
TYPE = "application/vnd.oasis.opendocument"


def _document(kind: str, body: str, *, styles: str = "", about: str = "") -> bytes:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {SPACES} office:version="1.3" '
        f'office:mimetype="{TYPE}.{kind}"><office:meta>{about}</office:meta>{styles}'
        f"<office:body>{body}</office:body></office:document>"
    ).encode()


def text(words: Bed, *, printed: bool = False) -> bytes:
    """A text with headers, notes, comments, a frame and changes; the last are not printed."""

    def unprinted(place: str) -> str:
        return "word" if printed else words(place)

    changes = (
        '<text:tracked-changes><text:changed-region text:id="c1"><text:deletion>'
        "<office:change-info><dc:creator>A</dc:creator><dc:date>2026-01-01T00:00:00</dc:date>"
        f"</office:change-info><text:p>{unprinted('deletion')}</text:p></text:deletion>"
        "</text:changed-region></text:tracked-changes>"
    )
    note = (
        '<text:note text:note-class="{0}"><text:note-citation>1</text:note-citation>'
        "<text:note-body><text:p>{1}</text:p></text:note-body></text:note>"
    )
    comment = (
        f"<office:annotation><dc:creator>{unprinted('comment author')}</dc:creator>"
        f"<text:p>{unprinted('comment')}</text:p></office:annotation>"
    )
    frame = (
        '<draw:frame svg:width="6cm" svg:height="2cm" text:anchor-type="paragraph"><draw:text-box>'
        f"<text:p>{words('frame')}</text:p></draw:text-box><svg:desc>{unprinted('alt text')}</svg:desc>"
        "</draw:frame>"
    )
    body = (
        f"<office:text>{changes}"
        f'<text:p text:style-name="Title">{words("title")}</text:p>'
        f'<text:p text:style-name="Subtitle">{words("subtitle")}</text:p>'
        f'<text:h text:outline-level="1">{words("heading")}</text:h>'
        f"<text:p>{words('paragraph')}{note.format('footnote', words('footnote'))}"
        f'{note.format("endnote", words("endnote"))}{comment}<text:change text:change-id="c1"/></text:p>'
        f"<text:p>{frame}</text:p>"
        f"<text:list><text:list-item><text:p>{words('list')}</text:p></text:list-item></text:list>"
        "<table:table><table:table-column/><table:table-row><table:table-cell>"
        f"<text:p>{words('table cell')}</text:p></table:table-cell></table:table-row></table:table>"
        "</office:text>"
    )
    styles = (
        '<office:automatic-styles><style:page-layout style:name="L"><style:header-style/>'
        "<style:footer-style/></style:page-layout></office:automatic-styles>"
        '<office:master-styles><style:master-page style:name="Standard" style:page-layout-name="L">'
        f"<style:header><text:p>{words('header')}</text:p></style:header>"
        f"<style:footer><text:p>{words('footer')}</text:p></style:footer>"
        "</style:master-page></office:master-styles>"
    )
    return _document(
        "text", body, styles=styles, about=f"<dc:title>{words('property title')}</dc:title>"
    )


def sheet(words: Bed) -> bytes:
    """Cells, a comment, a formula, a hidden sheet."""
    hidden = '<style:style style:name="H" style:family="table"><style:table-properties table:display="false"/></style:style>'
    computed = words("computed value")
    formula = f"of:=CONCATENATE(&quot;{computed[:4]}&quot;;&quot;{computed[4:]}&quot;)"
    body = (
        f'<office:spreadsheet><table:table table:name="{words("sheet name")}"><table:table-row>'
        f'<table:table-cell office:value-type="string"><office:annotation><text:p>{words("comment")}'
        f"</text:p></office:annotation><text:p>{words('cell')}</text:p></table:table-cell>"
        f'<table:table-cell table:formula="{formula}"/></table:table-row></table:table>'
        '<table:table table:name="Secret" table:style-name="H"><table:table-row><table:table-cell '
        f'office:value-type="string"><text:p>{words("cell of a hidden sheet")}</text:p>'
        "</table:table-cell></table:table-row></table:table></office:spreadsheet>"
    )
    styles = f"<office:automatic-styles>{hidden}</office:automatic-styles>"
    return _document("spreadsheet", body, styles=styles)


def slides(words: Bed) -> bytes:
    """Two slides with a box, a table and notes."""
    place = 'svg:x="2cm" svg:y="{}cm" svg:width="12cm" svg:height="2cm"'
    body = (
        '<office:presentation><draw:page draw:name="one" draw:master-page-name="M">'
        f"<draw:frame {place.format(1)}><draw:text-box><text:p>{words('text box')}</text:p>"
        f"</draw:text-box></draw:frame><draw:g><draw:frame {place.format(4)}><draw:text-box><text:p>"
        f"{words('group')}</text:p></draw:text-box></draw:frame></draw:g>"
        f'<presentation:notes><draw:frame presentation:class="notes" {place.format(10)}>'
        f"<draw:text-box><text:p>{words('notes')}</text:p></draw:text-box></draw:frame>"
        "</presentation:notes></draw:page></office:presentation>"
    )
    styles = (
        '<office:automatic-styles><style:page-layout style:name="L"><style:page-layout-properties '
        'fo:page-width="28cm" fo:page-height="21cm"/></style:page-layout></office:automatic-styles>'
        '<office:master-styles><style:master-page style:name="M" style:page-layout-name="L"/>'
        "</office:master-styles>"
    )
    return _document("presentation", body, styles=styles)


def markdown(words: Bed) -> str:
    """What pandoc turns into documents, books and decks."""
    return f"""---
title: {words("title")}
subtitle: {words("subtitle")}
abstract: {words("abstract")}
---

# {words("heading")}

{words("paragraph")}, {words("word with a note")}[^1] and [{words("link text")}](https://{words("link target").lower()}.invalid/).

[^1]: {words("footnote")}

- {words("bullet")}

1. {words("number")}

> {words("quotation")}

    {words("code")}

| a | b |
|---|---|
| {words("table cell")} | 1 |

: {words("table caption")}

${words("equation")}$
"""


def deck(words: Bed) -> str:
    """A deck for pandoc."""
    return f"""% {words("title")}

# {words("slide title")}

- {words("bullet")}

::: notes
{words("notes")}
:::
"""
