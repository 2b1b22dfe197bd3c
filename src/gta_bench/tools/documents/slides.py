"""Slides as agents write them: JSON with titles and contents, as Markdown for each slide."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from gta_bench.confine.jail import Jail
from gta_bench.errors import ToolError
from gta_bench.tools.documents.blocks import Block, Line, TextRun, read_blocks
from gta_bench.tools.documents.pandoc import READER, lua_scripts, run_pandoc
from gta_bench.tools.documents.source import OPEN, marked, prepared
from gta_bench.tools.documents.tables import read_json

MOST_BYTES: Final = 200_000
MOST_SLIDES: Final = 200
KEYS: Final = ("title", "content", "notes")
EXPECTED: Final = (
    'Expected a JSON list of slides: [{"title": "…", "content": "text or a list of points", '
    '"notes": "optional"}].'
)
# Markdown's own marks, and what else begins a line that is no point of a list.
OWN_FORM: Final = re.compile(
    rf"\s*(?:[-*+]\s|[•·●▪◦‣∙]|\d{{1,9}}[.)]\s|#|>|\||```|~~~|\$\$|!\[|<|{OPEN})"
)
BULLET: Final = re.compile(r"^([ \t]*)[•·●▪◦‣∙\u2013\u2014]\s*(?=\S)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Slide:
    """One slide as it was asked for, before it is known what fits."""

    title: tuple[TextRun, ...]
    blocks: tuple[Block, ...]
    notes: str


@dataclass(frozen=True, slots=True)
class Text:
    """A slide's words, title and content being Markdown."""

    title: str
    content: str
    notes: str


def read_texts(text: str) -> tuple[Text, ...]:
    """The slides of `slides_content_str`, or a ToolError that says what is expected."""
    data = read_json("slides_content_str", text, most_bytes=MOST_BYTES, expected=EXPECTED)
    if isinstance(data, dict):
        data = data["slides"] if list(data) == ["slides"] else [data]
    if not isinstance(data, list) or not data:
        raise ToolError(f"`slides_content_str` is not a list of slides. {EXPECTED}")
    if len(data) > MOST_SLIDES:
        raise ToolError(f"`slides_content_str` has {len(data)} slides; at most {MOST_SLIDES}.")
    return tuple(_text(slide, number) for number, slide in enumerate(data, start=1))


def _text(slide: Any, number: int) -> Text:
    if not isinstance(slide, dict) or not slide:
        raise ToolError(f"Slide {number} is not an object. {EXPECTED}")
    unknown = [key for key in slide if key not in KEYS]
    if unknown:
        raise ToolError(f"Slide {number} has the unknown key {unknown[0]!r}. {EXPECTED}")
    title, notes = (_word(slide.get(key), key, number) for key in ("title", "notes"))
    content = slide.get("content")
    lines = _points(content, number) if isinstance(content, list) else None
    words = "\n".join(lines) if lines is not None else _word(content, "content", number)
    return Text(" ".join(marked(title).split()), _markdown(words), marked(notes))


def _markdown(words: str) -> str:
    return prepared(BULLET.sub(r"\1- ", marked(words)))


def _word(value: Any, key: str, number: int) -> str:
    if value is None:
        return ""
    if isinstance(value, str | int | float):
        return str(value)
    raise ToolError(f"Slide {number}: {key!r} is not text. {EXPECTED}")


def _points(items: list[Any], number: int, depth: int = 0) -> list[str]:
    """A list's entries as points, deeper lists as points below; other Markdown stays as it is."""
    lines: list[str] = []
    for item in items:
        if isinstance(item, list) and depth < 4:
            lines += _points(item, number, depth + 1)
            continue
        words = _word(item, "content", number)
        plain = "\n" not in words.strip() and not OWN_FORM.match(marked(words))
        point = "- " if plain and words.strip() else ""
        lines += ["  " * depth + point + (words.strip() if plain else words)]
    return lines


async def read_slides(jail: Jail, texts: tuple[Text, ...]) -> tuple[Slide, ...]:
    """All texts through pandoc at once, each read for itself."""
    parts = [part for text in texts for part in (text.title or " ", text.content or " ")]
    blocks = [{"t": "CodeBlock", "c": [["", [READER], []], part]} for part in parts]
    document = {"pandoc-api-version": [1, 23, 1], "meta": {}, "blocks": blocks}
    done = await run_pandoc(
        jail,
        ["-f", "json", "-t", "json", "-L", "../inputs/slides.lua"],
        text=json.dumps(document).encode(),
        inputs=lua_scripts("slides.lua", "raw.lua"),
    )
    try:
        divisions = [node["c"][1] for node in json.loads(done.stdout)["blocks"]]
        read = [read_blocks(division) for division in divisions]
    except RecursionError as exc:
        raise ToolError("The slides' lists or quotes are nested too deeply.") from exc
    return tuple(
        Slide(_title(title, text.title), tuple(content), text.notes)
        for text, title, content in zip(texts, read[::2], read[1::2], strict=True)
    )


def _title(blocks: list[Block], source: str) -> tuple[TextRun, ...]:
    """One line; a title that is a list or a table for Markdown (`1. Start`) stays as written."""
    lines = [block for block in blocks if isinstance(block, Line)]
    if len(lines) == 1 and len(blocks) == 1 and lines[0].mark is None:
        return lines[0].runs
    return (TextRun(source),) if source else ()
