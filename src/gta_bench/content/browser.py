"""Web pages and SVG drawings as Chromium shows them, in the jail, with nothing from elsewhere."""

import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailLimits
from gta_bench.confine.walls import Places
from gta_bench.content.driver import check_size
from gta_bench.content.needs import Missing, missing_walls
from gta_bench.content.text import read_text
from gta_bench.errors import ToolError

PROGRAMS: Final = ("chromium", "chromium-browser")
SETTINGS: Final = ("/etc/chromium.d", "/etc/chromium")
INSTALL: Final = "Install it: `apt install chromium`."
LONGEST_SIDE: Final = 1568
MOST_PICTURES: Final = 20
MOST_CHARACTERS: Final = 200_000
# Chromium reserves address space without end; the driver bounds what its processes can write to.
MEMORY: Final = 1536 * MIB
LIMITS: Final = JailLimits(
    memory_bytes=None,
    file_bytes=64 * MIB,
    disk_bytes=256 * MIB,
    processes=512,
    open_files=1024,
)
STARTS: Final = 2  # with scripts, and without them where they come to no end
OPENING: Final = 10.0  # seconds for one start of the browser
# A drawing inside `img` runs no scripts and loads nothing; it is scaled without loss.
DRAWING: Final = (
    b'<!DOCTYPE html><body style="margin:0"><img src="drawing.svg" style="display:block;'
    b'width:1000px;max-height:1500px;object-fit:contain;object-position:left top"></body>'
)
WINDOW: Final = (1280, 900)
PAPER: Final = (1000, 100)  # grows with the drawing


@dataclass(frozen=True, slots=True)
class Strip:
    """A part of a page from top to bottom, as PNG or JPEG; `top` is in the page's pixels."""

    top: int
    width: int
    height: int
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page after its scripts ran, or without them where they came to no end (`scripts`).

    `refused` are addresses that it asked for and did not get, `faults` its scripts' errors.
    `unseen` are words that it holds and does not show.
    """

    title: str
    text: str
    width: int
    height: int
    scripts: bool
    refused: tuple[str, ...]
    faults: tuple[str, ...]
    strips: tuple[Strip, ...]
    unseen: str = ""


@dataclass(frozen=True, slots=True)
class _Picture:
    name: str
    width: int
    height: int
    top: int


@dataclass(frozen=True, slots=True)
class _Reply:
    title: str
    text: str
    width: int
    height: int
    scripts: bool
    refused: tuple[str, ...]
    faults: tuple[str, ...]
    pictures: tuple[_Picture, ...]
    unseen: str


REPLY: Final = TypeAdapter(_Reply)


@cache
def browser_program() -> str | None:
    """Where Chromium is started from."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def missing_browser(jail: Jail | None) -> Missing | None:
    """What keeps it from working here, if anything."""
    if browser_program() is None:
        return Missing("Chromium is not installed.", INSTALL)
    return missing_walls(jail, "Chromium")


async def show_page(
    data: bytes,
    jail: Jail,
    *,
    path: str = "page.html",
    beside: Mapping[str, bytes] | None = None,
    most_pictures: int = MOST_PICTURES,
    longest_side: int = LONGEST_SIDE,
    seconds: float = 30.0,
) -> WebPage:
    """Open a page; `beside` are the files that it may load, by paths from the same folder."""
    check_size(data, label="Chromium")
    kind = f"text/html; charset={read_text(data).encoding.removesuffix('-sig')}"
    return await _show(
        [(path, kind, data), *((path, "", content) for path, content in (beside or {}).items())],
        jail,
        most_pictures=most_pictures,
        longest_side=longest_side,
        seconds=seconds,
    )


async def show_drawing(
    data: bytes, jail: Jail, *, longest_side: int = LONGEST_SIDE, seconds: float = 30.0
) -> WebPage:
    """An SVG drawing, 1000 pixels wide."""
    check_size(data, label="Chromium")
    parts = [("page.html", "text/html", DRAWING), ("drawing.svg", "image/svg+xml", data)]
    return await _show(
        parts, jail, most_pictures=1, longest_side=longest_side, seconds=seconds, view=PAPER
    )


async def _show(
    parts: list[tuple[str, str, bytes]],
    jail: Jail,
    *,
    most_pictures: int,
    longest_side: int,
    seconds: float,
    view: tuple[int, int] = WINDOW,
) -> WebPage:
    def argv(places: Places) -> list[str]:
        return [sys.executable, "-S", "-s", "-P", f"{places.inputs}/driver", *order(places)]

    def order(places: Places) -> list[str]:
        known = {
            path: {"input": f"{places.inputs}/{number}", "type": kind}
            for number, (path, kind, _) in enumerate(parts)
        }
        wish = {
            "browser": browser_program() or PROGRAMS[0],
            "memory": MEMORY,
            "profile": f"{places.scratch}/profile",
            "seconds": seconds / 3,
            "longest_side": longest_side,
            "most_pictures": most_pictures,
            "characters": MOST_CHARACTERS,
            "page": parts[0][0],
            "view": view,
            "files": known,
        }
        return [json.dumps(wish)]

    contents = {str(number): data for number, (_, _, data) in enumerate(parts)}
    wall = seconds + STARTS * OPENING
    result = await jail.run_program(
        argv,
        inputs={**contents, "driver": _driver()},
        limits=replace(LIMITS, wall_seconds=wall, cpu_seconds=int(2 * wall)),
        readable=[Path(folder) for folder in SETTINGS if Path(folder).is_dir()],
    )
    try:
        reply = REPLY.validate_json(result.files.get("page.json", b""))
    except ValidationError as exc:
        raise ToolError("Chromium could not show the page.") from exc
    strips = tuple(
        Strip(picture.top, picture.width, picture.height, result.files[picture.name])
        for picture in reply.pictures
        if picture.name in result.files
    )
    return WebPage(
        title=reply.title,
        text=reply.text,
        width=reply.width,
        height=reply.height,
        scripts=reply.scripts,
        refused=reply.refused,
        faults=reply.faults,
        strips=strips,
        unseen=reply.unseen,
    )


@cache
def _driver() -> bytes:
    return (files("gta_bench.content.inside") / "browser.py").read_bytes()
