"""Two runs side by side for the app: what `gta compare` and `gta gate` say about them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from gta_bench.decisions.comparison import compare
from gta_bench.decisions.comparison_tables import (
    FlipTable,
    comparison_remarks,
    comparison_table,
    flip_tables,
    state_conclusion,
)
from gta_bench.decisions.gate import decide_gate, read_outcomes, refuse_other_kind
from gta_bench.decisions.gate_tables import state_decision
from gta_bench.errors import GtaError
from gta_bench.metrics.comparability import find_common_judges
from gta_bench.records.comparison import ComparedRun
from gta_bench.runs.scoring import read_compared
from gta_bench.web.pages import PageCell, PageTable, page_table

FLIPS_SHOWN: Final = 30


class FlipView(NamedTuple):
    """What is worse in B, or better, the largest changes first; `left` rows are not shown."""

    title: str
    table: PageTable
    left: int


class ComparedPair(NamedTuple):
    """What a page shows of two runs; `problem` says why they cannot be compared.

    `finding` is the first sentence of the conclusion. `gate` takes the first run as BASE and the
    second as NEW.
    """

    finding: str = ""
    more: str = ""
    metrics: PageTable | None = None
    remarks: tuple[str, ...] = ()
    flips: tuple[FlipView, ...] = ()
    gate: str = ""
    decision: str = ""
    problem: str = ""


def compare_pair(runs: Mapping[str, Path], link: Callable[[str], str]) -> ComparedPair:
    """Compare two runs, by name, and decide the gate, with the default metric and margin.

    `link` returns the address at which a task is shown side by side.
    """
    try:
        first, second = (
            read_compared(run).model_copy(update={"name": name}) for name, run in runs.items()
        )
        (found,) = compare([first, second])
    except GtaError as exc:
        return ComparedPair(problem=str(exc))
    gate, decision = _decide(first, second)
    finding, point, more = state_conclusion(found).partition(". ")
    return ComparedPair(
        finding=finding + point.rstrip(),
        more=more,
        metrics=page_table("Metrics of A and B", comparison_table(found)),
        remarks=tuple(comparison_remarks(found)),
        flips=tuple(_view_flips(one, link) for one in flip_tables(found, FLIPS_SHOWN)),
        gate=gate,
        decision=decision,
    )


def _view_flips(flips: FlipTable, link: Callable[[str], str]) -> FlipView:
    rows = tuple(
        (PageCell(row[0], href=link(row[0])), *map(PageCell, row[1:])) for row in flips.table.rows
    )
    table = PageTable(flips.title, flips.table.heading, rows, flips.words)
    return FlipView(flips.title, table, flips.left)


def _decide(base: ComparedRun, new: ComparedRun) -> tuple[str, str]:
    """Return the gate's sentence and its decision; the sentence says it if there is none."""
    judges = find_common_judges(base, new)
    judge = judges[0] if judges else None
    try:
        outcomes = read_outcomes(base, None, judge)
        refuse_other_kind(outcomes, new)
        found = decide_gate(outcomes, read_outcomes(new, None, judge))
    except GtaError as exc:
        return str(exc), ""
    return state_decision(found), found.decision or ""
