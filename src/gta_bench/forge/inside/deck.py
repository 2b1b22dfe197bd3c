"""Checks of deck.pptx: what is on which slide, in its notes, and in its chart."""

import io
import posixpath
import re
import zipfile
from html import unescape
from typing import Any

from gta_bench.forge.inside.pictures import measure_picture

FILE = "deck.pptx"
# Of each section: its title, its points and its note. Then the slide with the table and the chart.
SECTIONS: list[tuple[str, list[str], str]] = []
SALES = ""
UNITS: list[tuple[str, int]] = []
LEAST = 300  # pixels of width
INCHES = 2 * 914_400  # of width on the slide
NOTES = "\n\nNotes: "


def show_points(work: Any) -> dict[str, Any]:
    """Check that each point is on the slide of its section, and not just in the notes."""
    slides = _read_slides(work)
    missing = [
        f"{point!r} on {title!r}"
        for title, points, _ in SECTIONS
        for point in points
        if _plain(point) not in _plain(_find(slides, title).partition(NOTES)[0])
    ]
    return _report(missing)


def say_notes(work: Any) -> dict[str, Any]:
    """Check that each note is in the notes of its slide."""
    slides = _read_slides(work)
    missing = [
        f"{note!r} in the notes of {title!r}"
        for title, _, note in SECTIONS
        if _plain(note) not in _plain(_find(slides, title).rpartition(NOTES)[2])
        or NOTES not in _find(slides, title)
    ]
    return _report(missing)


def place_table(work: Any) -> dict[str, Any]:
    """Check that the slide has a table with a row for each product."""
    body = _find(_read_slides(work), SALES)
    rows = re.findall(r"^\|\s*(.*?)\s*\|", body, re.MULTILINE)
    names = {_plain(one) for one in rows}
    return _report([f"{name!r} in a table" for name, _ in UNITS if _plain(name) not in names])


def draw_chart(work: Any) -> dict[str, Any]:
    """Check that the slide has a column chart of the table, or a picture of a useful size."""
    body = _find(_read_slides(work), SALES)
    for _, data in re.findall(r"^\[(bar\w* chart)[^\n]*\]\n((?:[^\n]+\n?)*)", body, re.MULTILINE):
        wrong = [
            name for name, value in UNITS
            if not re.search(rf"(?i)(?:: |, ){re.escape(name)}={value}(?:\.0+)?(?![\d.])", data)
        ]  # fmt: skip
        if not wrong:
            return {"score": True, "found": "a chart of the table"}
    sizes = list(_measure_pictures(work.read(FILE)))
    holds = "[picture: " in body and any(wide >= LEAST for wide, _ in sizes)
    wanted = f"a column chart of the units, or a picture with {LEAST} pixels of width"
    return {"score": holds, "found": f"pictures: {sizes}", "wanted": wanted}


def _report(missing: list[str]) -> dict[str, Any]:
    found = f"no {missing[0]}" if missing else "all of them"
    return {"score": not missing, "found": found, "wanted": "all of them"}


def _read_slides(work: Any) -> list[tuple[str, str]]:
    """Return the titles and texts of the slides, without the cover."""
    parts = re.split(r"(?m)^## Slide \d+(?:: (.*))?$", work.text(FILE))[1:]
    return [(title or "", text) for title, text in zip(parts[::2], parts[1::2], strict=True)][1:]


def _find(slides: list[tuple[str, str]], wanted: str) -> str:
    """Return the text of the slide with a title, which may be in an ordinary box, or nothing."""
    name = _plain(wanted)
    found = [text for title, text in slides if _plain(title) == name]
    found += [text for title, text in slides if name in _plain(title)]
    found += [text for title, text in slides if not title and _plain(text).startswith(name)]
    return next(iter(found), "")


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _measure_pictures(deck: bytes) -> Any:
    """Yield the sizes of the pictures on the slide; of those that are shown small, nothing."""
    with zipfile.ZipFile(io.BytesIO(deck)) as archive:
        for name in archive.namelist():
            if not re.fullmatch(r"ppt/slides/[^/]+\.xml", name):
                continue
            slide = archive.read(name).decode("utf-8", "replace")
            if _plain(SALES) not in _plain(_read_title(slide)):
                continue
            links = f"ppt/slides/_rels/{posixpath.basename(name)}.rels"
            known = archive.read(links).decode() if links in archive.namelist() else ""
            for picture in re.findall(r"(?s)<p:pic>.*?</p:pic>", slide):
                yield _measure_one(archive, picture, known)


def _read_title(slide: str) -> str:
    shapes = re.findall(r"(?s)<p:sp>.*?</p:sp>", slide)
    title = next((one for one in shapes if re.search(r'<p:ph [^>]*type="(?:ctrT|t)itle"', one)), "")
    return unescape(" ".join(re.findall(r"<a:t>([^<]*)</a:t>", title)))


def _measure_one(archive: zipfile.ZipFile, picture: str, links: str) -> tuple[int, int]:
    wide = re.search(r'<a:ext cx="(\d+)"', picture)
    mark = re.search(r'r:embed="([^"]+)"', picture)
    relations = re.findall(r"<Relationship [^>]*>", links)
    own = next((one for one in relations if mark and f'Id="{mark[1]}"' in one), "")
    target = re.search(r'Target="([^"]+)"', own)
    if target is None or (wide and int(wide[1]) < INCHES):
        return 0, 0
    path = posixpath.normpath(posixpath.join("/ppt/slides", target[1])).lstrip("/")
    return measure_picture(archive.read(path) if path in archive.namelist() else b"")
