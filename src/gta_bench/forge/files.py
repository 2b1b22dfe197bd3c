"""Write files with the same bytes every time: tables, workbooks, and packed Office files."""

import csv
import io
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

EPOCH: Final = (1980, 1, 1, 0, 0, 0)
WHEN: Final = datetime(2023, 1, 1, 12, tzinfo=UTC)
_STAMP: Final = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*(<)")
ForgedCell = str | int | float | Decimal


def show(value: ForgedCell) -> str:
    """Return a cell as text; amounts have two decimals."""
    return f"{value:.2f}" if isinstance(value, Decimal | float) else str(value)


def write_csv(rows: Iterable[Sequence[ForgedCell]]) -> bytes:
    """Return rows as CSV."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([show(cell) for cell in row] for row in rows)
    return text.getvalue().encode()


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return a zip archive of files, in their order and without the time of day."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, data in files.items():
            info = zipfile.ZipInfo(path, EPOCH)
            info.create_system, info.external_attr = 3, 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data, compresslevel=6)
    return packed.getvalue()


def repack(office: bytes) -> bytes:
    """Return an Office file without the dates that its writer put in, in files inside it too."""
    with zipfile.ZipFile(io.BytesIO(office)) as archive:
        files = {one.filename: archive.read(one) for one in archive.infolist()}
    for path, data in files.items():
        if path.endswith(".xlsx"):
            files[path] = repack(data)
        elif path == "docProps/core.xml":
            files[path] = _STAMP.sub(rb"\g<1>2023-01-01T12:00:00Z\g<2>", data)
    return pack(files)
