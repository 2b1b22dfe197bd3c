"""The reference document: how our Word documents look, written by us from nothing.

pandoc takes styles and page from it and adds the parts that it lacks.
"""

import io
import zipfile
from functools import cache
from typing import Final

from gta_bench.tools.documents.fonts import FAMILIES, LATIN, MONO

MAIN: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
WORD_TYPE: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml"
HEAD: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)

# A4 with margins of 1 inch; all lengths in twentieths of a point.
PAGE: Final = (
    '<w:sectPr><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1440" w:right="1440" '
    'w:bottom="1440" w:left="1440" w:header="708" w:footer="708" w:gutter="0"/></w:sectPr>'
)
HEADING_SIZES: Final = (36, 30, 26, 24, 22, 22)  # half points
ACCENT: Final = "1F3864"
GREY: Final = "8C8C8C"


@cache
def reference_docx() -> bytes:
    """The same bytes every time."""
    parts = {
        "[Content_Types].xml": _content_types(),
        "_rels/.rels": _relations({"rId1": ("officeDocument", "word/document.xml")}),
        "word/document.xml": _document(),
        "word/_rels/document.xml.rels": _relations({"rId1": ("styles", "styles.xml")}),
        "word/styles.xml": _styles(),
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(zipfile.ZipInfo(name, LONG_AGO), HEAD + text, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def _content_types() -> str:
    kinds = {"document": "document.main", "styles": "styles"}
    overrides = "".join(
        f'<Override PartName="/word/{part}.xml" ContentType="{WORD_TYPE}.{kind}+xml"/>'
        for part, kind in kinds.items()
    )
    return (
        f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="xml" ContentType="application/xml"/>'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f"{overrides}</Types>"
    )


def _relations(targets: dict[str, tuple[str, str]]) -> str:
    lines = "".join(
        f'<Relationship Id="{name}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for name, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{lines}</Relationships>'


def _document() -> str:
    return (
        f'<w:document xmlns:w="{MAIN}" xmlns:r="{OFFICE}"><w:body><w:p/>{PAGE}</w:body>'
        "</w:document>"
    )


def _fonts(family: str) -> str:
    east = FAMILIES["zh"].office
    return f'<w:rFonts w:ascii="{family}" w:hAnsi="{family}" w:cs="{family}" w:eastAsia="{east}"/>'


def _styles() -> str:
    defaults = (
        f"<w:docDefaults><w:rPrDefault><w:rPr>{_fonts(LATIN)}"
        '<w:sz w:val="22"/><w:szCs w:val="22"/>'
        '<w:lang w:val="en-US" w:eastAsia="zh-CN" w:bidi="ar-SA"/></w:rPr></w:rPrDefault>'
        '<w:pPrDefault><w:pPr><w:spacing w:after="120" w:line="276" w:lineRule="auto"/></w:pPr>'
        "</w:pPrDefault></w:docDefaults>"
    )
    return f'<w:styles xmlns:w="{MAIN}">{defaults}{"".join(_all_styles())}</w:styles>'


def _all_styles() -> list[str]:
    return [
        _style("Normal", default=True),
        _style("Body Text", paragraph='<w:spacing w:before="60" w:after="120"/>'),
        _style("First Paragraph", based="BodyText"),
        _style("Compact", based="BodyText", paragraph='<w:spacing w:before="20" w:after="20"/>'),
        _style("Title", paragraph=_heading(240), run=_size(44, ACCENT)),
        _style("Subtitle", paragraph=_heading(60), run=_size(28, GREY)),
        _style("Author", paragraph='<w:jc w:val="center"/>'),
        _style("Date", paragraph='<w:jc w:val="center"/>'),
        *(
            _style(f"heading {level}", paragraph=_heading(240, level), run=_size(size, ACCENT))
            for level, size in enumerate(HEADING_SIZES, start=1)
        ),
        _style("Block Text", paragraph=_quotation(), run='<w:i/><w:color w:val="404040"/>'),
        _style("Source Code", paragraph=_source_code(), run=_mono()),
        _style("Verbatim Char", kind="character", run=_mono()),
        _style("Hyperlink", kind="character", run='<w:color w:val="0563C1"/><w:u w:val="single"/>'),
        _style("Footnote Text", run='<w:sz w:val="18"/>'),
        _style("Footnote Reference", kind="character", run='<w:vertAlign w:val="superscript"/>'),
        _style("Definition Term", paragraph="<w:keepNext/>", run="<w:b/>"),
        _style("Definition", paragraph='<w:ind w:left="480"/>'),
        _style("caption", run='<w:i/><w:sz w:val="20"/>'),
        _style("Table Caption", based="Caption", paragraph="<w:keepNext/>"),
        _style("Image Caption", based="Caption"),
        _style("Figure"),
        _style("Captioned Figure", based="Figure", paragraph="<w:keepNext/>"),
        _table_style(),
    ]


def _style(
    name: str,
    *,
    kind: str = "paragraph",
    based: str | None = None,
    paragraph: str = "",
    run: str = "",
    default: bool = False,
) -> str:
    base = based or ("Normal" if kind == "paragraph" and not default else None)
    mark = ' w:default="1"' if default else ""
    return (
        f'<w:style w:type="{kind}"{mark} '
        f'w:styleId="{_identifier(name)}"><w:name w:val="{name}"/>'
        + (f'<w:basedOn w:val="{base}"/>' if base else "")
        + "<w:qFormat/>"
        + (f"<w:pPr>{paragraph}</w:pPr>" if paragraph else "")
        + (f"<w:rPr>{run}</w:rPr>" if run else "")
        + "</w:style>"
    )


def _identifier(name: str) -> str:
    return "".join(word[0].upper() + word[1:] for word in name.split())


def _heading(before: int, level: int | None = None) -> str:
    outline = "" if level is None else f'<w:outlineLvl w:val="{level - 1}"/>'
    return f'<w:keepNext/><w:keepLines/><w:spacing w:before="{before}" w:after="80"/>{outline}'


def _size(half_points: int, color: str) -> str:
    size = f'<w:sz w:val="{half_points}"/><w:szCs w:val="{half_points}"/>'
    return f'<w:b/><w:color w:val="{color}"/>{size}'


def _quotation() -> str:
    bar = '<w:pBdr><w:left w:val="single" w:sz="18" w:space="10" w:color="BFBFBF"/></w:pBdr>'
    return f'{bar}<w:spacing w:before="80" w:after="80"/><w:ind w:left="400" w:right="400"/>'


def _source_code() -> str:
    shade = '<w:shd w:val="clear" w:color="auto" w:fill="F2F2F2"/>'
    return f'{shade}<w:wordWrap w:val="0"/><w:spacing w:before="80" w:after="80" w:line="240"/>'


def _mono() -> str:
    return f'{_fonts(MONO)}<w:sz w:val="20"/>'


def _table_style() -> str:
    sides = ("top", "left", "bottom", "right", "insideH", "insideV")
    borders = "".join(
        f'<w:{side} w:val="single" w:sz="4" w:space="0" w:color="{GREY}"/>' for side in sides
    )
    margins = "".join(
        f'<w:{side} w:w="{width}" w:type="dxa"/>'
        for side, width in (("top", 40), ("left", 108), ("bottom", 40), ("right", 108))
    )
    header = (
        '<w:tblStylePr w:type="firstRow"><w:rPr><w:b/></w:rPr><w:tcPr>'
        '<w:shd w:val="clear" w:color="auto" w:fill="E7ECF5"/></w:tcPr></w:tblStylePr>'
    )
    return (
        '<w:style w:type="table" w:default="1" w:styleId="Table"><w:name w:val="Table"/>'
        '<w:qFormat/><w:tblPr><w:tblInd w:w="108" w:type="dxa"/>'
        f"<w:tblBorders>{borders}</w:tblBorders>"
        f"<w:tblCellMar>{margins}</w:tblCellMar></w:tblPr>{header}</w:style>"
    )
