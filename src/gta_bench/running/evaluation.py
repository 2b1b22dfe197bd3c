"""The Inspect evaluation of one part of a run, within the limits of the whole run."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Final

import rich
from inspect_ai import Task, eval_set, task_with
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries
from inspect_ai.model import Model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from gta_bench.errors import NOT_BEGUN, RunError, WorkFailed
from gta_bench.records.progress import ShardProgress
from gta_bench.records.run import STATEMENT
from gta_bench.running.budget import current_share
from gta_bench.running.shards import PATIENCE, Listener, RunPart
from gta_bench.running.stopping import check_stop
from gta_bench.runs.directory import (
    explain_unreadable,
    read_progress,
    read_shard_progress,
    write_progress,
)
from gta_bench.runs.log_layout import PrerequisiteError
from gta_bench.runs.logs import list_logs
from gta_bench.runs.merge import write_partial_log
from gta_bench.runs.store import explain_store_errors, lock_folder
from gta_bench.tasks.attempts import note_begin
from gta_bench.tasks.context import RunContext, Watcher, run_context

PACKAGES = ("gta-bench", "inspect_ai", "pydantic")
# Options of every evaluation: no display, and a log that is written after each sample.
QUIET: Final[dict[str, Any]] = {
    "display": "none",
    "log_buffer": 1,
    "log_realtime": False,
    "log_images": False,
    "ctl_server": False,
    "score_display": False,
    "log_level": "error",
}


def silence_engine() -> None:
    """Silence the console of Inspect, which reports finished work even without a display."""
    rich.get_console().quiet = True


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that decide what a run does."""
    return {name: version(name) for name in PACKAGES}


def part_counter(part: RunPart, listener: Listener | None) -> Watcher:
    """Return a watcher that counts the part's samples and notifies this process's listener."""
    # Inspect prints a banner on stdout about hooks that exist when the first model is created.
    from gta_bench.running.progress import Counter

    def tell(progress: ShardProgress) -> None:
        write_progress(part.progress, progress)
        found = None if listener is None else read_progress(part.progress)
        if listener is not None and found is not None:
            listener(found)

    return Counter(read_shard_progress(part.progress, part.name, part.command), tell)


def evaluate(
    task: Task,
    part: RunPart,
    context: RunContext,
    *,
    epochs: int,
    model: Model,
    listener: Listener | None = None,
    stated: Mapping[str, Any] | None = None,
) -> None:
    """Run the units that the part's logs do not contain yet; `stated` is written into the logs."""

    with (
        # Another attempt at the same shard may be ending on another machine.
        lock_folder(part.logs, patience=PATIENCE) if part.name else nullcontext(),
        run_context(replace(context, watcher=part_counter(part, listener), models=(model,))),
        explain_store_errors(part.logs, writing=True),
    ):
        check_stop()
        silence_engine()
        if part.begun and not list_logs(part.logs):
            newest = max(log.rsplit("/", 1)[-1] for log in part.begun.values())
            write_partial_log(part.begun, part.logs / newest)
        try:
            _, logs = eval_set(
                task_with(task, setup=within_limits()),
                log_dir=str(part.logs),
                model=model,
                sample_id=list(part.tasks),
                epochs=epochs,
                retry_attempts=1,
                fail_on_error=True,
                continue_on_fail=True,
                max_samples=context.settings.budget.max_connections,
                metadata=None if stated is None else {STATEMENT: dict(stated)},
                **QUIET,
            )
        except PrerequisiteError as exc:
            raise RunError(
                f"{part.logs} cannot be continued: its logs were written by a different command "
                "(another --data path or another version). Choose another --out."
            ) from exc
    check_interrupt(logs)
    # Inspect records in its log what ended an evaluation early. Failed units do not end it.
    for log in logs:
        if log.status == "error" and log.error is not None:
            with explain_unreadable(log.location):
                ran = len(read_eval_log_sample_summaries(log.location))
            if ran < len(part.tasks) * epochs:
                reasons = log.error.message.strip().splitlines() or ["no reason was given"]
                raise WorkFailed(f"The evaluation stopped early: {reasons[-1]}.", exit_code=3)


@solver
def within_limits() -> Solver:
    """Start a unit and record its attempt, unless a limit of the run is reached.

    A unit that does not start is run by the next command.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        share = current_share.get()
        reached = None if share is None else await share.start_unit()
        if reached is not None:
            raise WorkFailed(f"{reached}; {NOT_BEGUN}")
        await note_begin(state)
        return state

    return solve


def check_interrupt(logs: Sequence[EvalLog]) -> None:
    """Raise KeyboardInterrupt if Inspect caught one: it returns no log, or a canceled one."""
    if not logs or any(log.status == "cancelled" for log in logs):
        raise KeyboardInterrupt
