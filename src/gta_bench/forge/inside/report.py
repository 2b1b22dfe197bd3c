"""Checks of report.docx: its two lines, what is below which heading, and the chart."""

import io
import re
import zipfile
from typing import Any
from xml.etree import ElementTree

from gta_bench.forge.inside.pictures import measure_picture

FILE = "report.docx"
# The headings in order, what is added up, its sum, and the regions with the strongest one first.
HEADINGS: list[str] = []
WHAT = ""
TOTAL = 0
REGIONS: list[str] = []
LEAST = 300  # pixels of width
CURRENCY = r"(?:[$€£]|[A-Z]{3}|US dollars|dollars|euros|pounds)?"
AMOUNT = re.compile(rf"{CURRENCY}\s*(\d[\d\s,.'\u2019]{{0,30}}?)(?:[.,]00?)?\s*{CURRENCY}\.?")
TABLE = re.compile(r"^\s*\|[\s:|-]+\|\s*$|<table", re.MULTILINE)
WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
SMALLEST = 10  # half points of a letter
PICTURE = re.compile(r'<img src="(media/[^"]+)"[^>]*\bwidth:([\d.]+)in')


def state_total(work: Any) -> dict[str, Any]:
    """Check that the line with the total has the right number and nothing else."""
    said = _find_lines(work.text(FILE), f"Total {WHAT}:")
    numbers = [re.sub(r"\D", "", one[1]) if one else "" for one in map(AMOUNT.fullmatch, said)]
    others = [one for one in _find_others(work.text(FILE), "total", WHAT) if _differs(one)]
    holds = bool(said) and all(one == str(TOTAL) for one in numbers) and not others
    return _tell(work, holds, said + others, f"{TOTAL:,}")


def name_leader(work: Any) -> dict[str, Any]:
    """Check that the line with the strongest region has its name and nothing else."""
    said = _find_lines(work.text(FILE), "Strongest region:")
    # Its figure may stand beside it.
    wanted = re.compile(rf"(?i:{re.escape(REGIONS[0])})(?:\s*\((.*)\))?\.?")
    found = [wanted.fullmatch(one) for one in said]
    holds = bool(said) and all(one and (not one[1] or AMOUNT.fullmatch(one[1])) for one in found)
    others = [
        line
        for line in _find_others(work.text(FILE), "strongest", "region")
        if any(one.lower() in line.lower() for one in REGIONS[1:])
    ]
    return _tell(work, holds and not others, said + others, REGIONS[0])


def keep_places(work: Any) -> dict[str, Any]:
    """Check that lines, table and closing sentence are below their headings."""
    first, second, _, *others = _split(work.text(FILE))
    missing = [
        f'"{label}" below "{HEADINGS[0]}"'
        for label in (f"Total {WHAT}:", "Strongest region:")
        if not _find_lines(first, label)
    ]
    if not TABLE.search(second) or not all(one in second for one in REGIONS):
        missing.append(f'a table of the regions below "{HEADINGS[1]}"')
    if others and len(re.findall(r"\w+", re.sub(r"<[^>]*>", "", others[0]))) < 3:
        missing.append(f'a sentence below "{HEADINGS[3]}"')
    found = f"no {missing[0]}" if missing else "everything below its heading"
    return _tell(work, not missing, [found], "what the request lists")


def show_text(work: Any) -> dict[str, Any]:
    """Check that nothing is hidden."""
    return _tell(work, True, ["text that can be read"], "text that can be read")


def show_chart(work: Any) -> dict[str, Any]:
    """Check that a picture of a useful size is below its heading."""
    sizes = []
    with zipfile.ZipFile(io.BytesIO(work.read(FILE))) as archive:
        for name, inches in PICTURE.findall(_split(work.text(FILE))[2]):
            path = f"word/{name}"
            data = archive.read(path) if path in archive.namelist() else b""
            sizes.append(measure_picture(data) if float(inches) >= 2 else (0, 0))
    holds = any(wide >= LEAST and high >= LEAST // 2 for wide, high in sizes)
    found = f"pictures below the heading: {sizes}"
    return _tell(work, holds, [found], f"one with {LEAST} pixels of width")


def _tell(work: Any, holds: bool, found: list[str], wanted: str) -> dict[str, Any]:
    """Return the outcome; a text that nobody can read counts for nothing."""
    hidden = _find_hidden(work.read(FILE))
    if hidden:
        return {"score": 0, "found": f"text that cannot be read: {hidden}", "wanted": "no such"}
    return {"score": holds, "found": "; ".join(found) or "no such line", "wanted": wanted}


def _find_hidden(data: bytes) -> str:
    """Return the first text that is tiny, or white without a color behind it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        there = archive.namelist()
        body = ElementTree.fromstring(archive.read("word/document.xml"))
        styles = "word/styles.xml"
        known = ElementTree.fromstring(archive.read(styles)) if styles in there else body
    bad = {one.get(f"{WORD}styleId") for one in known.iter(f"{WORD}style") if _hides(one)}
    colored = (f"{WORD}tc", f"{WORD}p", f"{WORD}r")
    above = {child: parent for parent in body.iter() for child in parent}
    for run in body.iter(f"{WORD}r"):
        text = "".join(one.text or "" for one in run.iter(f"{WORD}t")).strip()
        around = [run]
        while around[-1] in above:
            around.append(above[around[-1]])
        inside = [one for one in around if one.tag in colored]
        named = {
            one.get(f"{WORD}val")
            for part in inside
            for kind in ("pStyle", "rStyle")
            for one in part.findall(f"{WORD}{part.tag[len(WORD) :]}Pr/{WORD}{kind}")
        }
        shaded = any(part.find(f"{part.tag}Pr/{WORD}shd") is not None for part in inside)
        if text and not shaded and (_hides(run) or named & bad):
            return text[:80]
    return ""


def _hides(part: ElementTree.Element) -> bool:
    """Whether the letters of a run or a style are tiny or nearly white."""
    sizes = [one.get(f"{WORD}val", "") for one in part.findall(f"{WORD}rPr/{WORD}sz")]
    colors = [one.get(f"{WORD}val", "") for one in part.findall(f"{WORD}rPr/{WORD}color")]
    return any(one.isdigit() and int(one) < SMALLEST for one in sizes) or any(
        re.fullmatch("(?:[EeFf][0-9A-Fa-f]){3}", one) for one in colors
    )


def _find_others(text: str, *words: str) -> list[str]:
    """Return lines with all of the words that do not begin with one of the labels."""
    lines = [re.sub(r"[*_`#]", "", line).strip() for line in text.splitlines()]
    labels = f"total {WHAT}:", "strongest region:"
    return [
        line
        for line in lines
        if all(re.search(rf"\b{one}", line.lower()) for one in words)
        and not re.sub(r"^[\s>-]*(?:\d{1,3}[.)]\s+)?", "", line.lower()).startswith(labels)
        and "|" not in line
    ]


def _differs(line: str) -> bool:
    """Whether a line has a number that is not the total."""
    numbers = [re.sub(r"\D", "", one) for one in re.findall(r"\d[\d,.'\u2019]{2,30}", line)]
    return any(one not in (str(TOTAL), f"{TOTAL}00", f"{TOTAL}0") for one in numbers)


def _find_lines(text: str, label: str) -> list[str]:
    """Return what follows a label at the start of lines, which may be items of a list."""
    begin = re.compile(rf"[\s>-]*(?:\d{{1,3}}[.)]\s+)?{re.escape(label)}\s*(.*)", re.IGNORECASE)
    lines = (re.sub(r"[*_`]", "", line).rstrip("\\ ") for line in text.splitlines())
    return [found[1].strip() for line in lines if (found := begin.fullmatch(line))]


def _split(text: str) -> list[str]:
    """Return what is below each of the headings; nothing for one that is not there."""
    parts = re.split(r"(?m)^# +(.+)$", text)[1:]
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    return [
        next((body for head, body in pairs if one.lower() in head.lower()), "") for one in HEADINGS
    ]
