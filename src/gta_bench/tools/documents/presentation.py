"""PowerPoint files: requested slides, laid out on as many slides as they need."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote

from pptx import Presentation
from pptx.dml.color import RGBColor
from pptx.enum.text import MSO_ANCHOR, MSO_AUTO_SIZE, PP_ALIGN
from pptx.oxml.ns import qn
from pptx.util import Emu, Pt

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.documents import layout
from gta_bench.tools.documents.blocks import Block, Line, Shown, TextRun
from gta_bench.tools.documents.fonts import FAMILIES, LATIN, MONO, find_script
from gta_bench.tools.documents.layout import (
    LEADING,
    Page,
    PictureBlock,
    TableBlock,
    TextBlock,
    Title,
    fit_title,
    lay_out_pages,
)
from gta_bench.tools.documents.pictures import DecodedPicture, read_pictures
from gta_bench.tools.documents.slides import Slide

EMU: Final = 12700  # in a point
TITLE_ONLY: Final = 5  # a layout of the default template of python-pptx
ALIGN: Final = {"left": PP_ALIGN.LEFT, "right": PP_ALIGN.RIGHT, "center": PP_ALIGN.CENTER}
BULLETS: Final = ("•", "\u2013", "▪", "\u2013", "▪")
COVER_SIZE: Final = 40.0
GRID_STYLE: Final = "{5940675A-B579-460E-94D1-54222C63F5DA}"  # "No Style, Table Grid"
CONTINUED: Final = TextRun(" (cont.)")
MOST_SHEETS: Final = 500
SHORTENED: Final = 60


def _color(digits: str) -> RGBColor:
    return RGBColor.from_string(digits)  # type: ignore[no-untyped-call, no-any-return]


ACCENT: Final = _color("1F3864")
GRAY: Final = _color("595959")
HEADER: Final = _color("E7ECF5")
WHITE: Final = _color("FFFFFF")


@dataclass(frozen=True, slots=True)
class DeckSlide:
    """A slide of the file: its title, content and notes."""

    title: Title | None
    page: Page
    notes: str = ""


def build_deck(sheets: Sequence[DeckSlide]) -> bytes:
    """Return the bytes of the file."""
    deck = Presentation()
    deck.slide_width, deck.slide_height = _emu(layout.WIDTH), _emu(layout.HEIGHT)
    for sheet in sheets:
        slide = deck.slides.add_slide(deck.slide_layouts[TITLE_ONLY])
        _add_title(slide, sheet)
        for block in sheet.page.blocks:
            if isinstance(block, TextBlock):
                _add_text(slide, block)
            elif isinstance(block, TableBlock):
                _add_table(slide, block)
            else:
                _add_picture(slide, block)
        if sheet.notes:
            slide.notes_slide.notes_text_frame.text = sheet.notes
    stream = io.BytesIO()
    deck.save(stream)
    return stream.getvalue()


def _emu(points: float) -> Emu:
    return Emu(round(points * EMU))


def _add_title(slide: Any, sheet: DeckSlide) -> None:
    shape = slide.shapes.title
    if sheet.title is None:
        shape._element.getparent().remove(shape._element)
        return
    cover = not sheet.page.blocks
    top = layout.HEIGHT * 0.3 if cover else layout.TITLE_TOP
    height = layout.HEIGHT * 0.4 if cover else layout.TITLE_HEIGHT
    shape.left, shape.top = _emu(layout.MARGIN), _emu(top)
    shape.width, shape.height = _emu(layout.BODY.width), _emu(height)
    frame = _prepare_frame(shape)
    frame.vertical_anchor = MSO_ANCHOR.MIDDLE
    paragraph = frame.paragraphs[0]
    paragraph.alignment = PP_ALIGN.CENTER if cover else PP_ALIGN.LEFT
    size = COVER_SIZE if cover and sheet.title.size == layout.TITLE_SIZES[0] else sheet.title.size
    paragraph.line_spacing = Pt(size * LEADING)
    for run in sheet.title.runs:
        _add_run(paragraph, replace(run, bold=True), size, ACCENT)


def _prepare_frame(shape: Any) -> Any:
    """Return a text frame without margins and scaling, so that our measurements are valid."""
    frame = shape.text_frame
    frame.word_wrap = True
    frame.auto_size = MSO_AUTO_SIZE.NONE
    frame.margin_left = frame.margin_right = frame.margin_top = frame.margin_bottom = 0
    return frame


def _add_text(slide: Any, block: TextBlock) -> None:
    shape = slide.shapes.add_textbox(*(_emu(length) for length in block.box))
    frame = _prepare_frame(shape)
    for number, line in enumerate(block.lines):
        paragraph = frame.paragraphs[0] if number == 0 else frame.add_paragraph()
        _add_line(paragraph, line, block.size)


def _add_line(paragraph: Any, line: Line, size: float) -> None:
    paragraph.line_spacing = Pt(layout.line_height(line, size))
    paragraph.space_after = Pt(size * layout.PARAGRAPH_GAP)
    _set_mark(paragraph, line, size)
    heading, quote = line.kind == "heading", line.kind == "quote"
    color = ACCENT if heading else GRAY if quote else None
    for run in line.runs:
        styled = replace(run, bold=run.bold or heading, italic=run.italic or quote)
        _add_run(paragraph, styled, layout.font_size(line, size), color)


def _set_mark(paragraph: Any, line: Line, size: float) -> None:
    """Set a real bullet or number with a hanging indent."""
    properties = paragraph._p.get_or_add_pPr()
    left = round(layout.measure_indent(line, size) * EMU)
    hanging = round(size * layout.INDENT * EMU) if line.mark else 0
    properties.set("marL", str(left))
    properties.set("indent", str(-hanging))
    if line.mark is None:
        properties.append(properties.makeelement(qn("a:buNone"), {}))
        return
    font = properties.makeelement(qn("a:buFont"), {"typeface": LATIN})
    if line.mark.endswith("."):
        number = {"type": "arabicPeriod", "startAt": line.mark[:-1]}
        mark = properties.makeelement(qn("a:buAutoNum"), number)
    else:
        char = BULLETS[min(line.level, len(BULLETS)) - 1] if line.mark == "•" else line.mark
        mark = properties.makeelement(qn("a:buChar"), {"char": char})
    properties.append(font)
    properties.append(mark)


def _add_run(paragraph: Any, run: TextRun, size: float, color: RGBColor | None = None) -> None:
    for number, text in enumerate(run.text.split("\n")):
        if number:
            paragraph.add_line_break()
        if not text:
            continue
        made = paragraph.add_run()
        made.text = text
        font = made.font
        font.size = Pt(size)
        font.bold = run.bold
        font.italic = run.italic
        font.underline = run.underline or None
        if color is not None:
            font.color.rgb = color
        if run.link:
            made.hyperlink.address = run.link
        _set_fonts(made, run, text)


def _set_fonts(made: Any, run: TextRun, text: str) -> None:
    """Set the fonts for Latin and East Asian letters, and the language of the latter."""
    properties = made._r.get_or_add_rPr()
    made.font.name = MONO if run.code else LATIN
    family = FAMILIES[find_script(text) or "zh"]
    latin = properties.find(qn("a:latin"))
    latin.addnext(properties.makeelement(qn("a:ea"), {"typeface": family.office}))
    if find_script(text):
        properties.set("lang", family.language)
        properties.set("altLang", "en-US")
    if run.raised:
        properties.set("baseline", "30000" if run.raised > 0 else "-25000")
    if run.strike:
        properties.set("strike", "sngStrike")


def _add_table(slide: Any, block: TableBlock) -> None:
    grid = block.grid
    shape = slide.shapes.add_table(
        len(grid.rows), len(block.columns), *(_emu(length) for length in block.box)
    )
    table = shape.table
    table._tbl.tblPr.find(qn("a:tableStyleId")).text = GRID_STYLE
    table.first_row = grid.header > 0
    for number, width in enumerate(block.columns):
        table.columns[number].width = _emu(width)
    for number, height in enumerate(block.rows):
        table.rows[number].height = _emu(height)
    for row, cells in enumerate(grid.rows):
        for column, runs in enumerate(cells):
            cell = table.cell(row, column)
            _fill_cell(cell, runs, block, header=row < grid.header)
            cell.text_frame.paragraphs[0].alignment = ALIGN[grid.alignments[column]]


def _fill_cell(cell: Any, runs: Sequence[TextRun], block: TableBlock, *, header: bool) -> None:
    cell.margin_left = cell.margin_right = _emu(layout.CELL_MARGIN)
    cell.margin_top = cell.margin_bottom = _emu(layout.CELL_MARGIN / 2)
    cell.vertical_anchor = MSO_ANCHOR.MIDDLE
    cell.fill.solid()
    cell.fill.fore_color.rgb = HEADER if header else WHITE
    paragraph = cell.text_frame.paragraphs[0]
    paragraph.line_spacing = Pt(block.size * LEADING)
    for run in runs:
        _add_run(paragraph, replace(run, bold=run.bold or header), block.size)
    if not runs:
        paragraph.font.size = Pt(block.size)


def _add_picture(slide: Any, block: PictureBlock) -> None:
    stream = io.BytesIO(block.picture.data)
    shape = slide.shapes.add_picture(stream, *(_emu(length) for length in block.box))
    shape._element.nvPicPr.cNvPr.set("descr", block.picture.stem)


@dataclass
class Album:
    """The pictures of a presentation, and which of them are shown."""

    workspace: Workspace
    numbered: tuple[DecodedPicture, ...]
    shown: set[str] = field(default_factory=set)

    def find(self, wanted: Shown) -> DecodedPicture:
        """Return a picture by number or path. Raises ToolError if it does not exist."""
        if wanted.target is not None:
            picture = read_pictures(self.workspace, [unquote(wanted.target)])[0]
        elif wanted.number is not None and 1 <= wanted.number <= len(self.numbered):
            picture = self.numbered[wanted.number - 1]
        else:
            raise ToolError(
                f"`{{{{image_{wanted.number}}}}}` has no picture: "
                f"`image_paths` lists {len(self.numbered)}."
            )
        self.shown.add(picture.path)
        return picture

    def rest(self) -> tuple[DecodedPicture, ...]:
        """Return the pictures of `image_paths` that no slide shows."""
        return tuple(picture for picture in self.numbered if picture.path not in self.shown)


def make_presentation(workspace: Workspace, slides: Sequence[Slide], image_paths: str) -> bytes:
    """Return the file; pictures that no slide shows get slides at the end."""
    album = Album(workspace, read_pictures(workspace, image_paths))
    sheets = [sheet for slide in slides for sheet in _lay_out(slide, album)]
    for picture in album.rest():
        title = fit_title([TextRun(picture.stem)])
        sheets += [DeckSlide(title, page) for page in lay_out_pages([], [picture])]
    if len(sheets) > MOST_SHEETS:
        raise ToolError(
            f"The content fills {len(sheets)} slides; at most {MOST_SHEETS} are allowed."
        )
    return build_deck(sheets)


def _lay_out(slide: Slide, album: Album) -> Iterator[DeckSlide]:
    title, blocks = _split_title(slide)
    pictures = [album.find(block) for block in blocks if isinstance(block, Shown)]
    for number, page in enumerate(lay_out_pages(blocks, pictures)):
        yield DeckSlide(
            _mark_continued(title) if number else title, page, "" if number else slide.notes
        )


def _split_title(slide: Slide) -> tuple[Title | None, list[Block]]:
    """Shorten a title that is too long, and add all of it as the first line."""
    if not slide.title:
        return None, list(slide.blocks)
    title = fit_title(slide.title)
    if title is not None:
        return title, list(slide.blocks)
    words = "".join(run.text for run in slide.title)
    short = fit_title([TextRun(words[:SHORTENED].rstrip() + "…")])
    return short, [Line(slide.title, kind="heading"), *slide.blocks]


def _mark_continued(title: Title | None) -> Title | None:
    if title is None:
        return None
    return fit_title([*title.runs, CONTINUED]) or title
