"""Web pages and SVG drawings as Chromium shows them, in the jail and without network."""

import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailLimits
from gta_bench.confine.walls import Places
from gta_bench.content.driver import check_size, read_inside
from gta_bench.content.needs import Missing, missing_walls
from gta_bench.content.text import read_text
from gta_bench.errors import ToolError

PROGRAMS: Final = ("chromium", "chromium-browser")
SETTINGS: Final = ("/etc/chromium.d", "/etc/chromium")
INSTALL: Final = "Install it: `apt install chromium`."
LONGEST_SIDE: Final = 1568
MOST_PICTURES: Final = 20
MOST_CHARACTERS: Final = 200_000
# Chromium reserves a lot of address space, so the driver limits the data segment instead.
MEMORY: Final = 1536 * MIB
LIMITS: Final = JailLimits(
    memory_bytes=None,
    file_bytes=64 * MIB,
    disk_bytes=256 * MIB,
    processes=512,
    open_files=1024,
)
STARTS: Final = 2  # with scripts, then without them if they do not finish
OPENING: Final = 10.0  # seconds to start the browser once
# A drawing inside `img` runs no scripts, loads nothing and scales without loss.
DRAWING: Final = (
    b'<!DOCTYPE html><body style="margin:0"><img src="drawing.svg" style="display:block;'
    b'width:1000px;max-height:1500px;object-fit:contain;object-position:left top"></body>'
)
WINDOW: Final = (1280, 900)
PAPER: Final = (1000, 100)  # grows with the drawing


@dataclass(frozen=True, slots=True)
class Strip:
    """A horizontal strip of a page as PNG or JPEG; `top` is in the page's pixels."""

    top: int
    width: int
    height: int
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page after its scripts ran. `scripts` is False if they did not finish and were disabled.

    `refused` are addresses that it requested and did not get, `faults` are errors of its scripts.
    `seen` is its text that can be seen, and `unseen` text that it contains but does not show.
    """

    title: str
    text: str
    width: int
    height: int
    scripts: bool
    refused: tuple[str, ...]
    faults: tuple[str, ...]
    seen: str = ""
    unseen: str = ""
    strips: tuple[Strip, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reply:
    page: WebPage
    pictures: tuple[tuple[str, int, int, int], ...]  # name, top, width, height


REPLY: Final = TypeAdapter(_Reply)


@cache
def find_browser() -> str | None:
    """Return the path of Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def missing_browser(jail: Jail | None) -> Missing | None:
    """Return why Chromium does not work here, or None if it does."""
    if find_browser() is None:
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
    """Open a page. `beside` maps paths relative to its folder to files that it may load."""
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
    """Render an SVG drawing at a width of 1000 pixels."""
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
        order = {
            "browser": find_browser() or PROGRAMS[0],
            "memory": MEMORY,
            "profile": f"{places.scratch}/profile",
            "seconds": seconds / 3,
            "longest_side": longest_side,
            "most_pictures": most_pictures,
            "characters": MOST_CHARACTERS,
            "page": parts[0][0],
            "view": view,
            "stay": read_inside("stay.js"),
            "seen": read_inside("seen.js"),
            "files": {
                path: {"input": f"{places.inputs}/{number}", "type": kind}
                for number, (path, kind, _) in enumerate(parts)
            },
        }
        driver = f"{places.inputs}/driver"
        return [sys.executable, "-S", "-s", "-P", driver, json.dumps(order)]

    contents = {str(number): data for number, (_, _, data) in enumerate(parts)}
    wall = seconds + STARTS * OPENING
    result = await jail.run_program(
        argv,
        inputs={**contents, "driver": read_inside("browser.py").encode()},
        limits=replace(LIMITS, wall_seconds=wall, cpu_seconds=int(2 * wall)),
        readable=[Path(folder) for folder in SETTINGS if Path(folder).is_dir()],
    )
    try:
        reply = REPLY.validate_json(result.files.get("page.json", b""))
    except ValidationError as exc:
        raise ToolError("Chromium could not show the page.") from exc
    strips = tuple(
        Strip(top, width, height, result.files[name])
        for name, top, width, height in reply.pictures
        if name in result.files
    )
    return replace(reply.page, strips=strips)
