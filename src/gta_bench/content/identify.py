"""What a file claims to be, by its name, and what it really is, by its bytes."""

import io
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath

from gta_bench.content.kinds import KIND_OF_FORM, KIND_OF_SUFFIX, KINDS, ContentKind
from gta_bench.content.text import read_text
from gta_bench.datasets.files import KINDS as FORMS_OF_DATASETS
from gta_bench.errors import ToolError

LEADING_BYTES = (
    (
        re.compile(rb"....ftypavi[fs]", re.DOTALL),
        "avif",
    ),  # before mp4, which has the same container
    *FORMS_OF_DATASETS,
    (re.compile(rb"BM.{12}[\x0c\x28\x38\x6c\x7c]\0\0\0", re.DOTALL), "bmp"),
    (re.compile(rb"(II\*\0|MM\0\*)"), "tiff"),
    (re.compile(rb"fLaC"), "flac"),
    (re.compile(rb"OggS"), "ogg"),
    (re.compile(rb"\x1a\x45\xdf\xa3"), "matroska"),
    (re.compile(rb"RIFF....AVI ", re.DOTALL), "avi"),
    (re.compile(rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "ole"),
    (re.compile(rb"\{\\rtf"), "rtf"),
    (re.compile(rb"\x1f\x8b|BZh[1-9]|\xfd7zXZ\0|.{257}ustar", re.DOTALL), "packed"),
    (re.compile(rb"7z\xbc\xaf\x27\x1c"), "7z"),
    (re.compile(rb"Rar!\x1a\x07"), "rar"),
    (re.compile(rb"PK\x05\x06"), "zip"),
)
OFFICE = {
    b"word": "docx",
    b"excel": "xlsx",
    b"spreadsheet": "xlsx",
    b"powerpoint": "pptx",
    b"presentation": "pptx",
}
MAIN_TYPE = re.compile(rb'"application/vnd\.([\w.+-]{1,120}?main\+xml)"')
OPEN_DOCUMENT = {
    b"application/vnd.oasis.opendocument.text": "odt",
    b"application/vnd.oasis.opendocument.spreadsheet": "ods",
    b"application/vnd.oasis.opendocument.presentation": "odp",
    b"application/epub+zip": "epub",
}
HTML = re.compile(rb"<(!doctype\s+html|html)\b", re.IGNORECASE)
SVG = re.compile(rb"<svg\b", re.IGNORECASE)
HEAD = 4096
# What the standard library raises for an archive that is broken or unsupported.
BROKEN_ZIP = (
    zipfile.BadZipFile, zlib.error, ValueError, RuntimeError, struct.error, OSError, EOFError,
)  # fmt: skip
CONTENT_TYPES_BYTES = 1 << 20
END_RECORD = struct.Struct("<4s4H2LH")
END_RECORD_AREA = END_RECORD.size + 0xFFFF
LARGEST_DIRECTORY = 5 << 20  # bytes; larger directories are not read here


@dataclass(frozen=True, slots=True)
class Identity:
    """A file's kind. `claims` is the kind that its name suggests, None for an unknown suffix.

    `form` is what the bytes show. Several kinds share a form, and then the name decides: a text
    named `.md` is Markdown. So `kind` differs from `claims` only if the name is wrong.
    """

    name: str
    claims: ContentKind | None
    form: str
    kind: ContentKind

    @property
    def honest(self) -> bool:
        """Whether the file is what its name suggests."""
        return self.claims is not None and self.claims == self.kind


def identify(name: str, data: bytes) -> Identity:
    """Return what a file claims to be and what it is. Never raises; the fallback is `unknown`."""
    claims = KIND_OF_SUFFIX.get(PurePosixPath(name).suffix.lower())
    form = find_form(data)
    if claims is not None and KINDS[claims].form == form:
        return Identity(name, claims, form, claims)
    return Identity(name, claims, form, _find_kind(form, data))


def require_form(data: bytes, form: str) -> None:
    """Raise a ToolError that names the actual form if the file has another one."""
    found = find_form(data)
    if found == form:
        return
    if found == "ole":
        found = "encrypted, or an Office file of the time before 2007"
    raise ToolError(f"The file is not {form}; it is {found}.")


def find_form(data: bytes) -> str:
    """Return the form of a file's bytes: `png`, `docx`, `text`, `empty`, `binary` and so on."""
    if not data:
        return "empty"
    head = data[:HEAD]
    for pattern, form in LEADING_BYTES:
        if pattern.match(head):
            return _find_zip_form(data) if form == "zip" else form
    if b"%PDF-" in head[:1024]:  # readers accept some bytes before it
        return "pdf"
    return "text" if _is_text(data) else "binary"


def _find_kind(form: str, data: bytes) -> ContentKind:
    """Return the kind for a form if the name is unknown or wrong."""
    head = data[:HEAD].lstrip(b"\xef\xbb\xbf \t\r\n")
    if form == "text" and head.startswith(b"<"):
        if HTML.search(head):
            return "html"
        if SVG.search(head):
            return "svg"
    return KIND_OF_FORM.get(form, "unknown")


def _is_text(data: bytes) -> bool:
    try:
        text = read_text(data).text
    except ToolError:
        return False
    control = sum(char < " " and char not in "\t\n\r\f\x1b" for char in text[:HEAD])
    return control <= len(text[:HEAD]) // 100


def _find_zip_form(data: bytes) -> str:
    """Office files list the types of their parts; other formats name theirs in `mimetype`."""
    if not _has_small_directory(data):
        return "zip"
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            if "[Content_Types].xml" in names:
                return _find_office_form(
                    _read_start(archive, "[Content_Types].xml", CONTENT_TYPES_BYTES)
                )
            if "mimetype" in names:
                return OPEN_DOCUMENT.get(_read_start(archive, "mimetype", 100).strip(), "zip")
    except BROKEN_ZIP:
        return "zip"
    return "zip"


def _find_office_form(types: bytes) -> str:
    for found in MAIN_TYPE.findall(types):
        for word, form in OFFICE.items():
            if word in found.lower():
                return form
    return "zip"


def _read_start(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    with archive.open(name) as member:
        return member.read(most)


def _has_small_directory(data: bytes) -> bool:
    """Whether the directory is cheap to read; zipfile reads all of it at once."""
    tail = data[-END_RECORD_AREA:]
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < END_RECORD.size or b"PK\x06\x07" in tail[max(0, at - 20) : at]:
        return False
    return bool(END_RECORD.unpack_from(tail, at)[5] <= LARGEST_DIRECTORY)
