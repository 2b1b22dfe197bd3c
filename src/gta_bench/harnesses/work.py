"""A harness at work on one task in its cell: what it is given, what bounds it, how it ended."""

from collections.abc import Awaitable, Callable

import anyio
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.util import SandboxUnavailableError, apply_limits, cost_limit, sandbox

from gta_bench.confine import files
from gta_bench.confine.limits import MIB
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import RunError
from gta_bench.harnesses import command, named
from gta_bench.harnesses.cell import Cell, CellGone
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.collecting import OUTPUTS
from gta_bench.harnesses.contract import Assignment, Outcome
from gta_bench.harnesses.sandbox import CellSandbox

FINAL = "final.txt"
Play = Callable[[Harness, Assignment, Cell], Awaitable[Outcome]]
# What Inspect's bridge and the agents of inspect_swe raise when the program that they run fails.
BROKEN = (CellGone, RuntimeError, OSError, SandboxUnavailableError)


async def work_in_cell(harness: Harness, given: Assignment) -> Outcome:
    """Let a command or a named harness work; what it does wrong is in the outcome."""
    play, plan = (
        (command.play, command.plan) if harness.kind == "command" else (named.play, named.plan)
    )
    async with Cell(plan(harness, given)) as cell:
        sandbox().as_type(CellSandbox).cell = cell
        ended = await _bounded(play, harness, given, cell)
        await cell.end()
        final = await anyio.to_thread.run_sync(_final, cell)
        if cell.stop == "disk":
            await anyio.to_thread.run_sync(_clear, given.workspace)
    if ended.problem is not None and cell.stop is None:
        _blame_model()
    return Outcome(final or ended.answer, ended.problem, ended.printed)


async def _bounded(play: Play, harness: Harness, given: Assignment, cell: Cell) -> Outcome:
    """Within its time and cost; says in words what ended it."""
    limits, ended = harness.limits, Outcome("")
    try:
        with (
            apply_limits([cost_limit(harness.max_cost)], catch_errors=True) as bounds,
            anyio.move_on_after(limits.seconds) as clock,
        ):
            ended = await play(harness, given, cell)
    except BROKEN as exc:
        if cell.stop is None and not isinstance(exc, CellGone):
            return Outcome("", f"The harness failed: {exc}")
        ended = Outcome("", "The harness ended its own cell.")
    if clock.cancelled_caught:
        cell.halt("timeout")
    if cell.stop is not None:
        return Outcome("", f"The harness was stopped: {limits.words(cell.stop)}.", ended.printed)
    if bounds.limit_error is not None:
        return Outcome("", f"The harness was stopped: it cost more than ${harness.max_cost:g}.")
    return ended


def _final(cell: Cell) -> str:
    """The answer that a harness left as a file, if it did."""
    try:
        with files.open_regular(cell.folder / "work" / FINAL) as stream:
            data = files.read_bounded(stream, MIB)
    except OSError:
        return ""
    return "" if data is None else data.decode("utf-8", "replace").strip()


def _clear(workspace: Workspace) -> None:
    """Empty the outputs: those of a harness that filled the disk are not kept."""
    outputs = workspace.root / OUTPUTS
    files.remove_tree(outputs)
    outputs.mkdir()


def _blame_model() -> None:
    """A harness that failed because its model did has no score; the same command runs it again."""
    calls = [event for event in transcript().events if isinstance(event, ModelEvent)]
    if calls and calls[-1].error is not None:
        raise RunError(f"The harness's model failed: {calls[-1].error.splitlines()[0]}")
