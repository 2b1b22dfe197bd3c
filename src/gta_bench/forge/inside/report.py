"""Checks of report.docx: its two lines, what is below which heading, and the chart."""

import io
import re
import zipfile
from typing import Any

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
PICTURE = re.compile(r'<img src="(media/[^"]+)"[^>]*\bwidth:([\d.]+)in')


def state_total(work: Any) -> dict[str, Any]:
    """Check that the line with the total has the right number and nothing else."""
    said = _find_lines(work.text(FILE), f"Total {WHAT}:")
    numbers = [re.sub(r"\D", "", one[1]) if one else "" for one in map(AMOUNT.fullmatch, said)]
    holds = bool(said) and all(one == str(TOTAL) for one in numbers)
    return {"score": holds, "found": "; ".join(said) or "no such line", "wanted": f"{TOTAL:,}"}


def name_leader(work: Any) -> dict[str, Any]:
    """Check that the line with the strongest region has its name and nothing else."""
    said = _find_lines(work.text(FILE), "Strongest region:")
    # Its figure may stand beside it.
    wanted = re.compile(rf"(?i:{re.escape(REGIONS[0])})(?:\s*\((.*)\))?\.?")
    found = [wanted.fullmatch(one) for one in said]
    holds = bool(said) and all(one and (not one[1] or AMOUNT.fullmatch(one[1])) for one in found)
    return {"score": holds, "found": "; ".join(said) or "no such line", "wanted": REGIONS[0]}


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
    return {"score": not missing, "found": found, "wanted": "what the request lists"}


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
    return {"score": holds, "found": found, "wanted": f"one with {LEAST} pixels of width"}


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
