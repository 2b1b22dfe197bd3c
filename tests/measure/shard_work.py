"""What the speed of shards is measured with: 50 ms of a model and 50 ms of a core a turn."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from inspect_ai import eval_set
from inspect_ai.model import get_model

from gta_bench.agents.contract import Decide, Decision, History, Setup
from gta_bench.records.steps import AnswerStep
from gta_bench.records.tools import ToolSpec
from gta_bench.tasks.atomic import atomic_step

AGENT = "tests.measure.shard_work:busy"
MODEL_SECONDS = 0.05
CORE_SECONDS = 0.05  # for each of a unit's two turns


def busy(setup: Setup) -> Decide:
    """Waits as for a model, then works as a scorer would, on the core and on the loop."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        await asyncio.sleep(MODEL_SECONDS)
        end = time.process_time() + CORE_SECONDS
        while time.process_time() < end:
            pass
        return Decision(step=AnswerStep(content="It is 7."))

    return decide


def bare_shard(item: tuple[str, str, tuple[str, ...], int]) -> None:
    """The same evaluation by the engine alone: no plan, no progress, no locks, no merge."""
    data, folder, tasks, at_once = item
    eval_set(
        atomic_step(data=data, agent=AGENT, similarity="exact-or-half"),
        log_dir=str(Path(folder)),
        model=get_model("none/none"),
        sample_id=list(tasks),
        epochs=1,
        display="none",
        log_buffer=1,
        log_realtime=False,
        log_images=False,
        retry_attempts=1,
        fail_on_error=True,
        continue_on_fail=True,
        max_samples=at_once,
        ctl_server=False,
        score_display=False,
        log_level="error",
    )
