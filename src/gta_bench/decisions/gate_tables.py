"""The gate in words: its decision as a sentence, flips as tables, Markdown and JUnit.

Names come from files that others may have edited, so each text is one line, and Markdown shows
names as they are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from gta_bench.errors import format_count, join_first
from gta_bench.exports.junit import CaseOutcome, JUnitCase, format_junit
from gta_bench.records.gate import GateDecision, GateFlip, GateResult
from gta_bench.reports.tables import LONGEST_REMARK, Table, escape_markdown, line, markdown

# What leads to a flip: a link to a page, or a command.
Locate = Callable[[GateFlip], str]
# How many flips a terminal shows, and of how many tasks Markdown at most, each in one direction.
FLIPS_SHOWN: Final = 20
TASKS_IN_MARKDOWN: Final = 100
# GitHub drops a summary above 1 MiB and refuses a comment above 64 KiB.
LONGEST_MARKDOWN: Final = 65_000  # bytes
MARKER: Final = "<!-- gta-bench:gate -->"
_HEADLINES: Final[Mapping[GateDecision | None, str]] = {
    "not worse": "Not worse",
    "worse": "Worse",
    "undecided": "Undecided",
    None: "Not enough scored",
}

_OUTCOMES: Final[Mapping[GateDecision | None, CaseOutcome]] = {
    "not worse": "passed",
    "worse": "failure",
    "undecided": "skipped",
    None: "error",
}


def state_decision(gate: GateResult) -> str:
    """Say what was decided, about what, and what that means."""
    return f"{_HEADLINES[gate.decision]}: {_explain(gate)} {_state_figures(gate)}"


def _explain(gate: GateResult) -> str:
    margin = f"{gate.margin:g} points"
    of = f"{gate.label} over {format_count(len(gate.tasks), 'task')}"
    if gate.left_out:
        of += f" that both runs have ({len(gate.left_out)} left out)"
    risk = f"{100 * gate.alpha:g} % risk of error"
    if gate.decision == "not worse":
        real = ""
        if gate.p_worse <= gate.alpha:
            real = " There is a drop, but it is smaller than that."
        return f"NEW has not dropped by {margin} or more in {of} ({risk}).{real}"
    if gate.decision == "worse" and not gate.margin:
        return f"NEW has dropped in {of} ({risk}), and a margin of 0 accepts no drop."
    if gate.decision == "worse":
        return (
            f"NEW has dropped in {of} ({risk}), and a drop of {margin} or more cannot be ruled out."
        )
    if gate.decision == "undecided":
        return (
            f"neither a drop above 0 in {of} is shown, nor is one of {margin} or more ruled out "
            f"({risk}). More tasks or more repeats may decide it."
        )
    lacking = format_count(len(gate.missing), "task")
    names = line(join_first(gate.missing), LONGEST_REMARK)
    return (
        f"{lacking} of {len(gate.tasks)} {'has' if len(gate.missing) == 1 else 'have'} no score in "
        f"one of the runs, and the decision depends on them ({names}). Finish "
        "the run with the command that began it, then repeat this one."
    )


def _state_figures(gate: GateResult) -> str:
    """State both values and the limits of the drop."""
    if gate.base_value is None or gate.new_value is None:
        return "No task is scored in both runs."
    change = gate.new_value - gate.base_value
    text = f"BASE {gate.base_value:.2f}, NEW {gate.new_value:.2f}, change {change:+.2f}"
    if gate.low is not None and gate.high is not None:
        text += (
            f"; the true change is at least {-gate.high:+.2f} and at most {-gate.low:+.2f} (each "
            "with 95 % confidence)"
        )
    else:
        text += f"; {gate.used} of {len(gate.tasks)} tasks used, in random order"
    return f"{text}."


def list_remarks(gate: GateResult) -> Iterator[str]:
    """Yield what a reader must know besides the decision, each in one line."""
    return (line(remark, LONGEST_REMARK) for remark in _list_remarks(gate))


def _list_remarks(gate: GateResult) -> Iterator[str]:
    yield (
        f"metric: {gate.label}{f' by {gate.judge}' if gate.judge else ''}, mean over tasks of "
        f"{format_count(gate.repeats[0], 'repeat')} of BASE and {gate.repeats[1]} of NEW"
    )
    if gate.flaky:
        yield f"flaky in BASE, its repeats differ: {join_first(gate.flaky)}"
    elif gate.repeats[0] == 1:
        yield "flaky in BASE: unknown, because it has one repeat; run BASE with several epochs"
    if gate.missing and gate.decision is not None:
        yield (
            f"without a score: {join_first(gate.missing)}; the decision is the same whatever "
            "their scores are"
        )
    if gate.unused:
        why = "not needed, because it is decided without them"
        if gate.decision == "undecided":
            why = "not looked at, because the gate stopped before them"
        yield f"{why}: {join_first(gate.unused)}"
    if gate.left_out:
        yield f"left out, not the same in both runs: {join_first(gate.left_out)}"
    if gate.cautions:
        yield f"not only the system differs: {'; '.join(gate.cautions)}"


def flip_table(flips: Sequence[GateFlip], locate: Locate) -> Table:
    """Return flips with both values, whether BASE is flaky there, and where to look."""
    rows = [
        (
            one.task,
            one.leaf or "-",
            f"{one.base:.1f}",
            f"{one.new:.1f}",
            one.base_repeats,
            locate(one),
        )
        for one in flips
    ]
    return Table(("task", "leaf", "BASE", "NEW", "repeats of BASE", "look at"), tuple(rows))


def group_flips(gate: GateResult) -> Iterator[tuple[str, Sequence[GateFlip]]]:
    """Yield what got worse and what got better, each with a title."""
    for word, worse in (("worse", True), ("better", False)):
        own = [one for one in gate.flips if one.worse is worse]
        tasks = sum(one.leaf is None for one in own)
        leaves = len(own) - tasks
        if own:
            counts = [format_count(tasks, "task")] if tasks else []
            counts += [format_count(leaves, "leaf", "leaves")] if leaves else []
            yield f"{' and '.join(counts)} got {word}", own


def format_gate_markdown(gate: GateResult, locate: Locate) -> str:
    """Return the decision and the flips for a job summary or a comment on a pull request.

    It shows as many tasks as a comment can have.
    """
    most = TASKS_IN_MARKDOWN
    while len((text := _format_markdown(gate, locate, most)).encode()) > LONGEST_MARKDOWN and most:
        most //= 2
    return text


def _format_markdown(gate: GateResult, locate: Locate, most: int) -> str:
    tasks = [one for one in gate.flips if one.leaf is None]
    worse = sum(one.worse for one in tasks)
    values = ["-", "-"]
    if gate.base_value is not None and gate.new_value is not None:
        change = gate.new_value - gate.base_value
        values = [f"{gate.base_value:.2f}", f"{gate.new_value:.2f} ({change:+.2f})"]
    number = str(len(gate.tasks))
    if gate.low is None:
        number = f"{gate.used} of {number}"
    summary = Table(
        ("metric", "tasks", "BASE", "NEW", "margin", "tasks better", "tasks worse"),
        ((gate.label, number, *values, f"{gate.margin:g}", str(len(tasks) - worse), str(worse)),),
    )
    parts = [MARKER, f"## Gate: {_HEADLINES[gate.decision].lower()}", ""]
    said = escape_markdown(_explain(gate))
    parts += [said[0].upper() + said[1:], "", _state_figures(gate), "", markdown(summary), ""]
    for title, flips in group_flips(gate):
        roots = {one.task: one for one in tasks}
        rows = _list_tasks(flips, roots, locate, steadiness=gate.repeats[0] > 1)
        parts += [f"### {title}", "", markdown(rows._replace(rows=rows.rows[:most]))]
        if len(rows.rows) > most:
            more = format_count(len(rows.rows) - most, "more task")
            parts += ["", f"And {more}."]
        parts.append("")
    parts += [f"- {escape_markdown(remark)}" for remark in list_remarks(gate)]
    return "\n".join(parts) + "\n"


def _list_tasks(
    flips: Sequence[GateFlip], roots: Mapping[str, GateFlip], locate: Locate, *, steadiness: bool
) -> Table:
    """Return a row for each task that flipped, or of which a leaf did; `roots` are all such tasks.

    A leaf may get better in a task that got worse.
    """
    heading = ("task", "BASE", "NEW", *(["repeats of BASE"] if steadiness else []), "leaves")
    found = {}
    for task in dict.fromkeys(one.task for one in flips):
        own = [one for one in flips if one.task == task]
        root = roots.get(task)
        leaves = [one for one in own if one.leaf is not None]
        values = ("same", "same") if root is None else (f"{root.base:.1f}", f"{root.new:.1f}")
        steady = [root.base_repeats if root is not None else "-"] if steadiness else []
        shown = join_first([_name_leaf(one) for one in leaves]) or "-"
        found[task] = (escape_markdown(task), *values, *steady, shown, _quote(locate(own[0])))
    return Table((*heading, "look at"), tuple(found.values()))


def _name_leaf(flip: GateFlip) -> str:
    """Return the leaf, and its values unless it passed in all repeats or in none."""
    flaky = ", flaky in BASE" if flip.base_repeats == "flaky" else ""
    if not flaky and {flip.base, flip.new} == {0.0, 100.0}:
        return escape_markdown(f"{flip.leaf}")
    return escape_markdown(f"{flip.leaf}") + f" ({flip.base:.0f} to {flip.new:.0f} %{flaky})"


def _quote(place: str) -> str:
    """Return a command as code, and anything else as a link."""
    if " " not in place:
        return f"[open]({place})"
    shown = line(place, LONGEST_REMARK)
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def format_gate_junit(gate: GateResult, locate: Locate, *, when: datetime) -> bytes:
    """Return the decision as a test case, and every task as another one.

    A task that got worse is a failure only if the gate decides that the system did: single tasks
    flip by chance.
    """
    decision = JUnitCase(
        classname="gta gate",
        name="decision",
        outcome=_OUTCOMES[gate.decision],
        kind=gate.decision or "not enough scored",
        message=state_decision(gate),
        text="\n".join(list_remarks(gate)),
    )
    cases = [decision, *(_make_case(gate, task, locate) for task in gate.tasks)]
    figures = {
        "metric": gate.metric,
        "margin": f"{gate.margin:g}",
        "base": gate.base,
        "new": gate.new,
        "decision": gate.decision or "not enough scored",
    }
    return format_junit("gta gate", cases, when=when, properties=figures)


def _make_case(gate: GateResult, task: str, locate: Locate) -> JUnitCase:
    own = [one for one in gate.flips if one.task == task]
    root = next((one for one in own if one.leaf is None), None)
    lines = [
        f"{one.leaf or 'task'}: {one.base:.1f} in BASE (its repeats: {one.base_repeats}), "
        f"{one.new:.1f} in NEW"
        for one in own
    ]
    lines += [locate(own[0])] if own else []
    text = "\n".join(lines)
    case = JUnitCase(classname="gta gate tasks", name=task, text=text)
    if task in gate.unused:
        undecided = gate.decision == "undecided"
        said = "The gate stopped before it." if undecided else "The gate did not need it."
        return replace(case, outcome="skipped", kind="unused", message=said)
    if task in gate.missing:
        said = "No score in a repeat."
        return replace(case, outcome="error", kind="unscored", message=said)
    if root is not None and root.worse and gate.decision == "worse":
        said = f"{gate.label} fell from {root.base:.1f} to {root.new:.1f}."
        return replace(case, outcome="failure", kind="worse", message=said)
    return case
