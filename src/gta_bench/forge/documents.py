"""Word documents, decks and charts with the same bytes every time, and the look of careful work."""

import io
import re
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import docx
import matplotlib
import pptx
from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Inches as WordInches
from docx.shared import Pt as WordPt
from docx.shared import RGBColor as WordColor
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from pptx.chart.data import CategoryChartData
from pptx.dml.color import RGBColor
from pptx.enum.chart import XL_CHART_TYPE
from pptx.enum.shapes import MSO_SHAPE
from pptx.enum.text import MSO_ANCHOR, PP_ALIGN
from pptx.util import Inches, Pt

from gta_bench.forge.files import ForgedCell, repack

BLUE: Final = "1F4E79"
GREEN: Final = "2E6B4F"
GRAY: Final = "595959"
BLACK: Final = "262626"
PALE: Final = "EEF2F6"
WHITE: Final = "FFFFFF"
LINE: Final = "BFBFBF"
# python-pptx has no types for these.
_paint: Final[Any] = RGBColor.from_string
_ChartData: Final[Any] = CategoryChartData
_TITLE_ONLY: Final = 5  # a layout of python-pptx's template
_HUGE: Final = 60_000  # from here on, a chart counts in thousands
_NUMBER: Final = re.compile(r"\d+(?: %)?(?= )")
_FONT: Final = "Arial"
_SIZES: Final = {"Normal": 11, "Title": 24, "Heading 1": 16, "Heading 2": 13, "Caption": 9}


class Head(NamedTuple):
    """A heading."""

    text: str
    level: int = 1
    new_page: bool = False


class WordTable(NamedTuple):
    """A table; the first row is its head."""

    rows: Sequence[Sequence[ForgedCell]]


class WordPicture(NamedTuple):
    """A picture, what it shows, and the text below it."""

    data: bytes
    about: str
    caption: str = ""


class DeckChart(NamedTuple):
    """A chart that PowerPoint draws from its data."""

    name: str
    labels: Sequence[str]
    values: Sequence[float]
    lying: bool = False


class ForgedSlide(NamedTuple):
    """A slide; the first one of a deck is its cover."""

    title: str
    points: Sequence[str] = ()
    notes: str = ""
    table: WordTable | None = None
    shown: DeckChart | WordPicture | None = None


WordBlock = Head | WordTable | WordPicture | str


def group_digits(value: ForgedCell) -> str:
    """Return a cell as people write it in a document: 12,345 and 12,345.60."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if isinstance(value, Decimal | float) else value


# The wrong works of a task have the chart of its gold.
@lru_cache(maxsize=8)
def draw_bars(
    title: str,
    bars: tuple[tuple[str, float], ...],
    *,
    color: str = BLUE,
    size: tuple[float, float] = (6.4, 3.4),
    text: int = 9,
    lying: bool = False,
) -> bytes:
    """Return a bar chart as PNG, in the font that comes with matplotlib.

    `size` is in inches and `text` in points.
    """
    font = Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSans.ttf")
    plain, strong = (FontProperties(fname=font, size=one) for one in (text, text + 3))
    labels, values = [name for name, _ in bars], [value for _, value in bars]
    data = io.BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        figure = Figure(figsize=size, dpi=150, layout="constrained")
        axes = figure.add_subplot()
        drawn = (axes.barh if lying else axes.bar)(labels, values, color=f"#{color}")
        if lying:
            axes.invert_yaxis()
        axes.bar_label(drawn, [_shorten(one) for one in values], padding=2, fontproperties=plain)
        axes.margins(x=0.14 if lying else None, y=None if lying else 0.14)
        # The bars have their values, so the scale is not shown.
        axes.spines[["top", "right", "bottom" if lying else "left"]].set_visible(False)
        axes.tick_params(axis="x" if lying else "y", left=False, bottom=False, labelleft=lying,
                         labelbottom=not lying)  # fmt: skip
        for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
            label.set_fontproperties(plain)
        axes.set_title(title, fontproperties=strong, loc="left")
        figure.savefig(data, format="png", metadata={"Software": None})
    return data.getvalue()


def _shorten(value: float) -> str:
    return f"{value / 1000:,.0f}k" if abs(value) >= _HUGE else f"{value:,.0f}"


def write_document(title: str, *blocks: WordBlock, color: str = BLUE, white: bool = False) -> bytes:
    """Return a Word document: a title, then headings, paragraphs, tables and pictures.

    With `white`, its paragraphs are written in white.
    """
    document = docx.Document()
    document.core_properties.title = title
    document.core_properties.author = ""
    document.styles["Normal"].paragraph_format.space_after = WordPt(6)
    for style, size in _SIZES.items():
        font = document.styles[style].font
        font.name, font.size = _FONT, WordPt(size)
        # Headings have a font of the theme, which counts unless it is replaced.
        font.element.rPr.rFonts.attrib.pop(qn("w:asciiTheme"), None)
        font.element.rPr.rFonts.attrib.pop(qn("w:hAnsiTheme"), None)
        if style != "Normal":
            font.color.rgb = WordColor.from_string(color)
    _find(document.styles["Title"].element, "w:bottom").set(qn("w:color"), color)
    page = document.sections[0]
    page.top_margin = page.bottom_margin = WordInches(0.7)
    document.add_paragraph(title, style="Title")
    for block in blocks:
        match block:
            case Head():
                head = document.add_heading(block.text, block.level)
                head.paragraph_format.page_break_before = block.new_page or None
            case WordTable():
                _add_table(document, block, color)
            case WordPicture():
                _add_picture(document, block)
            case _:
                written = document.add_paragraph().add_run(block)
                if white:
                    written.font.color.rgb = WordColor.from_string(WHITE)
    data = io.BytesIO()
    document.save(data)
    return repack(data.getvalue())


def _add_table(document: Any, grid: WordTable, color: str) -> None:
    table = document.add_table(0, len(grid.rows[0]), style="Table Grid")
    _draw_lines(table._tbl.tblPr)
    for number, row in enumerate(grid.rows):
        for at, (cell, value) in enumerate(zip(table.add_row().cells, row, strict=True)):
            paragraph = cell.paragraphs[0]
            paragraph.paragraph_format.space_before = WordPt(2)
            paragraph.paragraph_format.space_after = WordPt(2)
            run = paragraph.add_run(group_digits(value))
            if number == 0:
                run.bold, run.font.color.rgb = True, WordColor.from_string(WHITE)
                _shade(cell, color)
            elif number % 2 == 0:
                _shade(cell, PALE)
            if at:
                paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT
    gap = document.add_paragraph()
    gap.paragraph_format.space_after = WordPt(0)
    gap.paragraph_format.line_spacing = WordPt(6)


def _draw_lines(table: Any) -> None:
    """Give a table gray lines, and let its edge meet the margin instead of its text."""
    lines = OxmlElement("w:tblBorders")
    for side in ("top", "left", "bottom", "right", "insideH", "insideV"):
        line = OxmlElement(f"w:{side}")
        for name, value in (("val", "single"), ("sz", "4"), ("color", LINE)):
            line.set(qn(f"w:{name}"), value)
        lines.append(line)
    indent = OxmlElement("w:tblInd")
    indent.set(qn("w:w"), "110")
    indent.set(qn("w:type"), "dxa")
    # The order of the schema: the indent, the lines, then the layout and the look.
    at = next(n for n, one in enumerate(table) if one.tag in (qn("w:tblLayout"), qn("w:tblLook")))
    table[at:at] = [indent, lines]


def _find(element: Any, name: str) -> Any:
    """Return the first element with a name below another one."""
    return next(element.iter(qn(name)))


def _shade(cell: Any, color: str) -> None:
    shade = OxmlElement("w:shd")
    shade.set(qn("w:val"), "clear")
    shade.set(qn("w:fill"), color)
    cell._tc.get_or_add_tcPr().append(shade)


def _add_picture(document: Any, picture: WordPicture) -> None:
    document.paragraphs[-1].paragraph_format.keep_with_next = True
    shape = document.add_picture(io.BytesIO(picture.data), width=WordInches(6))
    shape._inline.docPr.set("descr", picture.about)
    if picture.caption:
        document.add_paragraph(picture.caption, style="Caption")


def write_deck(slides: Sequence[ForgedSlide], *, foot: str, color: str = BLUE) -> bytes:
    """Return a deck in 16:9: a cover, then slides with points, a table, a chart and notes."""
    deck = pptx.Presentation()
    deck.core_properties.title = slides[0].title
    deck.core_properties.author = ""
    deck.slide_width, deck.slide_height = Inches(13.333), Inches(7.5)
    for number, slide in enumerate(slides, 1):
        page = deck.slides.add_slide(deck.slide_layouts[_TITLE_ONLY])
        if number == 1:
            _add_cover(page, slide, color)
        else:
            _add_content(page, slide, color)
            _write(page, (0.7, 6.95, 10, 0.35), [foot], size=12, color=GRAY)
            _write(page, (11.6, 6.95, 1, 0.35), [str(number)], size=12, color=GRAY, right=True)
        if slide.notes:
            page.notes_slide.notes_text_frame.text = slide.notes
    data = io.BytesIO()
    deck.save(data)
    return repack(data.getvalue())


Place = tuple[float, float, float, float]


def _add_cover(page: Any, slide: ForgedSlide, color: str) -> None:
    page.background.fill.solid()
    page.background.fill.fore_color.rgb = _paint(color)
    _set_title(page, slide.title, (1, 2.2, 11.3, 1.6), size=44, color=WHITE)
    _fill(page, (1.1, 3.95, 1.6, 0.06), WHITE)
    _write(page, (1, 4.2, 11.3, 1.2), slide.points, size=22, color=WHITE)


def _add_content(page: Any, slide: ForgedSlide, color: str) -> None:
    _fill(page, (0, 0, 0.28, 7.5), color)
    _set_title(page, slide.title, (0.7, 0.45, 11.9, 0.9), size=34, color=color)
    _fill(page, (0.8, 1.38, 11.7, 0.03), color)
    if slide.table is None and slide.shown is None:
        _add_cards(page, slide.points, color)
    else:
        for number, point in enumerate(slide.points):
            top = 1.75 + number * 0.62
            _fill(page, (0.85, top + 0.1, 0.09, 0.36), color)
            _write(page, (1.05, top, 4.9, 0.56), [point], size=18, color=BLACK)
    if slide.table is not None:
        top = 2.05 + 0.62 * len(slide.points)
        height = min(0.5 * len(slide.table.rows), 6.6 - top)
        _add_grid(page, slide.table, (0.85, top, 5, height), color)
    match slide.shown:
        case DeckChart():
            _add_chart(page, slide.shown, color)
        case WordPicture():
            place = map(Inches, (6.2, 1.7, 6.6))
            shape = page.shapes.add_picture(io.BytesIO(slide.shown.data), *place)
            shape._element.nvPicPr.cNvPr.set("descr", slide.shown.about)


def _add_cards(page: Any, points: Sequence[str], color: str) -> None:
    """Put points side by side; the number that a point begins with is large."""
    width = (11.7 - 0.4 * (len(points) - 1)) / len(points)
    for at, point in enumerate(points):
        left = 0.8 + at * (width + 0.4)
        _fill(page, (left, 2.0, width, 4.2), PALE)
        _fill(page, (left, 2.0, width, 0.09), color)
        begins = _NUMBER.match(point)
        lines = [begins[0], point[begins.end() + 1 :]] if begins else [point]
        place = left + 0.3, 2.4, width - 0.6, 3.4
        frame = _write(page, place, lines, size=26, color=BLACK)
        if begins:
            _style(frame.paragraphs[0], 66, color, bold=True)


def _set_title(page: Any, text: str, place: Place, *, size: int, color: str) -> None:
    title = page.shapes.title
    title.left, title.top, title.width, title.height = map(Inches, place)
    title.text_frame.text = text
    title.text_frame.vertical_anchor = MSO_ANCHOR.MIDDLE
    _style(title.text_frame.paragraphs[0], size, color, bold=True)


def _write(
    page: Any, place: Place, lines: Sequence[str], *, size: int, color: str, right: bool = False
) -> Any:
    frame = page.shapes.add_textbox(*map(Inches, place)).text_frame
    frame.word_wrap = True
    frame.vertical_anchor = MSO_ANCHOR.MIDDLE
    frame.text = "\n".join(lines)
    for paragraph in frame.paragraphs:
        _style(paragraph, size, color)
        paragraph.alignment = PP_ALIGN.RIGHT if right else PP_ALIGN.LEFT
    return frame


def _style(paragraph: Any, size: int, color: str, *, bold: bool = False) -> None:
    paragraph.alignment = PP_ALIGN.LEFT
    paragraph.font.name, paragraph.font.size, paragraph.font.bold = _FONT, Pt(size), bold
    paragraph.font.color.rgb = _paint(color)


def _fill(page: Any, place: Place, color: str) -> None:
    shape = page.shapes.add_shape(MSO_SHAPE.RECTANGLE, *map(Inches, place))
    shape.fill.solid()
    shape.fill.fore_color.rgb = _paint(color)
    shape.line.fill.background()
    shape.shadow.inherit = False


def _add_grid(page: Any, grid: WordTable, place: Place, color: str) -> None:
    size = len(grid.rows), len(grid.rows[0])
    table = page.shapes.add_table(*size, *map(Inches, place)).table
    for number, row in enumerate(grid.rows):
        for at, value in enumerate(row):
            cell = table.cell(number, at)
            cell.text = group_digits(value)
            cell.fill.solid()
            back = color if number == 0 else PALE if number % 2 else WHITE
            cell.fill.fore_color.rgb = _paint(back)
            cell.vertical_anchor = MSO_ANCHOR.MIDDLE
            paragraph = cell.text_frame.paragraphs[0]
            _style(paragraph, 14, BLACK if number else WHITE, bold=number == 0)
            if at:
                paragraph.alignment = PP_ALIGN.RIGHT


def _add_chart(page: Any, chart: DeckChart, color: str) -> None:
    data = _ChartData()
    data.categories = chart.labels
    data.add_series(chart.name, chart.values)
    kind = XL_CHART_TYPE.BAR_CLUSTERED if chart.lying else XL_CHART_TYPE.COLUMN_CLUSTERED
    place = map(Inches, (6.2, 1.7, 6.6, 5))
    drawn = page.shapes.add_chart(kind, *place, data).chart
    drawn.has_legend, drawn.has_title = False, True
    drawn.chart_title.text_frame.text = chart.name
    drawn.chart_title.text_frame.paragraphs[0].font.size = Pt(16)
    drawn.font.name, drawn.font.size = _FONT, Pt(12)
    drawn.value_axis.visible = False
    plot = drawn.plots[0]
    plot.gap_width, plot.has_data_labels = 60, True
    drawn.value_axis.has_major_gridlines = False
    plot.series[0].format.fill.solid()
    plot.series[0].format.fill.fore_color.rgb = _paint(color)
