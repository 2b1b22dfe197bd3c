"""What runs of both datasets share: what held, and the engine's evaluation."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from inspect_ai import Task, eval_set, task_with
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries
from inspect_ai.model import Model

from gta_bench.agents import prompts as agent_prompts
from gta_bench.errors import RunError, WorkFailed
from gta_bench.harnesses import prompts as harness_prompts
from gta_bench.records.progress import ShardProgress
from gta_bench.records.run import STATEMENT
from gta_bench.running.limits import limit_check, within_limits
from gta_bench.running.shards import PATIENCE, Listener, RunPart
from gta_bench.runs.lock import locked
from gta_bench.runs.progress import read_progress, read_shard_progress, write_progress
from gta_bench.runs.store import reaching
from gta_bench.runs.unreadable import explain_unreadable
from gta_bench.tasks.context import RunContext, Watcher, run_context
from gta_bench.tools import prompts as tool_prompts

PACKAGES = ("gta-bench", "inspect_ai", "pydantic")


def agent_digests() -> dict[str, str]:
    """The digests of what agents tell models."""
    return {f"agents/{name}": digest for name, digest in agent_prompts.digests().items()}


def harness_digests() -> dict[str, str]:
    """The digests of what harnesses are told."""
    return {f"harnesses/{name}": digest for name, digest in harness_prompts.digests().items()}


def tool_digests() -> dict[str, str]:
    """The digests of what tools tell models."""
    return {f"tools/{name}": digest for name, digest in tool_prompts.digests().items()}


def package_versions() -> dict[str, str]:
    """The versions of what ran."""
    return {name: version(name) for name in PACKAGES}


def part_counter(part: RunPart, listener: Listener | None) -> Watcher:
    """Counts the part's samples in the run's progress, and tells the listener of this process."""
    # Inspect prints a banner on stdout about hooks that are there when the first model is made.
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
    """Run what the part's logs do not hold yet; the logs say what `stated` does."""
    with (
        # Another attempt of the same shard may be ending on another machine.
        locked(part.logs, patience=PATIENCE) if part.name else nullcontext(),
        run_context(
            replace(
                context,
                limit_reached=limit_check(part.limits, lambda: read_progress(part.progress)),
                watcher=part_counter(part, listener),
                models=(model,),
            )
        ),
        reaching(part.logs, writing=True),
    ):
        try:
            _, logs = eval_set(
                task_with(task, setup=within_limits()),
                log_dir=str(part.logs),
                model=model,
                sample_id=list(part.tasks),
                epochs=epochs,
                display="none",
                log_buffer=1,
                log_realtime=False,
                log_images=False,
                retry_attempts=1,
                fail_on_error=True,
                continue_on_fail=True,
                max_samples=context.settings.budget.max_connections,
                ctl_server=False,
                metadata=None if stated is None else {STATEMENT: dict(stated)},
                score_display=False,
                log_level="error",
            )
        except PrerequisiteError as exc:
            raise RunError(
                f"{part.logs} cannot be continued: its logs were made by another command "
                "(another --data path, or another version); name another --out."
            ) from exc
    _check_ended(logs, len(part.tasks) * epochs)


def _check_ended(logs: Sequence[EvalLog], units: int) -> None:
    """The engine notes what broke off an evaluation in its log; units that failed are no such."""
    check_interrupt(logs)
    for log in logs:
        if log.status == "error" and log.error is not None:
            with explain_unreadable(log.location):
                ran = len(read_eval_log_sample_summaries(log.location))
            if ran < units:
                said = log.error.message.strip().splitlines() or ["no reason was given"]
                raise WorkFailed(f"The evaluation broke off: {said[-1]}.", exit_code=3)


def check_interrupt(logs: Sequence[EvalLog]) -> None:
    """An interrupt that the engine took is one again: it returns no log, or a cancelled one."""
    if not logs or any(log.status == "cancelled" for log in logs):
        raise KeyboardInterrupt
