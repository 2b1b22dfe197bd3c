"""Inside the jail: the slides of a deck with every shape, including groups and charts."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from pptx import Presentation
from pptx.enum.shapes import MSO_SHAPE_TYPE, PP_PLACEHOLDER

CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
MOST_POINTS = 5000
TITLES = (PP_PLACEHOLDER.TITLE, PP_PLACEHOLDER.CENTER_TITLE, PP_PLACEHOLDER.VERTICAL_TITLE)
# Repeated on every slide.
FURNITURE = (PP_PLACEHOLDER.SLIDE_NUMBER, PP_PLACEHOLDER.DATE, PP_PLACEHOLDER.HEADER)
SEEN = (MSO_SHAPE_TYPE.PICTURE, MSO_SHAPE_TYPE.LINKED_PICTURE, MSO_SHAPE_TYPE.MEDIA)


def prepare() -> dict[str, Any]:
    """Nothing to prepare: the imports above are all that must run outside of the limits."""
    return {}


def finish(names: dict[str, Any]) -> str:
    """Return the deck as JSON."""
    options = json.loads(Path("options.json").read_text(encoding="utf-8"))
    return json.dumps(read(Path("file"), most_slides=options["most_slides"]))


def read(file: Path, *, most_slides: int) -> dict[str, Any]:
    """Read the slides, up to `most_slides`."""
    with file.open("rb") as stream:
        slides = Presentation(stream).slides
    chosen = enumerate(islice(slides, most_slides), 1)
    return {
        "slides": [_slide(number, slide) for number, slide in chosen],
        "slide_count": len(slides),
    }


def _slide(number: int, slide: Any) -> dict[str, Any]:
    title = slide.shapes.title
    return {
        "number": number,
        "title": " ".join(_text(title.text_frame).split()) if title is not None else "",
        "hidden": slide._element.get("show") in ("0", "false"),
        "parts": list(_parts(slide.shapes)),
        "notes": _notes(slide),
    }


def _notes(slide: Any) -> str:
    """Return all texts of the notes page; not every program uses the notes placeholder."""
    parts = _parts(slide.notes_slide.shapes) if slide.has_notes_slide else ()
    return "\n".join(part["text"] for part in parts if part["kind"] == "text").strip()


def _parts(shapes: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield shapes in reading order: from top to bottom, then from left to right."""
    for shape in sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0)):
        if shape.shape_type == MSO_SHAPE_TYPE.GROUP:
            yield from _parts(shape.shapes)
        elif not (shape.is_placeholder and shape.placeholder_format.type in (*TITLES, *FURNITURE)):
            yield from _part(shape)


def _part(shape: Any) -> Iterator[dict[str, Any]]:
    if getattr(shape, "has_table", False):
        yield {"kind": "table", "rows": _table(shape.table)}
    elif getattr(shape, "has_chart", False):
        yield _chart(shape.chart_part.blob)
    elif shape.has_text_frame:
        if text := _text(shape.text_frame).strip("\n"):
            yield {"kind": "text", "text": text}
    elif shape.shape_type in SEEN or hasattr(shape, "image"):
        yield {"kind": "picture", "text": _description(shape)}
    elif text := "\n".join(_diagram(shape)):
        yield {"kind": "text", "text": text}


def _text(frame: Any) -> str:
    """Return the paragraphs of a text frame, indented by their level."""
    lines = [
        "  " * paragraph.level + paragraph.text.replace("\v", "\n") if paragraph.text else ""
        for paragraph in frame.paragraphs
    ]
    return "\n".join(lines)


def _table(table: Any) -> list[list[str]]:
    return [
        ["" if cell.is_spanned else _text(cell.text_frame) for cell in row.cells]
        for row in table.rows
    ]


def _description(shape: Any) -> str:
    about = next(shape._element.iter("{*}cNvPr"), None)
    description = about.get("descr") if about is not None else None
    return description or shape.name or "without a name"


def _diagram(shape: Any) -> Iterator[str]:
    """Yield the texts of a SmartArt diagram, which are in a separate part."""
    for links in shape._element.iter(f"{DIAGRAM}relIds"):
        data = ElementTree.fromstring(shape.part.related_part(links.get(f"{RELATION}dm")).blob)
        for paragraph in data.iter(f"{DRAWING}p"):
            if text := "".join(run.text or "" for run in paragraph.iter(f"{DRAWING}t")):
                yield text


def _chart(content: bytes) -> dict[str, Any]:
    """Read a chart from its XML, which has the same structure for every type of chart."""
    space = ElementTree.fromstring(content)
    area = space.find(f"{CHART}chart/{CHART}plotArea")
    plots = [plot for plot in area if plot.tag.endswith("Chart")] if area is not None else []
    title = space.find(f"{CHART}chart/{CHART}title")
    words = title.iter(f"{DRAWING}t") if title is not None else ()
    names = [plot.tag.removeprefix(CHART).removesuffix("Chart") for plot in plots]
    return {
        "kind": "chart",
        "type": f"{' and '.join(names) or 'empty'} chart",
        "title": "".join(run.text or "" for run in words),
        "series": [_series(series) for plot in plots for series in plot.iter(f"{CHART}ser")],
    }


def _series(series: ElementTree.Element) -> dict[str, Any]:
    labels = {**_points(series, "cat"), **_points(series, "xVal")}
    values = {**_points(series, "val"), **_points(series, "yVal")}
    indexes = sorted(values, key=int)[:MOST_POINTS]
    return {
        "name": " ".join(_points(series, "tx").values()),
        "points": [[labels.get(one, str(int(one) + 1)), values[one]] for one in indexes],
    }


def _points(series: ElementTree.Element, part: str) -> dict[str, str]:
    """Return the points of a part by index; for nested categories, the innermost level."""
    found = series.find(f"{CHART}{part}")
    if found is None:
        return {}
    levels = list(found.iter(f"{CHART}lvl"))
    points = (levels[0] if levels else found).iter(f"{CHART}pt")
    return {point.get("idx", "0"): point.findtext(f"{CHART}v", "") for point in points}
