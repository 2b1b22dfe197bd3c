"""PowerPoint decks: texts, tables, charts, diagrams, pictures' names and notes, slide by slide."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from gta_bench.confine.jail import Jail
from gta_bench.content.driver import Driver
from gta_bench.content.office import open_office
from gta_bench.content.tables import Rows, markdown_table

MOST_SLIDES = 500


@dataclass(frozen=True, slots=True)
class SlideText:
    """A text box, a placeholder or a diagram's texts."""

    kind: Literal["text"]
    text: str

    def as_text(self) -> str:
        """The text."""
        return self.text


@dataclass(frozen=True, slots=True)
class SlideTable:
    """A table; a merged cell's text stands in the first of its places."""

    kind: Literal["table"]
    rows: Rows

    def as_text(self) -> str:
        """The table as Markdown."""
        return markdown_table(self.rows)


@dataclass(frozen=True, slots=True)
class Series:
    """The points of a chart's series as (category or x, value)."""

    name: str
    points: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SlideChart:
    """A chart's type and data."""

    kind: Literal["chart"]
    type: str
    title: str
    series: tuple[Series, ...]

    def as_text(self) -> str:
        """One line a series."""
        title = f" {self.title!r}" if self.title else ""
        lines = [f"[{self.type}{title}]"]
        for series in self.series:
            points = ", ".join(f"{label}={value}" for label, value in series.points)
            lines.append(f"{series.name or '(no name)'}: {points}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class SlidePicture:
    """A picture, sound or film; `text` is its description, or its name where there is none."""

    kind: Literal["picture"]
    text: str

    def as_text(self) -> str:
        """A mark for the picture."""
        return f"[picture: {self.text}]"


SlidePart = Annotated[
    SlideText | SlideTable | SlideChart | SlidePicture, Field(discriminator="kind")
]


@dataclass(frozen=True, slots=True)
class _Slide:
    """One slide; `parts` come from top to bottom, without the title."""

    number: int
    title: str
    hidden: bool
    parts: tuple[SlidePart, ...]
    notes: str

    def as_text(self) -> str:
        """The slide as Markdown."""
        hidden = " (hidden)" if self.hidden else ""
        title = f": {self.title}" if self.title else ""
        blocks = [f"## Slide {self.number}{hidden}{title}"]
        blocks += [part.as_text() for part in self.parts]
        blocks += [f"Notes: {self.notes}"] if self.notes else []
        return "\n\n".join(blocks)


@dataclass(frozen=True, slots=True)
class PptxContent:
    """A deck; `slide_count` may be more than the slides that were read."""

    slides: tuple[_Slide, ...]
    slide_count: int

    def as_text(self) -> str:
        """All slides as Markdown."""
        text = "\n\n".join(slide.as_text() for slide in self.slides)
        if len(self.slides) < self.slide_count:
            text += f"\n\n[{len(self.slides)} of {self.slide_count} slides were read.]"
        return text


DRIVER = Driver("pptx", "The pptx reader", ("pptx",), TypeAdapter(PptxContent))


async def read_pptx(data: bytes, jail: Jail) -> PptxContent:
    """Read a deck; ToolError if it is none, broken, or too much."""
    await open_office(data, "pptx")
    return await DRIVER.read(jail, data, most_slides=MOST_SLIDES)
