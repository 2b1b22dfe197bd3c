"""Rules about a task as a whole: its file, request, inputs, and the golds that come with it.

Each function yields what it finds; the first paragraph of its docstring is the rule.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

from gta_bench.authoring.declared import OPEN_DRAFT, WRONG_FILE, WrongFile, try_wrong_file
from gta_bench.authoring.drafts import (
    DRAFT_FILE,
    OPEN,
    DraftFieldName,
    DraftFile,
    is_draft,
    try_draft_file,
)
from gta_bench.authoring.subject import (
    CHEAT,
    GOLD,
    LARGEST,
    PILOT_FILE,
    WRONG,
    LintedFile,
    LintedTask,
    LintFound,
    LintSpot,
    plain,
)
from gta_bench.checks.documents import PLACEHOLDERS
from gta_bench.content.kinds import KIND_OF_SUFFIX, KINDS
from gta_bench.datasets.checks import CATEGORIES
from gta_bench.datasets.folders import REQUEST_FILE, TASK_FILE, build_task, wrap_task
from gta_bench.errors import DatasetError, format_count, join_first, suggest_name
from gta_bench.records import checks as kinds
from gta_bench.records.finding import Severity
from gta_bench.records.tools import SERVER_SEPARATOR
from gta_bench.redaction import WELL_KNOWN, is_secret
from gta_bench.tools.catalog import CATALOG, tool_names


def find_schema_errors(task: LintedTask) -> LintFound:
    """`task.toml` and `wrong.toml` have the right keys and values.

    Unknown keys are errors, because a misspelled one would be ignored. If `task.toml` cannot be
    read, rules about its content are not applied.
    """
    for problem in task.problems:
        where = problem.field or ""
        if not where.endswith(".weight") and ".checks" not in where:  # T11, T23
            yield LintSpot(problem.problem, problem.field)
    leaves = None if task.tree is None else [leaf.id for leaf in task.leaves]
    golds = [name.partition("/")[2] for name in task.proof_files(GOLD)]
    for name, files in task.proof_files(WRONG).items():
        path = f"{name}/{WRONG_FILE}"
        data = next((file.data for file in files if file.path == path), None)
        read = try_wrong_file(data, path, leaves=leaves, golds=golds)
        if not isinstance(read, WrongFile):
            yield from (LintSpot(one.problem, one.field, path) for one in read)


def find_wrong_ids(task: LintedTask) -> LintFound:
    """The id is the name of the task's folder, and no other task has it.

    Ids that differ only in case share a folder on some systems. A task inside another one's folder
    (a warning) is not loaded.
    """
    if task.toml is not None and task.toml.id != task.id:
        yield LintSpot(f"the id {task.toml.id!r} is not the folder's name {task.id!r}.", "id")
    same = [one for one in task.neighbors if one.casefold() == task.id.casefold()]
    if len(same) > 1:
        yield LintSpot(f"{format_count(len(same), 'task')} have this id: {join_first(same)}.", "id")
    for file in task.others:
        if file.name == TASK_FILE and file.path != TASK_FILE:
            problem = (
                "is a task inside a task, which is not loaded; move its folder out of this one."
            )
            yield LintSpot(problem, file=file.path, severity="warning")


FEWEST_WORDS: Final = 4
_PLACEHOLDER: Final = re.compile("|".join(PLACEHOLDERS), re.IGNORECASE)


def find_empty_request(task: LintedTask) -> LintFound:
    """The request says what to do.

    One that is missing, empty, shorter than four words or made of placeholders is an error.
    """
    file = REQUEST_FILE if task.folder is not None else None
    if task.request is None:
        yield LintSpot("is missing; write what the system is asked to do.", file=file)
        return
    rest = re.sub(r"\[[^\]]*\]|\{\{.*?\}\}", " ", _PLACEHOLDER.sub(" ", task.plain_request))
    if not task.plain_request:
        yield LintSpot("is empty; write what the system is asked to do.", "request", file)
    elif len(re.findall(r"\w+", rest)) < FEWEST_WORDS:
        yield LintSpot("does not say what to do.", "request", file)


def find_bad_inputs(task: LintedTask) -> LintFound:
    """Inputs are there, not empty, and of the kind that their names say.

    A picture named `.csv` is read as a table by some tools and as a picture by others.
    """
    there = {file.name for file in task.inputs}
    listed = task.toml.inputs if task.toml is not None else {}
    for name in listed:
        if name not in there:
            yield LintSpot("the input is missing.", f"inputs.{name}", f"inputs/{name}")
    for file in task.inputs:
        if task.folder is not None and file.path.count("/") > 1:
            yield LintSpot("inputs are files directly in inputs/, not in folders.", file=file.path)
        problem = _explain_file(file)
        if problem is not None:
            yield LintSpot(f"the input {problem}", "inputs", file.path)


def _explain_file(file: LintedFile) -> str | None:
    if file.size is None:
        return "is missing or cannot be read."
    if not file.size:
        return "is empty."
    if file.size > LARGEST:
        return None
    found = file.identity
    if found.claims is not None and found.claims != found.kind:
        return f"is {found.kind} by its bytes, {found.claims} by its name."
    return None


GENERIC_INPUT: Final = (
    r"\b(?:attached|provided|supplied|given|enclosed|uploaded|accompanying|input) "
    r"(?:\w+ ){0,2}(?:files?|materials?|data|documents?|inputs?|folder)\b"
    r"|\binputs/(?!\w)|\ball inputs\b"
)
INPUT_WORDS: Final[Mapping[str, str]] = {
    "image": r"images?|pictures?|photos?|photographs?|screenshots?|figures?|scans?|diagrams?|logo",
    "media": r"videos?|clips?|recordings?|audio|sounds?|songs?|films?|footage|speech|podcasts?",
    "csv": r"csv|tables?|data|datasets?|spreadsheets?|sheets?|logs?|records",
    "xlsx": r"xlsx|excel|workbooks?|spreadsheets?|sheets?|tables?|data|datasets?",
    "docx": r"docx|word|documents?|reports?|drafts?|letters?|contracts?",
    "pptx": r"pptx|powerpoint|slides?|decks?|presentations?",
    "pdf": r"pdfs?|documents?|papers?|reports?|invoices?|contracts?|manuals?",
    "zip": r"zip|archives?|bundles?|packages?|repository|project",
    "text": r"texts?|notes?|files?|documents?|transcripts?|scripts?|markdown|html|json|pages?|data",
}


def find_unused_inputs(task: LintedTask) -> LintFound:
    """The request uses every input.

    It names the file, or something of its kind, such as "the photo". An input that nothing refers
    to confuses systems, unless that is what the task is about: then waive this rule.
    """
    if re.search(GENERIC_INPUT, task.plain_request):
        return
    for file in task.inputs:
        name = plain(file.name)
        stem = PurePosixPath(name).stem
        kind = KIND_OF_SUFFIX.get(PurePosixPath(name).suffix)
        reader = KINDS[kind].reader if kind is not None else None
        words = INPUT_WORDS.get(reader or "", r"files?")
        named = name in task.plain_request or re.search(
            rf"\b{re.escape(stem)}\b", task.plain_request
        )
        if not named and not re.search(rf"\b(?:{words})\b", task.plain_request):
            yield LintSpot("the request never uses this input.", "inputs", file.path)


def find_unknown_tools(task: LintedTask) -> LintFound:
    """Tools exist.

    Tools are those of `gta tools list`, of installed packages, and of the dataset's
    `toolmeta.json`. A tool that only the dataset knows is noted, and so is one that is named after
    a tool server (`SERVER__TOOL`): a tool server must offer it.
    """
    unsure = [name for name in task.tools if name not in CATALOG]
    # Asking all installed packages takes longer than all other rules together.
    ours = tool_names() if unsure else ()
    for name in unsure:
        if name in ours:
            continue
        if name in task.known_tools or SERVER_SEPARATOR in name:
            message = f"{name} is not installed here; a tool server must offer it."
            yield LintSpot(message, "tools", severity="note")
        else:
            known = [*ours, *task.known_tools]
            yield LintSpot(f"unknown tool {name!r}{suggest_name(name, known)}", "tools")


def find_other_categories(task: LintedTask) -> LintFound:
    """The category is one of GTA-Workflow's six.

    Any other works, too, but reports then have groups that no published result has.
    """
    if task.category not in CATEGORIES:
        named = "there is no category" if task.category is None else f"{task.category!r} is new"
        yield LintSpot(f"{named}; the release has: {'; '.join(sorted(CATEGORIES))}.", "category")


def find_outside_paths(task: LintedTask) -> LintFound:
    """Nothing leads out of the task folder: no link, no absolute path, no `..`.

    A task must mean the same on every machine.
    """
    for path in task.links:
        yield LintSpot("is a link; put the file itself into the task folder.", file=path)
    named = [("deliverables", name) for name in task.deliverables]
    named += [("inputs", name) for name in (task.toml.inputs if task.toml is not None else ())]
    for leaf in task.leaves:
        for check in leaf.checks:
            parts = [getattr(check, key, None) for key in ("file", "reference")]
            named += [(leaf.id, part) for part in parts if isinstance(part, str)]
    for field, name in dict.fromkeys(named):
        place = PurePosixPath(name.replace("\\", "/"))
        if place.is_absolute() or ".." in place.parts or re.match("[A-Za-z]:", name):
            yield LintSpot(f"{name!r} leads out of the task folder.", field)


def find_missing_license(task: LintedTask) -> LintFound:
    """The task has a license.

    Without one, nobody else may use the task. Name one, such as `license = "CC-BY-4.0"`.
    """
    assert task.toml is not None
    if not (task.toml.license or "").strip():
        yield LintSpot('there is no license; add one, such as `license = "CC-BY-4.0"`.', "license")


SHORTEST_GOLD: Final = 40


def find_leaked_golds(task: LintedTask) -> LintFound:
    """No input contains the solution.

    An input with the bytes or the whole text of a gold file, or of a table that a check compares
    with, can be handed in as it is.
    """
    references = {
        check.reference
        for leaf in task.leaves
        for check in leaf.checks
        if isinstance(check, kinds.TableSame)
    }
    solutions = [file for files in task.proof_files(GOLD).values() for file in files]
    solutions += [file for file in task.others if file.path in references]
    texts = [(file, plain(file.text)) for file in task.inputs if file.text and solutions]
    for file in solutions:
        same = (one for one in task.inputs if file.size and one.size == file.size)
        copy = next((one for one in same if one.digest == file.digest), None)
        whole = plain(file.text or "")
        if copy is None and len(whole) >= SHORTEST_GOLD:
            copy = next((one for one, text in texts if whole in text), None)
        if copy is not None:
            yield LintSpot(f"the input contains the gold {file.path}.", file=copy.path)


HOST_PATH: Final = re.compile(
    r"(?:/home/|/Users/|[A-Za-z]:\\+Users\\+)(?!user\b|username\b|you\b|me\b|USER\b|<)[\w.-]+"
)
PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")


def find_private_data(task: LintedTask) -> LintFound:
    """No file has a key or a path of the author's machine.

    Tasks are published, and inputs are sent to models. Revoke a key that was in a file. Values of
    keys are not shown here.
    """
    for where, text in _all_texts(task):
        found = HOST_PATH.search(text)
        if found is not None:
            yield LintSpot(f"has the path {found[0]!r} of a machine.", file=where)
        keys = (key for key in WELL_KNOWN.findall(text) if is_secret(key))
        if next(keys, None) is not None or PRIVATE_KEY.search(text):
            yield LintSpot("has what looks like a secret key.", file=where)


TO_JUDGE: Final = re.compile(
    r"\b(?:ignore|disregard|forget) (?:all |any |the |your )*"
    r"(?:previous|prior|above|earlier|preceding)(?: \w+)? "
    r"(?:instructions?|prompts?|rules?|criteria|requirements?)"
    r"|\b(?:note|message|instructions?|attention|memo)(?: to|:| for)? (?:the |all |any )?"
    r"(?:ai |llm |automated )?(?:judges?|graders?|evaluators?|scorers?|raters?)\b"
    r"|\b(?:dear|hello|hey|hi) (?:ai |llm )?(?:judge|grader|evaluator|scorer)\b"
    r"|\b(?:give|award|assign|grant|rate) (?:\w+ ){0,4}(?:full|maximum|perfect|top|highest) "
    r"(?:marks?|scores?|points|credit|rating)"
    r"|\b(?:score|rate|grade) (?:this|it|the work|everything) (?:as |a |with )*(?:10|ten)\b"
)
HIDDEN: Final = re.compile(
    "[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\U000e0001-\U000e007f]"
)
HIDDEN_STYLE: Final = re.compile(
    r"display\s*:\s*none[^>]*>\s*[^<\s]|visibility\s*:\s*hidden[^>]*>\s*[^<\s]"
    r"|font-size\s*:\s*0(?:px|pt|em)?\s*[;\"'][^>]*>\s*[^<\s]",
    re.IGNORECASE,
)


def find_judge_prompts(task: LintedTask) -> LintFound:
    """No file speaks to the judge or hides text.

    Judges are shown the request, inputs and deliverables. If a task is about such texts, waive this
    rule.
    """
    for where, text in _all_texts(task):
        if where.endswith(".toml") or where == PILOT_FILE:
            continue  # levels, leaves and pilots speak about scores
        said = TO_JUDGE.search(plain(text))
        if said is not None:
            yield LintSpot(f"speaks to the judge: {said[0]!r}.", file=where)
        if HIDDEN.search(text):
            yield LintSpot("has invisible characters.", file=where)
        elif HIDDEN_STYLE.search(text):
            yield LintSpot("has hidden text.", file=where)


def find_placeholders(task: LintedTask) -> LintFound:
    """Request and golds have no placeholder.

    `TODO`, `lorem ipsum`, `[insert …]` and `{{…}}` are left over from a draft.
    """
    texts = [] if task.request is None else [(REQUEST_FILE, task.request)]
    for files in task.proof_files(GOLD).values():
        texts += [(file.path, file.text) for file in files if file.text is not None]
    for where, text in texts:
        # A request may well be about a todo list.
        found = (one[0] for one in _PLACEHOLDER.finditer(text) if one[0] not in ("todo", "Todo"))
        first = next(found, None)
        if first is not None:
            file = None if task.folder is None else where
            yield LintSpot(f"has the placeholder {first!r}.", file=file)


def find_missing_golds(task: LintedTask) -> LintFound:
    """There are two right deliveries or more, each in a folder of `gold/`, with every deliverable.

    Without one, nobody knows whether the task can be solved. With only one (a warning), checks are
    easily written for its accidents. Two that differ in what the request leaves open show that.
    """
    golds = task.proof_files(GOLD)
    for part in (GOLD, WRONG, CHEAT):
        for file in task.proofs.get(f"{part}/", ()):
            yield LintSpot(f"belongs into a folder of {part}/, one per delivery.", file=file.path)
    golds.pop(f"{GOLD}/", None)
    if not golds:
        yield LintSpot("there is no gold; put a right delivery into gold/NAME/.", file=GOLD)
    elif len(golds) == 1:
        problem = "there is only one gold; add another right delivery."
        yield LintSpot(problem, file=GOLD, severity="warning")
    for name, files in golds.items():
        there = {file.path.removeprefix(f"{name}/") for file in files if file.size}
        missing = [one for one in task.deliverables if one not in there]
        if missing:
            yield LintSpot(f"the gold lacks {join_first(missing)}.", file=name)


def find_stale_pilot(task: LintedTask) -> LintFound:
    """The pilot in `pilot.json` tried the task as it is now.

    If the task or what decides its leaves has changed since, run `gta task pilot` again. A task
    without a pilot does not break this rule.
    """
    assert task.folder is not None and task.toml is not None
    if not (task.folder / PILOT_FILE).is_file():
        return
    # What verdicts depend on takes longer to import than all other rules together.
    from gta_bench.authoring.staleness import find_stale, read_pilot

    pilot = read_pilot(task.folder)
    if isinstance(pilot, str):
        yield LintSpot(f"{pilot}.", file=PILOT_FILE)
        return
    try:
        dataset = wrap_task(task.folder, build_task(task.folder, task.toml))
    except DatasetError:
        return  # other rules say why
    changed = find_stale(dataset, task.id, pilot)
    if changed:
        problem = f"changed since the pilot: {', '.join(changed)}; run `gta task pilot` again."
        yield LintSpot(problem, file=PILOT_FILE)


def find_open_drafts(task: LintedTask) -> LintFound:
    """A draft has no field that is missing, and no text that its author must still replace.

    `gta task from-trace` writes drafts. `draft.toml` says of each field whether the trace showed it
    (`observed`), it follows from the trace or a model proposed it (`inferred`), or it is `missing`.
    Write what is missing and read what is inferred, then set the field to `written`. A draft is not
    ready until `gta task pilot` passes. This rule cannot be waived.
    """
    for leaf in task.leaves:
        if leaf.says.startswith(OPEN):
            yield LintSpot(f"the leaf is a question to the author: {leaf.says!r}.", leaf.id)
    if task.request is not None and task.request.startswith(OPEN):
        yield LintSpot("the request is a question to the author.", file=REQUEST_FILE)
    if task.folder is None or not is_draft(task.folder):
        return
    draft = try_draft_file(task.folder)
    if not isinstance(draft, DraftFile):
        yield from (LintSpot(one.problem, one.field, DRAFT_FILE) for one in draft)
        return
    yield from _find_open_fields(task, draft)
    if not (task.folder / PILOT_FILE).is_file():
        message = "this is a draft until `gta task pilot` passes."
        yield LintSpot(message, file=DRAFT_FILE, severity="note")


def _find_open_fields(task: LintedTask, draft: DraftFile) -> LintFound:
    for name, field in draft.select("missing"):
        yield LintSpot(f"this is a draft; {name} is missing. {field.note}", name, DRAFT_FILE)
    for name, _ in draft.select("written"):
        if _is_absent(task, name):
            message = f'this is a draft; {name} is "written", but the task has none.'
            yield LintSpot(message, name, DRAFT_FILE)
    for name, field in draft.select("inferred"):
        message = f'{name} is inferred. {field.note} Set it to "written" once you have read it.'
        yield LintSpot(message, name, DRAFT_FILE, severity="warning")


def _is_absent(task: LintedTask, name: DraftFieldName) -> bool:
    """Whether a task lacks a field, as far as its files show."""
    match name:
        case "gold" | "wrong":
            return not task.proof_files(name)
        case "category" | "license":
            return task.toml is not None and not getattr(task.toml, name)
        case _:
            return False


def _all_texts(task: LintedTask) -> Iterator[tuple[str, str]]:
    """Every text of a task, with its file; of the released layout, also its request."""
    if task.folder is None and task.request is not None:
        yield task.main, task.request
    for file in task.texts():
        yield file.path, file.text or ""


TASK_RULES: Final[Mapping[str, tuple[Severity, Callable[[LintedTask], LintFound]]]] = {
    "T01": ("error", find_schema_errors),
    "T02": ("error", find_wrong_ids),
    "T03": ("error", find_empty_request),
    "T04": ("error", find_bad_inputs),
    "T05": ("warning", find_unused_inputs),
    "T06": ("error", find_unknown_tools),
    "T07": ("note", find_other_categories),
    "T08": ("error", find_outside_paths),
    "T09": ("warning", find_missing_license),
    "T29": ("error", find_leaked_golds),
    "T30": ("error", find_private_data),
    "T31": ("error", find_judge_prompts),
    "T32": ("warning", find_placeholders),
    "T33": ("error", find_missing_golds),
    "T39": ("error", find_stale_pilot),
    OPEN_DRAFT: ("error", find_open_drafts),
}
