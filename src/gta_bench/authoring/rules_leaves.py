"""Rules about the tree of a task: what its leaves say, weigh and check.

Each function yields what it finds; the first paragraph of its docstring is the rule.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import combinations
from pathlib import PurePosixPath
from typing import Final

from gta_bench.authoring.subject import (
    LintedLeaf,
    LintedTask,
    LintFound,
    LintSpot,
    file_of,
    find_file_names,
    plain,
)
from gta_bench.content.kinds import KIND_OF_SUFFIX
from gta_bench.errors import join_first
from gta_bench.records import checks as kinds
from gta_bench.records.checks import AnyCheck
from gta_bench.records.finding import Severity


def find_bad_leaves(task: LintedTask) -> LintFound:
    """Every leaf says what it wants, and ids occur once.

    Verdicts are stored under the id of a leaf, and reports show its sentence, also if checks decide
    it.
    """
    assert task.tree is not None
    if not task.leaves:
        yield LintSpot("the task has no leaf, so nothing can be scored; add a [[leaf]].")
    for leaf in task.leaves:
        if not leaf.says.strip():
            yield LintSpot("the leaf does not say what it wants.", leaf.id)
    for name, count in Counter(node.id for node in task.tree.nodes).items():
        if count > 1:
            yield LintSpot(f"{count} groups or leaves have this id; ids must differ.", name)


def find_bad_weights(task: LintedTask) -> LintFound:
    """Weights are above 0, and groups have leaves.

    A leaf that weighs nothing is judged and paid for but changes no score. Delete it, or give it a
    weight.
    """
    for problem in task.problems:
        if (problem.field or "").endswith(".weight"):
            yield LintSpot(problem.problem, problem.field)
    if task.tree is None:
        return
    for node in task.tree.nodes:
        if node.weight <= 0:
            yield LintSpot("the weight is 0, so it does not count.", node.id)
    for group in task.tree.groups:
        if group.size == 0:
            yield LintSpot("the group has no leaf.", group.id)


LARGE_SHARE, SMALL_SHARE = 0.5, 0.01


def find_uneven_shares(task: LintedTask) -> LintFound:
    """No leaf has more than 50 % or less than 1 % of the score.

    One leaf that decides everything hides the others; one below 1 % is not worth its verdict. Tasks
    with fewer than three leaves may have larger ones.
    """
    for leaf in task.leaves:
        if len(task.leaves) > 2 and leaf.share > LARGE_SHARE + 1e-9:
            yield LintSpot(f"the leaf has {leaf.share:.0%} of the score.", leaf.id)
        elif 0 < leaf.share < SMALL_SHARE:
            yield LintSpot(f"the leaf has only {leaf.share:.1%} of the score.", leaf.id)


STOP_WORDS: Final = frozenset({
    "a", "an", "the", "this", "that", "these", "those", "and", "or", "of", "in", "on", "at", "to",
    "for", "from", "by", "with", "as", "is", "are", "be", "been", "was", "were", "it", "its",
    "their", "each", "all", "any", "must", "should", "shall", "will", "can", "has", "have", "into",
    "which", "also", "very", "clearly", "correctly", "properly",
})  # fmt: skip
ALIKE: Final = 0.9
_WORD: Final = re.compile(r"[\w.%-]*\w")


def find_equal_leaves(task: LintedTask) -> LintFound:
    """No two leaves want the same.

    Equal leaves count a single fault twice. Leaves are alike if at least 90 % of their words are
    the same, regardless of order and of words such as "the"; that is a warning.
    """
    words = [_content_words(leaf) for leaf in task.leaves]
    pairs = combinations(zip(task.leaves, words, strict=True), 2)
    for (one, own), (two, others) in pairs:
        if not own or not others or _different_checks(one, two):
            continue
        if one.plain == two.plain:
            yield LintSpot(f"says the same as leaf {one.id!r}.", two.id)
        elif len(own & others) >= ALIKE * len(own | others):
            yield LintSpot(f"says almost the same as leaf {one.id!r}.", two.id, severity="warning")


def _content_words(leaf: LintedLeaf) -> frozenset[str]:
    return frozenset(_WORD.findall(leaf.plain)) - STOP_WORDS


def _different_checks(one: LintedLeaf, two: LintedLeaf) -> bool:
    """Whether checks tell the leaves apart, whatever they say."""
    return bool(one.checks or two.checks) and one.checks != two.checks


PARENTHESES: Final = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
QUOTED: Final = re.compile(r'"[^"]{1,200}"')
# "Created and included" is one thing, and so is what is "between A, B and C".
TWO_VERBS: Final = re.compile(r"\b(\w+ed) and (?:is |are )?\w+ed\b|\bbetween [^;.]*?,? and [\w-]+")
LIST_COMMA: Final = re.compile(r"; |, (?!or\b|which\b|that\b|including\b|such\b)")
LIST_AND: Final = re.compile(r"(?<![,;]) (?:and|as well as|plus|along with) ")
# The columns of a table belong together, and so do the items of a checklist.
COLUMNS: Final = re.compile(
    r"\b(?:columns?|fields|table rows)\b|\btable (?:of(?! contents)|with)\b"
    r"|\bchecklist (?:confirming|of|with)\b"
)
MOST_JOINS: Final = 3


def find_compound_leaves(task: LintedTask) -> LintFound:
    """A leaf wants one thing, or says in `levels` what a part of it is worth.

    A leaf with four or more things in a list gets another score from every judge if one of them is
    missing. Split it into several leaves, give it `levels`, or let checks decide it. Words in
    parentheses, columns of a table and items of a checklist do not count.
    """
    for leaf in _judged(task):
        text = QUOTED.sub("it", PARENTHESES.sub("", leaf.plain)).rstrip(".")
        text = TWO_VERBS.sub(r"\1", text)
        commas = len(LIST_COMMA.findall(text))
        joins = commas + len(LIST_AND.findall(text))
        many = joins >= MOST_JOINS and commas > 1 and not COLUMNS.search(text)
        if many and not leaf.has_levels:
            yield LintSpot("wants several things at once; split it, or add `levels`.", leaf.id)


VAGUE: Final = re.compile(
    r"\b(appropriate(?:ly)?|adequate(?:ly)?|reasonabl[ey]|suitabl[ey]|proper(?:ly)?|"
    r"professional(?:ly)?(?: quality| formatting)?|high[- ]quality|good|nice(?:ly)?|"
    r"user[- ]friendly|(?:visually )?appealing|attractive(?:ly)?|engaging|intuitive|"
    r"well[- ](?:structured|formatted|designed|written|organi[sz]ed)|polished|"
    r"meaningful(?:ly)?|sensibl[ey]|clean(?:ly)?|insightful|effective(?:ly)?|"
    r"as needed|if necessary|etc|and so on)\b"
)


def find_vague_words(task: LintedTask) -> LintFound:
    """A leaf for a judge has no vague word, or `levels` say what it means.

    "Appropriate" and "well-structured" mean something else to every judge. Name what can be seen,
    or add `levels`.
    """
    for leaf in _judged(task):
        found = VAGUE.search(QUOTED.sub("it", leaf.plain))
        if found is not None and not leaf.has_levels:
            yield LintSpot(f"{found[0]!r} has no fixed meaning; add `levels`.", leaf.id)


PROCESS: Final = re.compile(
    r"\b((?:cross-|double-)?(?:checked|verified|validated)|cross-check|verify(?! that)|verifies|"
    r"reviewed|proofread|tested|ensured|examined|considered|took care|were? careful)\b"
)
# Words for something that remains of the process.
TRACE: Final = re.compile(
    r"\b(report(?:ed)?|checklist|summary|log|documented|recorded|noted|screenshot|included)\b"
)


def find_invisible_process(task: LintedTask) -> LintFound:
    """A leaf is about what is delivered, not about work that nobody sees.

    A judge sees files and an answer. That something "was verified" or "was reviewed" shows in
    neither: ask for the result, or for a record of the check.
    """
    for leaf in _judged(task):
        found = PROCESS.search(leaf.plain)
        if found is not None and not TRACE.search(leaf.plain):
            yield LintSpot(f"{found[0]!r} is work that nobody sees; ask for a record.", leaf.id)


def find_unasked_files(task: LintedTask) -> LintFound:
    """Files that leaves and `[deliverables]` name are asked for in the request.

    A system that follows the request cannot know the name of any other file.
    """
    known = {plain(file.name) for file in task.inputs}
    declared = {plain(PurePosixPath(name).name) for name in task.deliverables}
    for name in task.deliverables:
        if plain(PurePosixPath(name).name) not in task.plain_request:
            yield LintSpot(f"the request does not ask for {name!r}.", "deliverables")
    for leaf in task.leaves:
        for name in find_file_names(leaf.says):
            if plain(name) not in known | declared and plain(name) not in task.plain_request:
                yield LintSpot(f"names {name!r}, for which the request does not ask.", leaf.id)


# How leaves name a kind of file, and by which other words a request asks for it.
KIND_NAMES: Final[Mapping[str, tuple[str, str]]] = {
    "pdf": (r"pdf", r"pdf"),
    "docx": (r"docx|word (?:document|file|report)", r"docx|word"),
    "xlsx": (r"xlsx|excel", r"xlsx|excel|spreadsheets?|workbooks?"),
    "pptx": (r"pptx|powerpoint", r"pptx|powerpoint|slides?|presentations?|decks?"),
    "csv": (r"csv(?!-style| style|-like)", r"csv"),
    "json": (r"json", r"json"),
    "html": (r"html5?", r"html5?|web ?pages?|websites?|web"),
    "markdown": (r"markdown", r"markdown|\w+\.md"),
    "png": (r"png", r"png"),
    "jpeg": (r"jpe?g", r"jpe?g"),
    "svg": (r"svg", r"svg"),
    "gif": (r"gif", r"gif|animat\w+"),
    "mp3": (r"mp3", r"mp3"),
    "wav": (r"wav", r"wav"),
    "mp4": (r"mp4", r"mp4"),
    "zip": (r"zip(?:ped)?", r"zip(?:ped)?|archives?|compressed"),
}
_IN_LEAF = {kind: re.compile(rf"\b(?:{said})\b") for kind, (said, _) in KIND_NAMES.items()}
_IN_REQUEST = {kind: re.compile(rf"\b(?:{asked})\b") for kind, (_, asked) in KIND_NAMES.items()}


def find_unasked_kinds(task: LintedTask) -> LintFound:
    """Kinds of files that leaves want are asked for in the request.

    If the request asks for a report, a leaf must not want it as PDF.
    """
    named = [*(file.name for file in task.inputs), *task.deliverables]
    known: set[str | None] = {
        KIND_OF_SUFFIX.get(PurePosixPath(one).suffix.lower()) for one in named
    }
    known |= {kind for kind, asked in _IN_REQUEST.items() if asked.search(task.plain_request)}
    for leaf in task.leaves:
        text = PARENTHESES.sub("", leaf.plain)
        for kind, pattern in _IN_LEAF.items():
            if kind not in known and pattern.search(text):
                yield LintSpot(f"wants {kind}, for which the request does not ask.", leaf.id)


def find_ignored_files(task: LintedTask) -> LintFound:
    """Every file that the request asks for matters to a leaf.

    A leaf looks at a file if it or a check names the file or its kind. A file that no leaf looks at
    can be left out without loss.
    """
    inputs = {plain(file.name) for file in task.inputs}
    asked = [*task.deliverables]
    asked += [name for name in find_file_names(task.request or "") if plain(name) not in inputs]
    said = "\n".join(leaf.plain for leaf in task.leaves)
    checks = [check for leaf in task.leaves for check in leaf.checks]
    if any(isinstance(check, kinds.PythonCheck | kinds.PackageCheck) for check in checks):
        return
    patterns = [file_of(check) for check in checks]
    seen: set[str] = set()
    for name in asked:
        short = plain(PurePosixPath(name).name)
        if short in seen or short in said or any(fnmatchcase(name, one) for one in patterns):
            continue
        seen.add(short)
        kind = KIND_OF_SUFFIX.get(PurePosixPath(short).suffix)
        if kind in _IN_REQUEST and _IN_REQUEST[kind].search(said):
            continue
        yield LintSpot(f"the request asks for {name!r}, but no leaf looks at it.")


_UP_TO_TWENTY: Final = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen", "twenty",
)  # fmt: skip
NUMBER_WORDS: Final = {word: str(number) for number, word in enumerate(_UP_TO_TWENTY)} | {
    "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "ninety": "90", "hundred": "100",
}  # fmt: skip
NUMBER: Final = re.compile(
    r"(?<![\w/.#-])(\d[\d,]*(?:\.\d+)?)(?=(?:x\d|(?:st|[nr]d|th|x|px|pt|s|ms|kb|mb|gb|fps|dpi)?(?!\w)))"
    r"|(?<=\dx)(\d+)(?=px|\b)|\b(" + "|".join(NUMBER_WORDS) + r")\b"
)

# Numbers that count what was said before, examples, and 100 %.
COUNTED: Final = re.compile(r"\b100 ?%|\b(?:of the|of these|these|those) \w+\b|\be\.g\.[^;.)]*")


def find_underivable_values(task: LintedTask) -> LintFound:
    """What a leaf wants can be known from the request or the inputs.

    Numbers in leaves for a judge, and names of sheets, columns, rows, headings and keys in checks,
    must occur in the request or in an input. Contents of workbooks, documents and pictures are not
    read here: labels may come from them.
    """
    given = _numbers(task.given)
    for leaf in task.leaves:
        if leaf.by != "check":
            text = COUNTED.sub("", PARENTHESES.sub("", leaf.plain))
            missing = [one for one in _numbers(text) if one not in given and one not in ("0", "1")]
            if missing:
                listed = join_first(missing, 3)
                yield LintSpot(f"wants {listed}, which neither request nor inputs say.", leaf.id)
        for check in leaf.checks:
            for name in _wanted_names(check, task.has_opaque_inputs):
                if plain(name) not in task.given:
                    problem = f"{check.label} wants the name {name!r}, which the task never says."
                    yield LintSpot(problem, leaf.id)


def _numbers(text: str) -> list[str]:
    """The numbers of a text in figures, once each."""
    found = []
    for figures, second, word in NUMBER.findall(text):
        found.append(NUMBER_WORDS.get(word, (figures or second).replace(",", "").rstrip(".")))
    return list(dict.fromkeys(found))


JSON_NAME: Final = re.compile(r"\.([A-Za-z_]\w*)|\['([^']+)'\]")


def _wanted_names(check: AnyCheck, opaque: bool) -> Sequence[str]:
    """The names that a delivery must contain; those that inputs may contain are left out."""
    names = [] if getattr(check, "sheet", None) is None else [str(getattr(check, "sheet", ""))]
    if isinstance(check, kinds.DocHeading):
        names += check.texts
    if opaque:
        return names
    match check:
        case kinds.TableValue():
            names += [check.row, check.column]
        case kinds.TableKeys():
            names.append(check.column)
        case kinds.TableSum():
            names += [check.column, *check.where]
        case kinds.TableShape():
            names += check.head or ()
        case kinds.TableOrder():
            names.append(check.by)
        case kinds.JsonPath():
            names += [one or two for one, two in JSON_NAME.findall(check.path)]
    return names


NEGATIVE: Final = re.compile(
    r"^(?:there (?:is|are|must be|should be) )?"
    r"(?:no|nothing|none|never|avoid|without|free (?:of|from))\b"
    r"|^(?:the |all |every |each )?[\w .-]{1,40}? (?:(?:has|have|contains?|shows?|is|are) "
    r"(?:no|free of|free from|without)|does not|do not|must not|never) "
)
POSITIVE: Final = re.compile(
    r"[,;] (?:and|but) |\band (?:has|contains|includes|names|lists|states)\b"
)


def find_empty_conditions(task: LintedTask) -> LintFound:
    """A leaf wants something to be there, not only something to be absent.

    "No errors" also holds for a delivery with nothing in it. Add a condition that only real work
    meets.
    """
    for leaf in task.leaves:
        if leaf.checks and leaf.by == "check":
            if all(_is_negative(check) for check in leaf.checks):
                idle = any(isinstance(check, kinds.StateFile) for check in leaf.checks)
                case = "if nothing is done" if idle else "for an empty file"
                yield LintSpot(f"its checks also hold {case}.", leaf.id)
        elif NEGATIVE.match(leaf.plain) and not POSITIVE.search(leaf.plain):
            yield LintSpot("an empty delivery meets it, too.", leaf.id)


def _is_negative(check: AnyCheck) -> bool:
    match check:
        case kinds.TextNoPlaceholder() | kinds.XlsxNoErrors() | kinds.HtmlLinks():
            return True
        case kinds.TextContains():
            return check.all is None and check.any is None
        case kinds.TextRegex():
            return check.max == 0 or check.min == 0
        case kinds.ZipMembers():
            return check.all is None
        case kinds.StateFile():
            return not check.exists or check.changed is False
        case _:
            return False


ALL: Final = re.compile(r"\b(all|every)\b")


def find_uncounted_alls(task: LintedTask) -> LintFound:
    """A leaf that wants all of something says how many.

    A judge that is shown a part of a long file cannot count "all" of anything.
    """
    for leaf in _judged(task):
        found = ALL.search(leaf.plain)
        if found is not None and not _numbers(leaf.plain):
            yield LintSpot(f"says {found[0]!r} but not how many.", leaf.id)


def _judged(task: LintedTask) -> Iterator[LintedLeaf]:
    return (leaf for leaf in task.leaves if leaf.by != "check")


LEAF_RULES: Final[Mapping[str, tuple[Severity, Callable[[LintedTask], LintFound]]]] = {
    "T10": ("error", find_bad_leaves),
    "T11": ("error", find_bad_weights),
    "T12": ("warning", find_uneven_shares),
    "T13": ("error", find_equal_leaves),
    "T14": ("warning", find_compound_leaves),
    "T15": ("warning", find_vague_words),
    "T16": ("warning", find_invisible_process),
    "T17": ("error", find_unasked_files),
    "T18": ("warning", find_unasked_kinds),
    "T19": ("warning", find_ignored_files),
    "T20": ("warning", find_underivable_values),
    "T21": ("warning", find_empty_conditions),
    "T22": ("note", find_uncounted_alls),
}
