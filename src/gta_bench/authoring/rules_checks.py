"""Rules about the checks of leaves.

Each function yields what it finds; the first paragraph of its docstring is the rule.
"""

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Final, get_args

from gta_bench.authoring.subject import LintedTask, LintFound, LintSpot, file_of, plain
from gta_bench.content.database import find_query_problem
from gta_bench.content.kinds import KIND_OF_SUFFIX, KINDS, ContentKind
from gta_bench.datasets.package_checks import make_package_check
from gta_bench.errors import UsageError, format_count, join_first, suggest_name
from gta_bench.records import checks as kinds
from gta_bench.records.checks import AnyCheck
from gta_bench.records.finding import Severity
from gta_bench.records.tools import SERVER_SEPARATOR

TEXTS: Final = frozenset(
    {"docx", "pptx", "xlsx", "pdf", "csv", "markdown", "html", "json", "code", "text", "svg"}
)
TABLES: Final = frozenset({"xlsx", "csv", "docx", "pptx", "html", "markdown", "pdf"})
PICTURES: Final = frozenset(kind for kind, facts in KINDS.items() if facts.reader == "image")
MEDIA: Final = frozenset(kind for kind, facts in KINDS.items() if facts.reader == "media")
# The kinds of files that a check can read, by the beginning of its name.
FIT: Final[Mapping[str, frozenset[str]]] = {
    "text.": TEXTS | {"mail", "notebook"},
    "doc.heading": frozenset({"docx", "pptx", "pdf", "html", "markdown", "text"}),
    "doc.": frozenset({"docx", "pptx", "pdf", "html", "markdown", "text"}),
    "table.": TABLES | {"text"},
    "xlsx.": frozenset({"xlsx"}),
    "json.": frozenset({"json", "notebook"}),
    "image.": PICTURES,
    "media.": MEDIA,
    "html.": frozenset({"html", "markdown"}),
    "zip.": frozenset({"zip"}),
}


def find_unfit_checks(task: LintedTask) -> LintFound:
    """Checks exist, have known parameters, and fit the kind of their file.

    A check that cannot read the kind of its file never holds. A file that a check names, such as a
    table to compare with, is in the task folder. A query is a single SELECT. A task with checks of
    a tool server's state offers tools of that server (a warning, because a run can add them).
    """
    for problem in task.problems:
        if ".checks" in (problem.field or ""):
            yield LintSpot(problem.problem, problem.field)
    for leaf in task.leaves:
        for check in leaf.checks:
            if isinstance(check, kinds.PackageCheck):
                yield from _ask_package(check, leaf.id)
                continue
            problems = (_explain_misfit(task, check), _explain_parameter(task, check))
            yield from (LintSpot(f"{check.label}: {one}", leaf.id) for one in problems if one)
            if isinstance(check, kinds.StateFile | kinds.SqliteQuery):
                yield from _find_server(task, check, leaf.id)


def _ask_package(check: kinds.PackageCheck, leaf: str) -> LintFound:
    try:
        make_package_check(check)
    except UsageError as exc:
        yield LintSpot(str(exc), leaf)


def _find_server(
    task: LintedTask, check: kinds.StateFile | kinds.SqliteQuery, leaf: str
) -> LintFound:
    start = f"{check.server}{SERVER_SEPARATOR}"
    if not any(name.startswith(start) for name in task.tools):
        message = f"{check.label}: the task offers no tool of {check.server!r}; add {start}*."
        yield LintSpot(message, leaf, severity="warning")


def _explain_misfit(task: LintedTask, check: AnyCheck) -> str | None:
    file = file_of(check)
    kind = KIND_OF_SUFFIX.get(PurePosixPath(file).suffix.lower())
    if kind is None:
        return None
    fit = next((fit for start, fit in FIT.items() if check.label.startswith(start)), None)
    if fit is not None and kind not in fit:
        return f"cannot read {kind}."
    if getattr(check, "sheet", None) is not None and kind != "xlsx":
        return f"{kind} has no sheets."
    if isinstance(check, kinds.FileIsKind) and check.kind != kind:
        return f"wants {check.kind}, but {file!r} is {kind} by its name."
    return None


def _explain_parameter(task: LintedTask, check: AnyCheck) -> str | None:
    if isinstance(check, kinds.FileIsKind) and check.kind not in get_args(ContentKind):
        return f"unknown kind {check.kind!r}{suggest_name(check.kind, get_args(ContentKind))}"
    if isinstance(check, kinds.TextRegex):
        try:
            re.compile(check.pattern)
        except re.error as exc:
            return f"{check.pattern!r} is not a regular expression: {exc}."
    if isinstance(check, kinds.SqliteQuery):
        problem = find_query_problem(check.query)
        if problem is not None:
            return f"the query cannot be used: {problem}."
    name = None
    if isinstance(check, kinds.TableSame):
        name = check.reference
    elif isinstance(check, kinds.PythonCheck):
        name = check.run.partition(":")[0]
    if name is not None and task.folder is not None and not (task.folder / name).is_file():
        return f"there is no file {name!r}."
    return None


def find_undeclared_files(task: LintedTask) -> LintFound:
    """Every check is about exactly one file of `[deliverables]`.

    A check whose pattern matches no declared file never holds, and one that matches several never
    decides.
    """
    names = list(task.deliverables)
    for leaf in task.leaves:
        for pattern in dict.fromkeys(map(file_of, leaf.checks)):
            wanted = pattern.removeprefix("outputs/")
            found = (
                [wanted] if wanted in names else [one for one in names if fnmatchcase(one, wanted)]
            )
            if pattern and len(found) != 1:
                matched = f"{format_count(len(found), 'file')} of [deliverables]"
                yield LintSpot(f"{pattern!r} matches {matched}.", leaf.id)


def find_exact_floats(task: LintedTask) -> LintFound:
    """A number with decimals has a tolerance, `within` or `rel`.

    Otherwise the same value rounded or computed in another order fails.
    """
    for leaf in task.leaves:
        for check in leaf.checks:
            value = getattr(check, "equals", getattr(check, "number", None))
            tolerant = any(getattr(check, one, None) is not None for one in ("within", "rel"))
            ours = not isinstance(check, kinds.PackageCheck)
            if ours and isinstance(value, float) and not value.is_integer() and not tolerant:
                yield LintSpot(f"{check.label} wants exactly {value:g}; add `within`.", leaf.id)


def find_empty_matches(task: LintedTask) -> LintFound:
    """A regular expression does not match an empty text.

    One that does also holds for a file without content.
    """
    for leaf in task.leaves:
        for check in leaf.checks:
            if isinstance(check, kinds.TextRegex) and check.max != 0 and _matches_empty(check):
                yield LintSpot(f"{check.pattern!r} matches an empty text.", leaf.id)


def _matches_empty(check: kinds.TextRegex) -> bool:
    try:
        return check.min == 0 or re.search(check.pattern, "", re.MULTILINE) is not None
    except re.error:
        return False


def find_parroted_texts(task: LintedTask) -> LintFound:
    """A leaf does not hold by repeating the request.

    A leaf whose checks want only texts that the request contains earns points for a copy of it.
    """
    for leaf in task.leaves:
        wanted = [_wanted_texts(check) for check in leaf.checks]
        if leaf.by != "check" or not wanted or any(texts is None for texts in wanted):
            continue
        every = [plain(text) for texts in wanted for text in texts or ()]
        if every and all(text in task.plain_request for text in every):
            listed = join_first([repr(text) for text in every], 3)
            yield LintSpot(f"a copy of the request meets it: {listed}.", leaf.id)


def _wanted_texts(check: AnyCheck) -> tuple[str, ...] | None:
    """The texts that make a check hold; None if it wants anything else."""
    match check:
        case kinds.TextContains():
            return (*(check.all or ()), *(check.any or ())) or None
        case kinds.AnswerContains() if check.number is None:
            return (*(check.all or ()), *(check.any or ()))
        case kinds.FileExists() | kinds.FileOpens() | kinds.FileIsKind() | kinds.FileNotInput():
            return ()
        case _:
            return None


CHECK_RULES: Final[Mapping[str, tuple[Severity, Callable[[LintedTask], LintFound]]]] = {
    "T23": ("error", find_unfit_checks),
    "T24": ("error", find_undeclared_files),
    "T25": ("warning", find_exact_floats),
    "T26": ("warning", find_empty_matches),
    "T27": ("warning", find_parroted_texts),
}
