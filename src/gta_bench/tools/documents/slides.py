"""Slides as agents write them: JSON with titles and contents, read as Markdown."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from gta_bench.confine.jail import Jail
from gta_bench.errors import ToolError
from gta_bench.tools.documents.blocks import Block, Line, TextRun, read_blocks
from gta_bench.tools.documents.pandoc import READER, read_resource, run_pandoc
from gta_bench.tools.documents.source import OPEN, mark_placeholders, prepare_markdown
from gta_bench.tools.documents.tables import read_json

MOST_BYTES: Final = 200_000
MOST_SLIDES: Final = 200
KEYS: Final = ("title", "content", "notes")
EXPECTED: Final = (
    'Expected a JSON list of slides: [{"title": "…", "content": "text or a list of points", '
    '"notes": "optional"}].'
)
# Starts of lines that are Markdown already, and not a plain point of a list.
OWN_FORM: Final = re.compile(
    rf"\s*(?:[-*+]\s|[•·●▪◦‣∙]|\d{{1,9}}[.)]\s|#|>|\||```|~~~|\$\$|!\[|<|{OPEN})"
)
BULLET: Final = re.compile(r"^([ \t]*)[•·●▪◦‣∙\u2013\u2014]\s*(?=\S)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Slide:
    """One requested slide; its content may need several slides."""

    title: tuple[TextRun, ...]
    blocks: tuple[Block, ...]
    notes: str


@dataclass(frozen=True, slots=True)
class SlideSource:
    """The texts of a slide; title and content are Markdown."""

    title: str
    content: str
    notes: str


def read_sources(text: str) -> tuple[SlideSource, ...]:
    """Read `slides_content_str`. Raises a ToolError that says what is expected."""
    data = read_json("slides_content_str", text, most_bytes=MOST_BYTES, expected=EXPECTED)
    if isinstance(data, dict):
        data = data["slides"] if list(data) == ["slides"] else [data]
    if not isinstance(data, list) or not data:
        raise ToolError(f"`slides_content_str` is not a list of slides. {EXPECTED}")
    if len(data) > MOST_SLIDES:
        raise ToolError(
            f"`slides_content_str` has {len(data)} slides; at most {MOST_SLIDES} are allowed."
        )
    return tuple(_read_source(slide, number) for number, slide in enumerate(data, start=1))


def _read_source(slide: Any, number: int) -> SlideSource:
    if not isinstance(slide, dict) or not slide:
        raise ToolError(f"Slide {number} is not an object. {EXPECTED}")
    unknown = [key for key in slide if key not in KEYS]
    if unknown:
        raise ToolError(f"Slide {number} has the unknown key {unknown[0]!r}. {EXPECTED}")
    title, notes = (_read_value(slide.get(key), key, number) for key in ("title", "notes"))
    content = slide.get("content")
    lines = _list_points(content, number) if isinstance(content, list) else None
    text = "\n".join(lines) if lines is not None else _read_value(content, "content", number)
    markdown = prepare_markdown(BULLET.sub(r"\1- ", mark_placeholders(text)))
    title = " ".join(mark_placeholders(title).split())
    return SlideSource(title, markdown, mark_placeholders(notes))


def _read_value(value: Any, key: str, number: int) -> str:
    if value is None:
        return ""
    if isinstance(value, str | int | float):
        return str(value)
    raise ToolError(f"Slide {number}: {key!r} is not text. {EXPECTED}")


def _list_points(items: list[Any], number: int, depth: int = 0) -> list[str]:
    """Return the entries of a list as Markdown points, nested ones indented."""
    lines: list[str] = []
    for item in items:
        if isinstance(item, list) and depth < 4:
            lines += _list_points(item, number, depth + 1)
            continue
        text = _read_value(item, "content", number)
        plain = "\n" not in text.strip() and not OWN_FORM.match(mark_placeholders(text))
        point = "- " if plain and text.strip() else ""
        lines += ["  " * depth + point + (text.strip() if plain else text)]
    return lines


async def read_slides(jail: Jail, texts: tuple[SlideSource, ...]) -> tuple[Slide, ...]:
    """Parse all texts in one run of pandoc, each on its own."""
    parts = [part for text in texts for part in (text.title or " ", text.content or " ")]
    blocks = [{"t": "CodeBlock", "c": [["", [READER], []], part]} for part in parts]
    document = {"pandoc-api-version": [1, 23, 1], "meta": {}, "blocks": blocks}
    done = await run_pandoc(
        jail,
        ["-f", "json", "-t", "json", "-L", "../inputs/slides.lua"],
        text=json.dumps(document).encode(),
        inputs={name: read_resource(name) for name in ("slides.lua", "raw.lua")},
    )
    try:
        divisions = [node["c"][1] for node in json.loads(done.stdout)["blocks"]]
        read = [read_blocks(division) for division in divisions]
    except RecursionError as exc:
        raise ToolError("Lists or quotes of the slides are nested too deeply.") from exc
    return tuple(
        Slide(_read_title(title, text.title), tuple(content), text.notes)
        for text, title, content in zip(texts, read[::2], read[1::2], strict=True)
    )


def _read_title(blocks: list[Block], source: str) -> tuple[TextRun, ...]:
    """Return one line; a title that Markdown reads as a list (`1. Start`) stays as written."""
    lines = [block for block in blocks if isinstance(block, Line)]
    if len(lines) == 1 and len(blocks) == 1 and lines[0].mark is None:
        return lines[0].runs
    return (TextRun(source),) if source else ()
