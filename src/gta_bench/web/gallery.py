"""Files on a page: their names, sizes, small pictures, and what a reader should know of them."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO

from gta_bench.judging.messages import PictureSource
from gta_bench.records.evidence import FileEvidence
from gta_bench.records.files import Deliverable

THUMBNAIL = (260, 200)
PAGES_SHOWN = 3
FILES_SHOWN = 8

# Pictures of the evidence by digest; they come from our own renderer, not from the system.


@dataclass(frozen=True)
class FileView:
    """A file with small pictures of it, and what a reader should know of it."""

    path: str
    size: str
    pictures: tuple[tuple[str, str], ...] = ()
    more: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gallery:
    """The files of a unit, as many as are shown."""

    files: tuple[FileView, ...]
    left_out: int


def gallery(
    files: Sequence[Deliverable], evidence: Mapping[str, FileEvidence], picture: PictureSource
) -> Gallery:
    """The files; `evidence` is what was shown of each to a judge, by its digest."""
    chosen = files[:FILES_SHOWN]
    return Gallery(
        tuple(_file_view(file, evidence.get(file.digest), picture) for file in chosen),
        len(files) - len(chosen),
    )


def thumbnail(data: bytes) -> str:
    """A small picture as a data URI."""
    from PIL import Image

    with Image.open(BytesIO(data)) as opened:
        opened.thumbnail(THUMBNAIL)
        shades = opened.convert("RGBA")
    flat = Image.new("RGB", shades.size, "white")
    flat.paste(shades, mask=shades)
    kept = BytesIO()
    flat.save(kept, "JPEG", quality=72)
    return f"data:image/jpeg;base64,{b64encode(kept.getvalue()).decode()}"


def _file_view(file: Deliverable, shown: FileEvidence | None, picture: PictureSource) -> FileView:
    size = _size(file.size)
    if shown is None:
        return FileView(file.path, size, notes=("no judge has been shown it",))
    chosen = shown.pictures[:PAGES_SHOWN]
    return FileView(
        path=file.path,
        size=f"{shown.kind}, {size}",
        pictures=tuple((thumbnail(picture(one.digest)), one.label) for one in chosen),
        more=len(shown.pictures) - len(chosen),
        notes=(*shown.findings, *shown.cut, *shown.unshown),
    )


def _size(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"
