"""The reference document: pandoc takes the styles and the page size of Word documents from it."""

import io
import zipfile
from functools import cache
from typing import Final

from gta_bench.tools.documents.pandoc import read_resource

MAIN: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
WORD_TYPE: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml"
HEAD: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
FIXED_TIME: Final = (1980, 1, 1, 0, 0, 0)

CONTENT_TYPES: Final = (
    f'<Types xmlns="{PACKAGE}/content-types">'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{WORD_TYPE}.document.main+xml"/>'
    f'<Override PartName="/word/styles.xml" ContentType="{WORD_TYPE}.styles+xml"/></Types>'
)
# A4 with margins of 1 inch; all lengths are in twentieths of a point.
DOCUMENT: Final = (
    f'<w:document xmlns:w="{MAIN}" xmlns:r="{OFFICE}"><w:body><w:p/>'
    '<w:sectPr><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1440" w:right="1440" '
    'w:bottom="1440" w:left="1440" w:header="708" w:footer="708" w:gutter="0"/></w:sectPr>'
    "</w:body></w:document>"
)


@cache
def reference_docx() -> bytes:
    """Build the document; the bytes are always the same."""
    styles = read_resource("styles.xml").decode()
    parts = {
        "[Content_Types].xml": CONTENT_TYPES,
        "_rels/.rels": _relation("officeDocument", "word/document.xml"),
        "word/document.xml": DOCUMENT,
        "word/_rels/document.xml.rels": _relation("styles", "styles.xml"),
        "word/styles.xml": "".join(line.strip() for line in styles.splitlines()),
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(zipfile.ZipInfo(name, FIXED_TIME), HEAD + text, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def _relation(kind: str, target: str) -> str:
    return (
        f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{OFFICE}/{kind}" Target="{target}"/></Relationships>'
    )
