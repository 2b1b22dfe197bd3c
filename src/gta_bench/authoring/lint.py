"""`gta task lint`: rules over the text of tasks. No model, no jail; nothing of a task is run."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from gta_bench.authoring.declared import UNUSED_WAIVER, Waiver, read_waiver
from gta_bench.authoring.rules_checks import CHECK_RULES
from gta_bench.authoring.rules_leaves import LEAF_RULES
from gta_bench.authoring.rules_task import TASK_RULES
from gta_bench.authoring.subject import LintedTask, LintFound, LintSpot, read_folder, read_released
from gta_bench.datasets.folders import REQUEST_FILE, TASK_FILE, build_task, find_task_folders
from gta_bench.datasets.released import TOOLMETA, load_toolmeta
from gta_bench.datasets.workflow import WORKFLOW_FILE, load_workflow
from gta_bench.errors import DatasetError, UsageError, suggest_name
from gta_bench.records.base import Record
from gta_bench.records.finding import Finding, Severity

# What a rule reads. The tree is missing if `task.toml` is broken; the released layout has no
# folder and no `task.toml` for each task.
_LintPart = Literal["folder", "toml", "tree", "request"]
NEEDS: Final[Mapping[str, tuple[_LintPart, ...]]] = {
    **dict.fromkeys(("T02", "T08", "T29", "T33"), ("folder",)),
    **dict.fromkeys(("T05", "T32"), ("request",)),
    **dict.fromkeys(("T06", "T07", *(f"T{number}" for number in range(10, 23))), ("tree",)),
    **dict.fromkeys(("T17", "T18", "T19", "T20"), ("tree", "request")),
    **dict.fromkeys(("T09", "T23", "T24", "T25", "T26"), ("toml",)),
    "T27": ("toml", "request"),
    "T39": ("folder", "toml"),
}
# Rules that explain why `task.toml` cannot be read.
OF_PROBLEMS: Final = ("T01", "T11", "T23")
# An error of these explains why a task does not load.
OF_LOADING: Final = frozenset({"T01", "T02", "T03", "T04", "T08", "T10", "T11", "T23"})
# Rules that open files in the jail or decide checks.
OF_PILOT: Final = ("T28", "T34", "T35", "T36", "T37", "T38")


class Rule(NamedTuple):
    """A rule: its sentence, and why it matters and what to do."""

    id: str
    severity: Severity
    says: str
    more: str
    find: Callable[[LintedTask], LintFound]
    needs: tuple[_LintPart, ...] = ()


class Waived(Record):
    """A finding that the task allows, with the author's reason."""

    finding: Finding
    reason: str


class NotApplied(Record):
    """A rule that was not applied to some tasks, and why: they are not clean under it."""

    rule: str
    why: str
    tasks: int


class LintReport(Record):
    """What lint found; a waived finding is not among `findings`."""

    tasks: int
    findings: tuple[Finding, ...]
    waived: tuple[Waived, ...] = ()
    not_applied: tuple[NotApplied, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.severity != "error" for finding in self.findings)


def find_unused_waivers(_: LintedTask) -> LintFound:
    """Every waiver waives something.

    `allow = ["T14: reason"]` in `task.toml` waives a rule for a task. One without a finding is left
    over from an earlier version. T01 cannot be waived.
    """
    return iter(())  # decided after all other rules


def _list_rules() -> Iterator[Rule]:
    table: dict[str, tuple[Severity, Callable[[LintedTask], LintFound]]]
    table = {**TASK_RULES, **LEAF_RULES, **CHECK_RULES}
    table[UNUSED_WAIVER] = ("warning", find_unused_waivers)
    for name, (severity, find) in sorted(table.items()):
        says, _, more = (inspect.getdoc(find) or "").partition("\n\n")
        about = " ".join(more.split())
        yield Rule(name, severity, says.replace("\n", " "), about, find, NEEDS.get(name, ()))


RULES: Final[Mapping[str, Rule]] = {rule.id: rule for rule in _list_rules()}


def find_rule(name: str) -> Rule:
    """Return a rule by its id; raises UsageError for an unknown one."""
    wanted = name.upper()
    if wanted in OF_PILOT:
        raise UsageError(f"{wanted} needs the checks to run: `gta task pilot` decides it.")
    if wanted not in RULES:
        raise UsageError(f"Unknown rule {name!r}{suggest_name(wanted, list(RULES))}")
    return RULES[wanted]


def lint(paths: Sequence[Path]) -> LintReport:
    """Apply every rule to task folders, to folders of them, or to the released layout."""
    collected = _Collected()
    for path in paths:
        folder = path.resolve()
        if (folder / TASK_FILE).is_file():
            tools = collected.read_tools(folder.parent)
            collected.apply(read_folder(folder, known_tools=tools))
        elif (folder / WORKFLOW_FILE).is_file():
            collected.apply_released(folder)
        else:
            collected.apply_folders(folder, path)
    return collected.report()


class _Collected:
    """Findings of several tasks."""

    def __init__(self) -> None:
        self.tasks = 0
        self.findings: list[Finding] = []
        self.waived: list[Waived] = []
        self.not_applied: Counter[tuple[str, str]] = Counter()

    def report(self) -> LintReport:
        not_applied = (
            NotApplied(rule=rule, why=why, tasks=count)
            for (rule, why), count in sorted(self.not_applied.items())
        )
        return LintReport(
            tasks=self.tasks,
            findings=tuple(self.findings),
            waived=tuple(self.waived),
            not_applied=tuple(not_applied),
        )

    def read_tools(self, root: Path) -> tuple[str, ...]:
        """Return the tools that a dataset defines."""
        if not (root / TOOLMETA).is_file():
            return ()
        try:
            return tuple(load_toolmeta(root)[0])
        except DatasetError as exc:
            self.findings.append(_as_error(exc))
            return ()

    def apply_released(self, root: Path) -> None:
        try:
            dataset = load_workflow(root)
        except DatasetError as exc:
            self.findings.append(_as_error(exc))
            return
        for task in dataset.tasks.values():
            self.apply(read_released(dataset, task))

    def apply_folders(self, root: Path, path: Path) -> None:
        folders = find_task_folders(root)
        if not folders:
            raise UsageError(
                f"{path} has no task: neither {TASK_FILE}, nor folders with one, nor "
                f"{WORKFLOW_FILE}. Begin one with `gta task new {path / 'my-task'}`."
            )
        tools = self.read_tools(root)
        names = [folder.name for folder in folders]
        for folder in sorted(root.iterdir()):
            if folder.is_dir() and folder.name not in names and not folder.name.startswith("."):
                self._add_other_folder(folder)
        for folder in folders:
            self.apply(read_folder(folder, known_tools=tools, neighbors=names))

    def _add_other_folder(self, folder: Path) -> None:
        begun = (folder / REQUEST_FILE).exists()
        self.findings.append(
            Finding(
                check="T01",
                severity="error" if begun else "warning",
                file=folder.name,
                message=f"the folder has no {TASK_FILE}, so it is not a task.",
            )
        )

    def apply(self, task: LintedTask) -> None:
        """Apply every rule to a task, and then its waivers."""
        self.tasks += 1
        found: list[Finding] = []
        for rule in RULES.values():
            why = _why_not(task, rule)
            if why is not None:
                self.not_applied[rule.id, why] += 1
            if why is None or (rule.id in OF_PROBLEMS and task.problems):
                found += (_as_finding(task, rule, spot) for spot in rule.find(task))
        found += _check_loading(task, found)
        self._waive(task, found)

    def _waive(self, task: LintedTask, found: Sequence[Finding]) -> None:
        reasons: dict[str, str] = {}
        for written in task.toml.allow if task.toml is not None else ():
            waiver = _read_waiver(written)
            if isinstance(waiver, str):
                spot = LintSpot(f"{written!r} is not a waiver: {waiver}", "allow")
                self.findings.append(_as_finding(task, RULES["T01"], spot))
                continue
            reasons[waiver.rule] = waiver.reason
        for finding in found:
            if finding.check in reasons:
                reason = reasons[finding.check]
                self.waived.append(Waived(finding=finding, reason=reason))
            else:
                self.findings.append(finding)
        used = {finding.check for finding in found}
        for name in reasons:
            if name not in used and name not in OF_PILOT:
                spot = LintSpot(f"{name} finds nothing here; delete the waiver.", "allow")
                self.findings.append(_as_finding(task, RULES[UNUSED_WAIVER], spot))


def _read_waiver(written: str) -> Waiver | str:
    """Read a waiver of a rule that exists; return what is wrong with it if it is none."""
    read = read_waiver(written)
    if isinstance(read, str) or read.rule in RULES or read.rule in OF_PILOT:
        return read
    return f"there is no rule {read.rule}{suggest_name(read.rule, list(RULES))}"


def _why_not(task: LintedTask, rule: Rule) -> str | None:
    """Say why a rule cannot be applied; None if it can."""
    missing = [part for part in rule.needs if getattr(task, part) is None]
    if not missing:
        return None
    if task.folder is None:
        return "the released layout has no task folders"
    if missing == ["request"]:
        return f"there is no {REQUEST_FILE}"
    return f"{TASK_FILE} cannot be read"


def _as_finding(task: LintedTask, rule: Rule, spot: LintSpot) -> Finding:
    file = task.main
    if spot.file is not None:
        file = spot.file if task.folder is None else f"{task.id}/{spot.file}"
    return Finding(
        check=rule.id,
        severity=spot.severity or rule.severity,
        file=file,
        task=task.id,
        field=spot.field,
        message=spot.message,
    )


def _check_loading(task: LintedTask, found: Sequence[Finding]) -> Iterator[Finding]:
    """Yield why a task does not load, if no rule found it: lint never passes such a task."""
    explained = any(one.check in OF_LOADING and one.severity == "error" for one in found)
    if task.folder is None or task.toml is None or explained:
        return
    try:
        build_task(task.folder, task.toml)
    except DatasetError as exc:
        yield _as_error(exc, task.id)


def _as_error(exc: DatasetError, task: str | None = None) -> Finding:
    return Finding(
        check="T01",
        severity="error",
        file=exc.file,
        task=exc.task or task,
        field=exc.field,
        message=exc.problem,
    )
