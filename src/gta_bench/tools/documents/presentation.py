"""From slides as they were asked for to slides as they are: titles, pictures, pages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.documents.blocks import Block, Line, Shown, TextRun
from gta_bench.tools.documents.deck import DeckSlide, build_deck
from gta_bench.tools.documents.layout import Title, pages_of, title_of
from gta_bench.tools.documents.pictures import DecodedPicture, read_pictures
from gta_bench.tools.documents.slides import Slide

CONTINUED: Final = TextRun(" (cont.)")
MOST_SHEETS: Final = 500
SHORTENED: Final = 60


@dataclass
class Album:
    """The pictures of a presentation, and which of them have been shown."""

    workspace: Workspace
    numbered: tuple[DecodedPicture, ...]
    shown: set[str] = field(default_factory=set)

    def find(self, wanted: Shown) -> DecodedPicture:
        """A picture by number or path; one that is not there is a ToolError with its name."""
        if wanted.target is not None:
            picture = read_pictures(self.workspace, [unquote(wanted.target)])[0]
        elif wanted.number is not None and 1 <= wanted.number <= len(self.numbered):
            picture = self.numbered[wanted.number - 1]
        else:
            raise ToolError(
                f"`{{{{image_{wanted.number}}}}}` has no picture: "
                f"`image_paths` names {len(self.numbered)}."
            )
        self.shown.add(picture.path)
        return picture

    def rest(self) -> tuple[DecodedPicture, ...]:
        """Those of `image_paths` that no slide shows."""
        return tuple(picture for picture in self.numbered if picture.path not in self.shown)


def make_presentation(workspace: Workspace, slides: Sequence[Slide], image_paths: str) -> bytes:
    """The whole file; pictures that no slide asked for get slides at the end."""
    album = Album(workspace, read_pictures(workspace, image_paths))
    sheets = [sheet for slide in slides for sheet in _sheets(slide, album)]
    for picture in album.rest():
        title = title_of([TextRun(picture.stem)])
        sheets += [DeckSlide(title, page) for page in pages_of([], [picture])]
    if len(sheets) > MOST_SHEETS:
        raise ToolError(f"The content fills {len(sheets)} slides; at most {MOST_SHEETS}.")
    return build_deck(sheets)


def _sheets(slide: Slide, album: Album) -> Iterator[DeckSlide]:
    title, blocks = _titled(slide)
    pictures = [album.find(block) for block in blocks if isinstance(block, Shown)]
    for number, page in enumerate(pages_of(blocks, pictures)):
        yield DeckSlide(_continued(title) if number else title, page, "" if number else slide.notes)


def _titled(slide: Slide) -> tuple[Title | None, list[Block]]:
    """A title that is too long is shortened, and stands in full as the first line."""
    if not slide.title:
        return None, list(slide.blocks)
    title = title_of(slide.title)
    if title is not None:
        return title, list(slide.blocks)
    words = "".join(run.text for run in slide.title)
    short = title_of([TextRun(words[:SHORTENED].rstrip() + "…")])
    return short, [Line(slide.title, kind="heading"), *slide.blocks]


def _continued(title: Title | None) -> Title | None:
    if title is None:
        return None
    return title_of([*title.runs, CONTINUED]) or title
