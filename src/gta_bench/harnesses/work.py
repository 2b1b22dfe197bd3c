"""A harness at work on one task in its cell: what it is given, what bounds it, how it ended."""

import asyncio
from collections.abc import Awaitable, Callable

import anyio
from inspect_ai.util import SandboxUnavailableError, sample_limits, sandbox

from gta_bench.confine import files
from gta_bench.confine.limits import MIB
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import RunError
from gta_bench.harnesses import command, named
from gta_bench.harnesses.cell import TICK, Cell, CellGone
from gta_bench.harnesses.cell_plan import CellLimits
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.collecting import OUTPUTS
from gta_bench.harnesses.contract import Assignment, HarnessOutcome
from gta_bench.harnesses.faults import blaming, model_calls
from gta_bench.harnesses.sandbox import CellSandbox

FINAL = "final.txt"
Play = Callable[[Harness, Assignment, Cell], Awaitable[HarnessOutcome]]
# What Inspect's bridge and the agents of inspect_swe raise when the program that they run fails.
BROKEN = (CellGone, RuntimeError, OSError, SandboxUnavailableError)


async def work_in_cell(harness: Harness, given: Assignment) -> HarnessOutcome:
    """Let a command or a named harness work; what it does wrong is in the outcome."""
    play, plan = (
        (command.play, command.plan) if harness.kind == "command" else (named.play, named.plan)
    )
    async with blaming() as blame:
        async with Cell(plan(harness, given)) as cell:
            sandbox().as_type(CellSandbox).cell = cell
            ended = await _bounded(play, harness, given, cell)
            await cell.end()
            final = await anyio.to_thread.run_sync(_final, cell)
            if cell.stop == "disk":
                await anyio.to_thread.run_sync(_clear, given.workspace)
        outcome = HarnessOutcome(final or ended.answer, ended.problem, ended.printed)
        return outcome if cell.stop is not None else await blame.judge(outcome)


async def _bounded(play: Play, harness: Harness, given: Assignment, cell: Cell) -> HarnessOutcome:
    """Within its time and cost; says in words what ended it."""
    limits, ended = harness.limits, HarnessOutcome("")
    watch = asyncio.create_task(_watch_cost(cell))
    try:
        with anyio.move_on_after(limits.seconds) as clock:
            ended = await play(harness, given, cell)
    except BROKEN as exc:
        ended = _broken(exc, harness, cell)
    finally:
        watch.cancel()
    if clock.cancelled_caught:
        cell.halt("timeout")
    elif _too_dear(limits):
        cell.halt("cost")
    if cell.stop is not None:
        return HarnessOutcome(
            "", f"The harness was stopped: {limits.words(cell.stop)}.", ended.printed
        )
    return ended


def _broken(exc: Exception, harness: Harness, cell: Cell) -> HarnessOutcome:
    """A failure is the harness's own, but not where it could not even begin."""
    if isinstance(exc, CellGone):
        return HarnessOutcome("", "The harness ended its own cell.")
    if harness.kind == "named" and cell.stop is None and not model_calls():
        raise RunError(f"{harness.target} failed before it asked its model: {exc}") from exc
    return HarnessOutcome("", f"The harness failed: {exc}")


async def _watch_cost(cell: Cell) -> None:
    """Stop a harness that costs more than it may.

    Inspect's own limit would end the whole task, and with it what the harness has made so far.
    """
    while not _too_dear(cell.plan.limits):
        await asyncio.sleep(TICK)
    cell.halt("cost")


def _too_dear(limits: CellLimits) -> bool:
    return limits.cost_usd is not None and sample_limits().cost.usage > limits.cost_usd


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
