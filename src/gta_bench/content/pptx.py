"""PowerPoint decks: texts, tables, charts, diagrams, picture names and notes of each slide."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from gta_bench.confine.jail import Jail
from gta_bench.content.driver import Driver
from gta_bench.content.office import open_office
from gta_bench.content.tables import TableRows, format_markdown_table

MOST_SLIDES = 500


@dataclass(frozen=True, slots=True)
class SlideText:
    """A text box, a placeholder or the text of a diagram."""

    kind: Literal["text"]
    text: str

    def as_text(self) -> str:
        """The text."""
        return self.text


@dataclass(frozen=True, slots=True)
class SlideTable:
    """A table; the text of merged cells is in the first of them."""

    kind: Literal["table"]
    rows: TableRows

    def as_text(self) -> str:
        """The table as Markdown."""
        return format_markdown_table(self.rows)


@dataclass(frozen=True, slots=True)
class Series:
    """A series of a chart; its points are (category or x, value)."""

    name: str
    points: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SlideChart:
    """The type and data of a chart."""

    kind: Literal["chart"]
    type: str
    title: str
    series: tuple[Series, ...]

    def as_text(self) -> str:
        """One line for each series."""
        title = f" {self.title!r}" if self.title else ""
        lines = [f"[{self.type}{title}]"]
        for series in self.series:
            points = ", ".join(f"{label}={value}" for label, value in series.points)
            lines.append(f"{series.name or '(no name)'}: {points}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class SlidePicture:
    """A picture, audio or video; `text` is its description, or else its name."""

    kind: Literal["picture"]
    text: str

    def as_text(self) -> str:
        """A placeholder for the picture."""
        return f"[picture: {self.text}]"


SlidePart = Annotated[
    SlideText | SlideTable | SlideChart | SlidePicture, Field(discriminator="kind")
]


@dataclass(frozen=True, slots=True)
class _Slide:
    """One slide; `parts` are ordered from top to bottom and exclude the title."""

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
    """A deck; `slide_count` may be larger than the number of slides that were read."""

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
    """Read a deck. Raises ToolError if it is not a deck, is broken, or is too large."""
    await open_office(data, "pptx")
    return await DRIVER.read(jail, data, most_slides=MOST_SLIDES)
