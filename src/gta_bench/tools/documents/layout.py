"""The layout of slides: text that fits, more slides for the rest, no overlaps.

Lengths are in points. Text gets the largest size at which it fits next to the pictures of its
slide. If it does not fit at any size, it flows over as many slides as it needs. Text is measured
without a font file, by the widths of Arial, which many fonts share.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Final, NamedTuple

from gta_bench.errors import ToolError
from gta_bench.tools.documents.blocks import Block, Grid, GridRows, Line, TextRun
from gta_bench.tools.documents.pictures import DecodedPicture

# In thousandths of the font size, for U+0020 to U+007E.
ARIAL: Final = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
)  # fmt: skip
# Roughly what east_asian_width calls wide; a word is anything else up to the spaces after it.
WIDE_CHARACTERS: Final = (
    "\u1100-\u115f\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe6f"
    "\uff00-\uffef\U0001f000-\U0003ffff"
)
# A word of 200 characters is longer than any line and is broken anywhere.
WORD: Final = re.compile(f"\n|[{WIDE_CHARACTERS}] *|[^\n {WIDE_CHARACTERS}]{{1,200}} *| +")
OTHERS: Final = 0.6
MONO_WIDTH: Final = 0.6
BOLD: Final = 1.08
RAISED: Final = 0.66
# Other machines may replace Arial by a wider font, so text must fit with room to spare.
SAFETY: Final = 1.2
WIDTH, HEIGHT = 960.0, 540.0
MARGIN: Final = 43.0
TITLE_TOP, TITLE_HEIGHT = 24.0, 74.0
BODY_TOP, BODY_BOTTOM = 112.0, 512.0
GAP: Final = 14.0
SIZES: Final = (24.0, 22.0, 20.0, 18.0, 16.0)
SPLIT_SIZES: Final = (20.0, 18.0, 16.0)
TITLE_SIZES: Final = (32.0, 28.0, 24.0, 20.0)
TABLE_SIZES: Final = (20.0, 18.0, 16.0, 14.0, 12.0, 10.0, 8.0)
READABLE_TABLE: Final = 12.0
LEADING: Final = 1.25
PARAGRAPH_GAP: Final = 0.3  # of the size
INDENT: Final = 1.4  # of the size, for each level
CELL_MARGIN: Final = 6.0
MOST_COLUMNS: Final = 15
MOST_ROWS: Final = 2000
MOST_LINES: Final = 60  # of a cell, more than fit on a slide
MOST_PAGES: Final = 400
PICTURES_ON_A_PAGE: Final = 4
WIDE: Final = 2.2  # a picture with a higher ratio is placed below the text, not next to it


@cache
def _measure_char(char: str) -> float:
    if " " <= char <= "~":
        return ARIAL[ord(char) - 32] / 1000
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Cf"):
        return 0.0
    return 1.0 if unicodedata.east_asian_width(char) in "WF" else OTHERS


@lru_cache(maxsize=8192)
def _measure_unit(text: str, code: bool, bold: bool) -> float:
    """Return the width at size 1, with a margin for letters; ideographs are square."""
    widths = [_measure_char(char) for char in text]
    if code:
        widths = [1.0 if width == 1.0 else MONO_WIDTH for width in widths]
    safety = SAFETY * (BOLD if bold else 1.0)
    return sum(1.01 if width == 1.0 else width * safety for width in widths)


def measure_piece(text: str, run: TextRun, size: float) -> float:
    """Return the width of some characters in the style of a run, in points."""
    scale = size * (RAISED if run.raised else 1.0)
    return scale * _measure_unit(text, run.code, run.bold)


def measure_text(runs: Sequence[TextRun], size: float) -> float:
    """Return the width of the widest line, in points."""
    widest = width = 0.0
    for run, word in _split_words(runs):
        width = 0.0 if word == "\n" else width + measure_piece(word, run, size)
        widest = max(widest, width)
    return widest


def wrap(
    runs: Sequence[TextRun], room: float, size: float, *, most: int | None = None
) -> list[int]:
    """Return the number of characters on each line, broken at spaces and between ideographs.

    With `most`, it stops after one line more than that.
    """
    lines = [0]
    used = 0.0
    for run, word in _split_words(runs):
        width = 0.0 if word == "\n" else measure_piece(word, run, size)
        bare = word.rstrip(" ")
        visible = width if len(bare) == len(word) else measure_piece(bare, run, size)
        if used and used + visible > room:
            lines.append(0)
            used = 0.0
        if most is not None and len(lines) > most:
            return lines
        if visible > room:
            used = _break_anywhere(lines, run, word, room, size)
            continue
        lines[-1] += len(word)
        used += width
        if word == "\n":
            lines.append(0)
            used = 0.0
    return lines


def _break_anywhere(lines: list[int], run: TextRun, word: str, room: float, size: float) -> float:
    """Break a word that is longer than a line."""
    used = 0.0
    for char in word:
        width = measure_piece(char, run, size)
        if used and used + width > room:
            lines.append(0)
            used = 0.0
        lines[-1] += 1
        used += width
    return used


def cut_runs(runs: Sequence[TextRun], at: int) -> tuple[tuple[TextRun, ...], tuple[TextRun, ...]]:
    """Split the runs after `at` characters."""
    head: list[TextRun] = []
    tail: list[TextRun] = []
    for run in runs:
        before, after = run.text[:at], run.text[at:]
        at = max(0, at - len(run.text))
        head += [replace(run, text=before)] if before else []
        tail += [replace(run, text=after)] if after else []
    return tuple(head), tuple(tail)


def _split_words(runs: Sequence[TextRun]) -> Iterator[tuple[TextRun, str]]:
    """Yield pieces that are not broken: a word with the spaces after it, or one ideograph."""
    for run in runs:
        for found in WORD.finditer(run.text):
            yield run, found[0]


class SlideBox(NamedTuple):
    """A rectangle on a slide."""

    left: float
    top: float
    width: float
    height: float


BODY: Final = SlideBox(MARGIN, BODY_TOP, WIDTH - 2 * MARGIN, BODY_BOTTOM - BODY_TOP)


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Lines in a box."""

    box: SlideBox
    lines: tuple[Line, ...]
    size: float


@dataclass(frozen=True, slots=True)
class TableBlock:
    """A table in a box, with the width of each column and the height of each row."""

    box: SlideBox
    grid: Grid
    columns: tuple[float, ...]
    rows: tuple[float, ...]
    size: float


_Content = Line | Grid | TableBlock  # a TableBlock is the rest of a table whose sizes are set


@dataclass(frozen=True, slots=True)
class PictureBlock:
    """A picture in a box of its shape."""

    box: SlideBox
    picture: DecodedPicture


Placed = TextBlock | TableBlock | PictureBlock


@dataclass(frozen=True, slots=True)
class Title:
    """The title of a slide, and the size at which it fits."""

    runs: tuple[TextRun, ...]
    size: float


@dataclass(frozen=True, slots=True)
class Page:
    """A finished slide."""

    blocks: tuple[Placed, ...]


def fit_title(runs: Sequence[TextRun]) -> Title | None:
    """Return the title at the largest size at which it fits, or None if it is too long."""
    for size in TITLE_SIZES:
        lines = wrap([replace(run, bold=True) for run in runs], BODY.width, size)
        if len(lines) * size * LEADING <= TITLE_HEIGHT:
            return Title(tuple(runs), size)
    return None


def lay_out_pages(blocks: Sequence[Block], pictures: Sequence[DecodedPicture]) -> list[Page]:
    """Lay out the content of one slide on as many pages as it needs."""
    content = [block for block in blocks if isinstance(block, Line | Grid)]
    first, more = pictures[:PICTURES_ON_A_PAGE], pictures[PICTURES_ON_A_PAGE:]
    room, placed = _place_pictures(first, has_text=bool(content))
    pages = _flow(content, room) if content else [Page(())]
    pages[0] = Page((*pages[0].blocks, *placed))
    for start in range(0, len(more), PICTURES_ON_A_PAGE):
        _, rest = _place_pictures(more[start : start + PICTURES_ON_A_PAGE], has_text=False)
        pages.append(Page(tuple(rest)))
    if len(pages) > MOST_PAGES:
        raise ToolError(
            f"The content of a slide fills {len(pages)} slides; at most {MOST_PAGES} are allowed."
        )
    return pages


# Pictures


def _place_pictures(
    pictures: Sequence[DecodedPicture], *, has_text: bool
) -> tuple[SlideBox, list[Placed]]:
    """Return the room that is left for text, and the placed pictures."""
    if not pictures:
        return BODY, []
    if not has_text:
        return BODY, _arrange(pictures, BODY)
    if all(picture.width > WIDE * picture.height for picture in pictures):
        natural = sum(BODY.width * picture.height / picture.width for picture in pictures)
        height = min(natural + GAP * len(pictures), BODY.height * 0.5)
        below = SlideBox(BODY.left, BODY.top + BODY.height - height, BODY.width, height)
        room = SlideBox(BODY.left, BODY.top, BODY.width, BODY.height - height - GAP)
        return room, _stack(pictures, below)
    narrowest = max(
        BODY.height / len(pictures) * picture.width / picture.height for picture in pictures
    )
    width = min(BODY.width * 0.45, max(narrowest, BODY.width * 0.15))
    column = SlideBox(BODY.left + BODY.width - width, BODY.top, width, BODY.height)
    room = SlideBox(BODY.left, BODY.top, BODY.width - width - GAP, BODY.height)
    return room, _stack(pictures, column)


def _stack(pictures: Sequence[DecodedPicture], area: SlideBox) -> list[Placed]:
    each = (area.height - GAP * (len(pictures) - 1)) / len(pictures)
    return [
        _fit_picture(
            picture, SlideBox(area.left, area.top + number * (each + GAP), area.width, each)
        )
        for number, picture in enumerate(pictures)
    ]


def _arrange(pictures: Sequence[DecodedPicture], area: SlideBox) -> list[Placed]:
    """Place pictures without text, in the grid in which they are largest."""
    choices = [_place_grid(pictures, area, columns) for columns in range(1, len(pictures) + 1)]
    return max(choices, key=lambda blocks: sum(b.box.width * b.box.height for b in blocks))


def _place_grid(pictures: Sequence[DecodedPicture], area: SlideBox, columns: int) -> list[Placed]:
    rows = -(-len(pictures) // columns)
    width = (area.width - GAP * (columns - 1)) / columns
    height = (area.height - GAP * (rows - 1)) / rows
    return [
        _fit_picture(
            picture,
            SlideBox(
                area.left + (number % columns) * (width + GAP),
                area.top + (number // columns) * (height + GAP),
                width,
                height,
            ),
        )
        for number, picture in enumerate(pictures)
    ]


def _fit_picture(picture: DecodedPicture, room: SlideBox) -> PictureBlock:
    """Center a picture in a room, as large as possible; small ones are scaled up to 1.5."""
    scale = min(room.width / picture.width, room.height / picture.height, 1.5)
    width, height = picture.width * scale, picture.height * scale
    left = room.left + (room.width - width) / 2
    return PictureBlock(
        SlideBox(left, room.top + (room.height - height) / 2, width, height), picture
    )


# Text and tables


def _flow(content: Sequence[_Content], first: SlideBox) -> list[Page]:
    for size in SIZES:
        blocks, rest = _fill(list(content), first, size)
        if not rest:
            return [Page(tuple(blocks))]
    # The largest size with the fewest pages.
    return min((_split(content, first, size) for size in SPLIT_SIZES), key=len)


def _split(content: Sequence[_Content], first: SlideBox, size: float) -> list[Page]:
    pages: list[Page] = []
    rest, room = list(content), first
    while rest and len(pages) <= MOST_PAGES:
        blocks, rest = _fill(rest, room, size)
        if not blocks and room is BODY:
            raise ToolError("A table row is too tall for a slide. Shorten its cells.")
        pages.append(Page(tuple(blocks)))
        room = BODY
    return pages


class _Step(NamedTuple):
    """A placed block, the remaining content, and whether the room is full."""

    block: TextBlock | TableBlock | None
    rest: list[_Content]
    full: bool


def _fill(
    content: list[_Content], room: SlideBox, size: float
) -> tuple[list[Placed], list[_Content]]:
    """Fill a room from the top; return the placed blocks and the remaining content."""
    placed: list[Placed] = []
    top = room.top
    step = _Step(None, content, full=False)
    while step.rest and not step.full:
        space = SlideBox(room.left, top, room.width, room.top + room.height - top)
        if isinstance(step.rest[0], Line):
            step = _place_lines(step.rest, space, size)
        else:
            step = _place_table(step.rest[0], step.rest[1:], space, fresh=not placed)
        if step.block is not None:
            placed.append(step.block)
            top = step.block.box.top + step.block.box.height + GAP
    return placed, step.rest


def _place_lines(waiting: list[_Content], room: SlideBox, size: float) -> _Step:
    taken: list[Line] = []
    used = 0.0
    left: list[_Content] = []
    full = False
    for line in waiting:
        if not isinstance(line, Line) or full:
            break
        height = line_height(line, size)
        fitting = max(0, int((room.height - used) // height))
        width = room.width - measure_indent(line, size)
        words = wrap(line.runs, width, font_size(line, size), most=fitting + 1)
        if len(words) <= fitting:
            taken.append(line)
            used += len(words) * height + size * PARAGRAPH_GAP
            continue
        full = True
        if fitting >= 1 and (not taken or (fitting >= 3 and len(words) - fitting >= 2)):
            head, tail = cut_runs(line.runs, sum(words[:fitting]))
            hanging = line.mark is not None or line.hanging
            taken.append(replace(line, runs=head))
            left = [replace(line, runs=tail, mark=None, hanging=hanging)]
            used += fitting * height
    if not taken:
        return _Step(None, waiting, full=True)
    box = SlideBox(room.left, room.top, room.width, min(used, room.height))
    return _Step(TextBlock(box, tuple(taken), size), [*left, *waiting[len(taken) :]], full)


def font_size(line: Line, size: float) -> float:
    """Return the font size of a line; code is smaller, because its letters are wide."""
    return size * 0.85 if line.kind == "code" else size


def line_height(line: Line, size: float) -> float:
    """Return the line height, which the file also sets, so that every font has it."""
    return font_size(line, size) * LEADING


def measure_indent(line: Line, size: float) -> float:
    """Return where the text begins; a mark hangs before it."""
    levels = line.level + (1 if line.kind == "quote" else 0)
    return size * INDENT * levels


def _place_table(
    table: Grid | TableBlock | Line, after: list[_Content], room: SlideBox, *, fresh: bool
) -> _Step:
    """Place a whole table if it stays readable, otherwise as many rows as fit."""
    assert not isinstance(table, Line)
    if isinstance(table, Grid):
        choices = [_measure_table(table, room.width, size) for size in TABLE_SIZES]
    else:
        choices = [table]
    for choice in choices:
        readable = fresh or choice.size >= READABLE_TABLE
        if choice.box.height <= room.height and readable:
            return _Step(_move(choice, room), after, full=False)
    for choice in choices:
        fitting, header = _count_rows(choice, room.height), choice.grid.header
        if fitting > header and (fresh or fitting >= header + 3):
            head, tail = _split_table(choice, fitting)
            return _Step(_move(head, room), [tail, *after], full=True)
    return _Step(None, [table, *after], full=True)


def _move(table: TableBlock, room: SlideBox) -> TableBlock:
    return replace(table, box=table.box._replace(left=room.left, top=room.top))


def _split_table(table: TableBlock, at: int) -> tuple[TableBlock, TableBlock]:
    """Split a table; both parts have the header and the same columns."""
    rows, heights, header = table.grid.rows, table.rows, table.grid.header
    return (
        _replace_rows(table, rows[:at], heights[:at]),
        _replace_rows(table, (*rows[:header], *rows[at:]), (*heights[:header], *heights[at:])),
    )


def _replace_rows(table: TableBlock, rows: GridRows, heights: tuple[float, ...]) -> TableBlock:
    return replace(
        table,
        grid=replace(table.grid, rows=rows),
        rows=heights,
        box=table.box._replace(height=sum(heights)),
    )


def _count_rows(table: TableBlock, height: float) -> int:
    used = 0.0
    for number, row in enumerate(table.rows):
        used += row
        if used > height:
            return number
    return len(table.rows)


@lru_cache(maxsize=64)
def _measure_table(grid: Grid, room: float, size: float) -> TableBlock:
    if len(grid.alignments) > MOST_COLUMNS:
        raise ToolError(
            f"A table on a slide has {len(grid.alignments)} columns; at most {MOST_COLUMNS} fit."
        )
    if len(grid.rows) > MOST_ROWS:
        raise ToolError(f"A table on a slide has {len(grid.rows)} rows; at most {MOST_ROWS} fit.")
    columns = _measure_columns(grid, room, size)
    rows = tuple(
        max(
            len(wrap(cell, columns[number] - 2 * CELL_MARGIN, size, most=MOST_LINES))
            for number, cell in enumerate(row)
        )
        * size
        * LEADING
        + CELL_MARGIN
        for row in grid.rows
    )
    return TableBlock(SlideBox(0.0, 0.0, sum(columns), sum(rows)), grid, columns, rows, size)


def _measure_columns(grid: Grid, room: float, size: float) -> tuple[float, ...]:
    """Return widths that fit the content, otherwise shared by need with a minimum."""
    wanted = [
        max(
            measure_text([replace(run, bold=True) for run in row[column]], size)
            for row in grid.rows
        )
        + 2 * CELL_MARGIN
        + 2
        for column in range(len(grid.alignments))
    ]
    if sum(wanted) <= room:
        spare = min((room - sum(wanted)) / len(wanted), 60.0)
        return tuple(width + spare for width in wanted)
    least = min(room / len(wanted), size * 4)
    share = [max(least, min(width, room * 0.6)) for width in wanted]
    over = sum(share) - room
    loose = sum(width - least for width in share)
    if over > 0 and loose > 0:
        share = [width - (width - least) / loose * over for width in share]
    return tuple(share)
