"""The font for text on pictures: Noto Sans CJK if it is installed, otherwise DejaVu Sans."""

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

FOLDERS = (
    Path("/usr/share/fonts"),
    Path("/usr/local/share/fonts"),
    Path.home() / ".local/share/fonts",
    Path.home() / ".fonts",
)


class FontFace(NamedTuple):
    """A face of a font file; without a file, Pillow's own font."""

    name: str
    file: Path | None
    number: int
    cjk: bool


# The collection's faces are JP, KR, SC, TC, HK; SC is the one for simplified Chinese.
CJK_FILES = {
    "NotoSansCJK-Regular.ttc": 2,
    "NotoSansCJKsc-Regular.otf": 0,
    "NotoSansSC-Regular.otf": 0,
    "NotoSansSC-Regular.ttf": 0,
}
PILLOWS_OWN = FontFace("Pillow's own font", None, 0, cjk=False)


@cache
def text_face() -> FontFace:
    """Return the best face of this machine."""
    return next(faces(FOLDERS), PILLOWS_OWN)


def faces(folders: tuple[Path, ...]) -> Iterator[FontFace]:
    """Yield usable faces, the best first."""
    for name, index in CJK_FILES.items():
        for file in _find_files(name, folders):
            yield FontFace("Noto Sans CJK SC", file, index, cjk=True)
    for file in (*_find_files("DejaVuSans.ttf", folders), *_find_in_matplotlib()):
        yield FontFace("DejaVu Sans", file, 0, cjk=False)


def _find_files(name: str, folders: tuple[Path, ...]) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(folder.rglob(name))


def _find_in_matplotlib() -> Iterator[Path]:
    spec = find_spec("matplotlib")
    if spec is not None and spec.origin is not None:
        file = Path(spec.origin).parent / "mpl-data/fonts/ttf/DejaVuSans.ttf"
        if file.is_file():
            yield file
