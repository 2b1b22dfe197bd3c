"""Unpacking an archive that may be hostile: nothing outside the folder, no links, no bombs."""

import shutil
import stat
import zipfile
from pathlib import Path, PurePosixPath

from gta_bench.errors import FetchError

MAX_MEMBERS = 20_000
MAX_BYTES = 8 << 30
MAX_RATIO = 200
SMALL_ENOUGH = 1 << 20


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip archive into a new folder, or refuse it as a whole."""
    try:
        with zipfile.ZipFile(archive) as opened:
            members = [info for info in opened.infolist() if not info.is_dir()]
            _check_members(members, archive.name)
            for info in members:
                target = folder / info.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                with opened.open(info) as source, target.open("xb") as out:
                    shutil.copyfileobj(source, out)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as exc:
        raise FetchError(f"{archive.name}: cannot be unpacked: {exc}.") from exc


def _check_members(members: list[zipfile.ZipInfo], archive: str) -> None:
    if len(members) > MAX_MEMBERS or sum(info.file_size for info in members) > MAX_BYTES:
        raise FetchError(f"{archive}: refused: it would unpack to more than a dataset can hold.")
    seen: set[str] = set()
    for info in members:
        problem = _member_problem(info, seen)
        if problem is not None:
            raise FetchError(f"{archive}: refused: member {info.filename!r} {problem}.")
        seen.add(info.filename.casefold())


def _member_problem(info: zipfile.ZipInfo, seen: set[str]) -> str | None:
    path = PurePosixPath(info.filename)
    mode = info.external_attr >> 16
    odd = not path.name or path.is_absolute() or ".." in path.parts
    if odd or "\\" in info.filename or ":" in info.filename:
        return "points outside the folder"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "is not a plain file"
    if info.filename.casefold() in seen:
        return "stands twice"
    if info.file_size > SMALL_ENOUGH and info.file_size > MAX_RATIO * max(info.compress_size, 1):
        return "is packed too tightly to be data"
    return None
