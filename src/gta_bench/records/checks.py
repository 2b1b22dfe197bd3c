"""Checks: conditions of a leaf that code decides, as an author writes them in `task.toml`.

Every kind is a record with its parameters and a sentence that says when it holds. The package
`gta_bench.checks` decides them. `file` is the path of a deliverable or a pattern (`*.xlsx`) that
matches exactly one. Installed packages add kinds of their own, which are kept as they were written.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    model_validator,
)

from gta_bench.records.base import Record

# Who decides a leaf. `check-then-judge`: if a check fails, its score counts; otherwise the judge's.
DecidedBy = Literal["judge", "check", "check-then-judge"]
# How the checks of a leaf become a score: all or nothing, by share, or by distance from the value.
Credit = Literal["all", "share", "linear"]
# The pseudo-judge under which the verdicts of checks are stored.
CHECK: Literal["check"] = "check"
MOST_REFERENCE = 1 << 20  # characters of a reference table or of a Python check
# Languages by their ISO 639-1 codes.
Language = Literal[
    "ar", "cs", "de", "el", "en", "es", "fa", "fr", "he", "hi", "id", "it", "ja", "ko", "nl", "pl",
    "pt", "ru", "sv", "th", "tr", "uk", "vi", "zh",
]  # fmt: skip

# Not strict, because units in logs have lists.
Texts = Annotated[
    tuple[Annotated[str, Field(min_length=1, strict=True)], ...], Field(min_length=1, strict=False)
]
PartCount = Annotated[int, Field(ge=0)]
PositiveNumber = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Tolerance = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Path = Annotated[
    str,
    Field(
        min_length=1,
        description="Path of a deliverable, or a pattern such as `*.xlsx` that matches one.",
    ),
]


class _Check(Record):
    """The base of all checks; `is` names the kind."""

    # Strict, because TOML has types: "5" is not a number, and 5 is not a text.
    model_config = ConfigDict(
        strict=True, serialize_by_alias=True, validate_by_name=True, validate_by_alias=True
    )

    @property
    def label(self) -> str:
        """The kind's name."""
        return str(getattr(self, "check"))  # noqa: B009 - each subclass has its own literal


class _FileCheck(_Check):
    file: Path


class WantedRange(Record):
    """A smallest and a largest value, either of which may be left out."""

    model_config = ConfigDict(strict=True)

    min: Number | None = None
    max: Number | None = None

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("give `min`, `max` or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("`min` is larger than `max`")
        return self


def _need_one(check: Record, *names: str) -> None:
    """Raise if none of these parameters is given, so that the check would hold for anything."""
    if all(getattr(check, name) in (None, False) for name in names):
        raise ValueError(f"give at least one of {', '.join(f'`{name}`' for name in names)}")


class FileExists(_FileCheck):
    """Holds if the file was delivered and is not empty."""

    check: Literal["file.exists"] = Field(alias="is")


class FileIsKind(_FileCheck):
    """Holds if the file's bytes are of that kind, whatever its name says."""

    check: Literal["file.kind"] = Field(alias="is")
    kind: str = Field(description="A kind such as `xlsx`, `pdf`, `png`, `mp4`, `csv`, `markdown`.")


class FileOpens(_FileCheck):
    """Holds if the reader for its kind can read the whole file."""

    check: Literal["file.opens"] = Field(alias="is")


class FileNotInput(_FileCheck):
    """Holds if the file is not a copy of one of the task's inputs."""

    check: Literal["file.not_input"] = Field(alias="is")


class TextContains(_FileCheck):
    """Holds if the file's text has all of `all`, one of `any` and none of `none`."""

    check: Literal["text.contains"] = Field(alias="is")
    all: Texts | None = None
    any: Texts | None = None
    none: Texts | None = None
    case: bool = Field(False, description="Whether upper and lower case matter.")

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        _need_one(self, "all", "any", "none")
        return self


class TextRegex(_FileCheck):
    """Holds if a regular expression (Python's) matches the file's text so many times."""

    check: Literal["text.regex"] = Field(alias="is")
    pattern: Annotated[str, Field(min_length=1)]
    min: PartCount = 1
    max: PartCount | None = None


class TextNoPlaceholder(_FileCheck):
    """Holds if the text has no lorem ipsum, TODO, TBD, `[insert …]`, `{{…}}` or text of `more`."""

    check: Literal["text.no_placeholder"] = Field(alias="is")
    more: Texts | None = None


class TextLanguage(_FileCheck):
    """Holds if at least `share` of the file's text is in a language, by script and common words."""

    check: Literal["text.language"] = Field(alias="is")
    language: Language = Field(description="A code such as `en` or `zh`.")
    share: Annotated[float, Field(gt=0, le=1)] = 0.8


class DocHeading(_FileCheck):
    """Holds if these headings occur in that order; slide titles are headings."""

    check: Literal["doc.heading"] = Field(alias="is")
    texts: Texts
    level: Annotated[int, Field(ge=1, le=6)] | None = None


class DocSize(_FileCheck):
    """Holds if the number of pages (slides) or of words is in the range."""

    check: Literal["doc.size"] = Field(alias="is")
    pages: WantedRange | None = None
    words: WantedRange | None = None

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        _need_one(self, "pages", "words")
        return self


class DocParts(_FileCheck):
    """Holds if a document has at least so many pictures, charts, tables, or slides with notes."""

    check: Literal["doc.parts"] = Field(alias="is")
    pictures: PartCount | None = None
    charts: PartCount | None = None
    tables: PartCount | None = None
    notes: PartCount | None = None

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        _need_one(self, "pictures", "charts", "tables", "notes")
        return self


class TableCheck(_FileCheck):
    """A check of a table in a workbook, CSV file, document, deck, page, Markdown or PDF file.

    `sheet` names a sheet of a workbook. Without it, every table of the file is tried.
    """

    sheet: str | None = None


class TableShape(TableCheck):
    """Holds if a table has that many rows below its head, columns, and these column names."""

    check: Literal["table.shape"] = Field(alias="is")
    rows: WantedRange | None = None
    columns: WantedRange | None = None
    head: Texts | None = None

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        _need_one(self, "rows", "columns", "head")
        return self


class TableValue(TableCheck):
    """Holds if the cell in the row and column with these labels has that value."""

    check: Literal["table.value"] = Field(alias="is")
    row: str
    column: str
    equals: Number | str
    within: Tolerance | None = Field(None, description="Allowed difference of a number.")
    rel: Tolerance | None = Field(None, description="Allowed difference as a share of the value.")
    zero_at: PositiveNumber | None = Field(
        None, description='With `credit = "linear"`: the difference that gives 0 points.'
    )
    exact: bool = Field(False, description="Whether case and spaces of a text matter.")

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        if self.exact and not isinstance(self.equals, str):
            raise ValueError("`exact` needs a text in `equals`")
        return self


class TableSum(TableCheck):
    """Holds if a column adds up to that value, in all rows or where other columns match."""

    check: Literal["table.sum"] = Field(alias="is")
    column: str
    equals: Number
    where: Mapping[str, str] = {}
    within: Tolerance | None = None
    zero_at: PositiveNumber | None = None


class TableOrder(TableCheck):
    """Holds if the rows are sorted by a column; with `unique`, no value occurs twice."""

    check: Literal["table.order"] = Field(alias="is")
    by: str
    desc: bool = False
    unique: bool = False


class TableKeys(TableCheck):
    """Holds if a column has all of `all`, nothing but `only`, and with `once` no value twice."""

    check: Literal["table.keys"] = Field(alias="is")
    column: str
    all: Texts | None = None
    only: Texts | None = None
    once: bool = False

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        _need_one(self, "all", "only", "once")
        return self


class TableSame(TableCheck):
    """Holds if a table equals a CSV file of the task folder; rows may be in any order.

    `rows` has the text of that file, so that a stored run can be checked without the task folder.
    """

    check: Literal["table.same"] = Field(alias="is")
    reference: str = Field(description="A CSV file in the task folder, such as `gold/a/out.csv`.")
    key: Texts = Field(description="The columns that identify a row.")
    within: Tolerance | None = None
    rows: Annotated[str, Field(max_length=MOST_REFERENCE)] | None = None


class XlsxCell(_FileCheck):
    """Holds if the cell at an address has that value; `formula` says whether it is computed.

    With `change`, the value is the one that LibreOffice computes after these cells were changed.
    """

    check: Literal["xlsx.cell"] = Field(alias="is")
    at: str = Field(pattern=r"^[A-Z]{1,3}[1-9][0-9]{0,6}$")
    sheet: str | None = None
    equals: Number | str | None = None
    within: Tolerance | None = None
    formula: bool | None = None
    zero_at: PositiveNumber | None = None
    change: Mapping[Annotated[str, Field(pattern=r"^.+![A-Z]{1,3}[1-9][0-9]{0,6}$")], Number] = (
        Field(
            {},
            description="New numbers by sheet and cell, such as `Input!B2`; the value must follow.",
        )
    )

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        if self.equals is None and (self.formula is None or self.change):
            raise ValueError("give at least one of `equals`, `formula`")
        return self


class XlsxNoErrors(_FileCheck):
    """Holds if no cell shows an error such as `#REF!` after recalculation."""

    check: Literal["xlsx.no_errors"] = Field(alias="is")


_STEP = re.compile(r"\.(\*|[^.\[\]'\"*\s]+)|\[(-?\d{1,9}|\*)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")


def split_path(path: str) -> tuple[str, ...]:
    """Return the names, indexes and `*` of a path of JSON; raise ValueError if it is none.

    >>> split_path("$.items[-1]['two words'].*")
    ('items', '-1', 'two words', '*')
    """
    steps, at = [], 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise ValueError(f"{path!r} is not a path: write it as $.name[0]['two words'][*]")
        steps.append(next(part for part in step.groups() if part is not None))
        at = step.end()
    return tuple(steps)


def _check_path(path: str) -> str:
    split_path(path)
    return path


class JsonPath(_FileCheck):
    """Holds if the value at a path exists, and has that value, type or number of entries.

    Paths have names, indexes (-1 is the last one) and `*`: `$.items[0].price`, `$['two words']`,
    `$.items[*].id`.
    """

    check: Literal["json.path"] = Field(alias="is")
    path: Annotated[str, AfterValidator(_check_path)] = Field(pattern=r"^\$")
    equals: Number | str | bool | None = None
    within: Tolerance | None = None
    type: Literal["object", "array", "string", "number", "boolean", "null"] | None = None
    min: PartCount = Field(1, description="How many values the path must find at least.")
    max: PartCount | None = Field(None, description="How many values the path may find.")


class ImageFacts(_FileCheck):
    """Holds if a picture has that size in pixels; with `not_blank`, more than one color."""

    check: Literal["image.facts"] = Field(alias="is")
    width: WantedRange | None = None
    height: WantedRange | None = None
    not_blank: bool = False

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        _need_one(self, "width", "height", "not_blank")
        return self


def _check_least(least: int | None, texts: Texts | None) -> None:
    if least is not None and least > len(texts or ()):
        raise ValueError("`least` is more than the number of texts in `all`")


class ImageText(_FileCheck):
    """Holds if text recognition reads all texts of `all` on a picture, or at least so many."""

    check: Literal["image.text"] = Field(alias="is")
    all: Texts
    least: Annotated[int, Field(ge=1)] | None = Field(
        None, description="How many texts of `all` are enough; recognition makes mistakes."
    )

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        _check_least(self.least, self.all)
        return self


class MediaFacts(_FileCheck):
    """Holds if audio or video has that length, size, streams, and at most that share of silence."""

    check: Literal["media.facts"] = Field(alias="is")
    seconds: WantedRange | None = None
    width: WantedRange | None = Field(None, description="Of the film, in pixels.")
    height: WantedRange | None = Field(None, description="Of the film, in pixels.")
    video: bool | None = None
    audio: bool | None = None
    silence: Annotated[float, Field(ge=0, le=1)] | None = None

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        names = ("seconds", "width", "height", "video", "audio", "silence")
        if all(getattr(self, name) is None for name in names):
            listed = ", ".join(f"`{name}`" for name in names)
            raise ValueError(f"give at least one of {listed}")
        return self


class MediaShows(_FileCheck):
    """Holds if a film shows all texts of `all`, or so many, at a time in seconds."""

    check: Literal["media.shows"] = Field(alias="is")
    at: Tolerance = Field(description="Seconds after the beginning of the film.")
    all: Texts
    least: Annotated[int, Field(ge=1)] | None = Field(
        None, description="How many texts of `all` are enough; recognition makes mistakes."
    )

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        _check_least(self.least, self.all)
        return self


class MediaSays(_FileCheck):
    """Holds if speech recognition hears all texts of `all`, or so many, and none of `none`."""

    check: Literal["media.says"] = Field(alias="is")
    all: Texts | None = None
    none: Texts | None = None
    least: Annotated[int, Field(ge=1)] | None = Field(
        None, description="How many texts of `all` are enough; recognition makes mistakes."
    )

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        _need_one(self, "all", "none")
        _check_least(self.least, self.all)
        return self


class HtmlOpens(_FileCheck):
    """Holds if a browser opens the page without a script error."""

    check: Literal["html.opens"] = Field(alias="is")


class HtmlShows(_FileCheck):
    """Holds if a reader of the page in a browser sees all of `all`.

    Texts that are hidden, outside, tiny or in the color of the background are not seen.
    """

    check: Literal["html.shows"] = Field(alias="is")
    all: Texts


class HtmlLinks(_FileCheck):
    """Holds if every local file and anchor that a page or Markdown text refers to exists."""

    check: Literal["html.links"] = Field(alias="is")


class ZipMembers(_FileCheck):
    """Holds if an archive has all files of `all` and none of `none`; both accept patterns."""

    check: Literal["zip.members"] = Field(alias="is")
    all: Texts | None = None
    none: Texts | None = None

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        _need_one(self, "all", "none")
        return self


class AnswerContains(_Check):
    """Holds if the final answer has all of `all`, one of `any`, and the number."""

    check: Literal["answer.contains"] = Field(alias="is")
    all: Texts | None = None
    any: Texts | None = None
    number: Number | None = None
    within: Tolerance | None = None

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        if (self.all, self.any, self.number) == (None,) * 3:
            raise ValueError("give at least one of `all`, `any`, `number`")
        return self


class AnswerLine(_Check):
    """Holds if the last line of the final answer is a label, a colon and that value alone."""

    check: Literal["answer.line"] = Field(alias="is")
    equals: Number | str
    within: Tolerance | None = None
    start: Annotated[str, Field(min_length=1)] = Field(
        "Answer", description="The label before the colon."
    )


class _StateCheck(_Check):
    server: Annotated[str, Field(min_length=1)] = Field(
        description="A tool server that declares `state` or `state_command`."
    )
    path: Annotated[str, Field(min_length=1)] = Field(
        description="Path in the server's folder, or a pattern that matches one; `stdout` is what "
        "`state_command` printed."
    )


class StateFile(_StateCheck):
    """Holds if a file of a tool server exists after the last call, and is as wanted.

    `changed` compares it with the file before the first call; a new file has changed. With
    `exists = false`, there must be no such file. `all`, `any` and `none` are texts in it.
    """

    check: Literal["state.file"] = Field(alias="is")
    exists: bool = True
    changed: bool | None = None
    all: Texts | None = None
    any: Texts | None = None
    none: Texts | None = None
    case: bool = Field(False, description="Whether upper and lower case matter.")
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        None, description="Digest of its content."
    )

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        about = (self.changed, self.all, self.any, self.none, self.sha256)
        if not self.exists and about != (None,) * 5:
            raise ValueError("`exists = false` goes with no other condition")
        return self


DatabaseRow = Annotated[tuple[Number | str, ...], Field(min_length=1, strict=False)]


class SqliteQuery(_StateCheck):
    """Holds if a query of a tool server's SQLite database gives that value, or those rows in order.

    The database is as it was after the last call. The query is a single SELECT.
    """

    check: Literal["sqlite.query"] = Field(alias="is")
    query: Annotated[str, Field(min_length=1, max_length=10_000)]
    equals: Number | str | None = Field(None, description="The only value of the only row.")
    rows: Annotated[tuple[DatabaseRow, ...], Field(max_length=1000, strict=False)] | None = None
    within: Tolerance | None = Field(None, description="Allowed difference of numbers.")

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        if (self.equals is None) == (self.rows is None):
            raise ValueError("give `equals` or `rows`")
        return self


class PythonCheck(_Check):
    """Holds if a function of the task folder gives 10 points; it runs in the jail.

    `source` has the text of that file, so that a stored run can be checked without the task folder.
    """

    check: Literal["python"] = Field(alias="is")
    run: str = Field(
        pattern=r"^checks/[^/\\]+\.py:[A-Za-z_]\w*$",
        description="File and function, such as `checks/plan.py:is_feasible`.",
    )
    source: Annotated[str, Field(max_length=MOST_REFERENCE)] | None = None


OurCheck = (
    FileExists | FileIsKind | FileOpens | FileNotInput
    | TextContains | TextRegex | TextNoPlaceholder | TextLanguage
    | DocHeading | DocSize | DocParts
    | TableShape | TableValue | TableSum | TableOrder | TableKeys | TableSame
    | XlsxCell | XlsxNoErrors | JsonPath | ImageFacts | ImageText
    | MediaFacts | MediaShows | MediaSays
    | HtmlOpens | HtmlShows | HtmlLinks | ZipMembers | AnswerContains | AnswerLine
    | StateFile | SqliteQuery | PythonCheck
)  # fmt: skip


def _kind_of(check: Any) -> str:
    return str(get_args(check.model_fields["check"].annotation)[0])


# Every kind of check by its name.
CHECKS: Mapping[str, type[OurCheck]] = {_kind_of(one): one for one in get_args(OurCheck)}
# How packages name their kinds. What our kinds begin with is reserved, so that a mistyped name of
# ours is not taken for one of a package.
_OURS = "|".join(sorted({name.partition(".")[0] for name in CHECKS}))
PACKAGE_KIND = rf"^(?!({_OURS})\.)[A-Za-z0-9_-]+\.[A-Za-z0-9_.-]+$"


class PackageCheck(_Check):
    """A check of an installed package: its kind, and parameters that the package knows.

    A stored run with such checks can be read where the package is not installed.
    """

    model_config = ConfigDict(extra="allow")

    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)
    check: str = Field(
        alias="is",
        description="A kind of an installed package, `package.kind`.",
        json_schema_extra={"pattern": PACKAGE_KIND},
    )

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """What the author wrote besides `is`."""
        return dict(self.__pydantic_extra__)


AnyCheck = OurCheck | PackageCheck
OURS, OF_PACKAGE = "ours", "of package"


def _find_owner(check: Any) -> str:
    known = isinstance(check, dict)
    named = check.get("is", check.get("check")) if known else getattr(check, "label", None)
    return OF_PACKAGE if isinstance(named, str) and re.match(PACKAGE_KIND, named) else OURS


LeafCheck = Annotated[
    Annotated[Annotated[OurCheck, Field(discriminator="check")], Tag(OURS)]
    | Annotated[PackageCheck, Tag(OF_PACKAGE)],
    Discriminator(_find_owner),
]
