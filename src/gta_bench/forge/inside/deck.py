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
    """Check that each point is on the slide of its section, word for word, and on no other."""
    slides = _read_slides(work)
    missing, strange = [], []
    for title, points, _ in SECTIONS:
        body = _find(slides, title).partition(NOTES)[0]
        shown = _list_lines(body)
        missing += [f"{one!r} on {title!r}" for one in points if _plain(one) not in shown]
        others = [one for _, those, _ in SECTIONS for one in those if one not in points]
        strange += [f"{one!r} on {title!r}" for one in others if _plain(one) in _plain(body)]
    if strange and not missing:
        return {"score": False, "found": strange[0], "wanted": "the points of this section only"}
    return _report(missing)


def _list_lines(body: str) -> set[str]:
    """Return the lines of a slide, and those that follow each other in a box as one."""
    found = set()
    for box in body.split("\n\n"):
        lines = [re.sub(r"^[\s•*\u2013-]+|\.$", "", _plain(line)) for line in box.split("\n")]
        for end in range(len(lines)):
            found |= {" ".join(lines[begin : end + 1]) for begin in range(max(0, end - 3), end + 1)}
    return found


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
        if not wrong and _has_columns(work.read(FILE)):
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
        for slide, known in _read_sales(archive):
            for picture in re.findall(r"(?s)<p:pic>.*?</p:pic>", slide):
                yield _measure_one(archive, picture, known)


def _has_columns(deck: bytes) -> bool:
    """Whether the charts of the slide have columns, as opposed to bars that lie."""
    with zipfile.ZipFile(io.BytesIO(deck)) as archive:
        targets = [
            posixpath.normpath(posixpath.join("/ppt/slides", target)).lstrip("/")
            for _, known in _read_sales(archive)
            for target in re.findall(r'Target="([^"]*/charts/[^"]+\.xml)"', known)
        ]
        charts = [archive.read(one) for one in targets if one in archive.namelist()]
    lying = re.compile(rb"<c:barDir\s[^>]*val\s*=\s*[\"']bar[\"']")
    return bool(charts) and not any(map(lying.search, charts))


def _read_sales(archive: zipfile.ZipFile) -> Any:
    """Yield the source of the slide with the table, and that of its links."""
    for name in archive.namelist():
        if re.fullmatch(r"ppt/slides/[^/]+\.xml", name):
            slide = archive.read(name).decode("utf-8", "replace")
            if _plain(SALES) in _plain(_read_title(slide)):
                links = f"ppt/slides/_rels/{posixpath.basename(name)}.rels"
                known = archive.read(links).decode() if links in archive.namelist() else ""
                yield slide, known


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
