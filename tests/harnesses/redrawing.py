"""An agent that does not like its work, and tries every way to have it drawn again."""

import asyncio
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.util import LimitExceededError

from gta_bench.errors import EnvironmentProblem, RunError
from gta_bench.harnesses.in_process import AgentTask

# Words at which the model's provider fails in that way.
REFUSED, LATER, DOWN = "too much of it", "too busy", "the account is closed"
EMPTY = "all that is left of the quota"


async def redraw(task: AgentTask) -> Any:
    """What its task is called is what it does after its work is bad."""
    (task.folder / "outputs" / "half.txt").write_text("bad")
    way = WAYS.get(task.id)
    if way in UNANSWERED:
        return await way(task)
    await _ask("work")
    if way is not None:
        return await way(task)
    return "An honest answer."


async def _ask(text: str) -> str:
    return (await get_model().generate([ChatMessageUser(content=text)])).completion


async def refused(task: AgentTask) -> str:
    return await _ask(REFUSED)


async def refused_and_silent(task: AgentTask) -> str:
    with suppress(Exception):
        return await _ask(REFUSED)
    return ""


async def later(task: AgentTask) -> str:
    return await _ask(LATER)


async def closed(task: AgentTask) -> str:
    return await _ask(DOWN)


async def exhausted(task: AgentTask) -> str:
    return await _ask(EMPTY)


async def outputs_replaced(task: AgentTask) -> str:
    """A tool finds no folder to write to, which looks like a fault of this machine."""
    shutil.rmtree(task.folder / "outputs")
    (task.folder / "outputs").write_text("no folder")
    with suppress(Exception):
        await task.tool("CsvFileGenerator")({"filename": "a", "data_str": "[[1]]"})
    return "bad"


async def interrupted(task: AgentTask) -> str:
    """As Ctrl-C does, the first time; its work was done without the run's model."""
    seen = task.folder.parents[1] / "interrupted"
    if not seen.exists():
        seen.touch()
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)
    return "An honest answer."


async def product_error(task: AgentTask) -> str:
    raise RunError("The tool server is lost.")


async def environment(task: AgentTask) -> str:
    raise EnvironmentProblem("There is no bubblewrap here.")


async def interrupt(task: AgentTask) -> str:
    raise KeyboardInterrupt


async def cancel(task: AgentTask) -> str:
    raise asyncio.CancelledError


async def leave(task: AgentTask) -> str:
    raise SystemExit(1)


async def limit(task: AgentTask) -> str:
    raise LimitExceededError("time", value=1, limit=1)


async def no_answer(task: AgentTask) -> object:
    return object()


async def half_characters(task: AgentTask) -> str:
    return "\ud800 and no more"


async def no_inputs(task: AgentTask) -> str:
    shutil.rmtree(task.folder / "inputs", ignore_errors=True)
    return "gone"


async def no_workspace(task: AgentTask) -> str:
    shutil.rmtree(task.folder)
    return "gone"


async def odd_files(task: AgentTask) -> str:
    outputs = task.folder / "outputs"
    os.mkfifo(outputs / "pipe")
    (outputs / "loop").symlink_to(outputs)
    (outputs / os.fsdecode(b"bad\xff.txt")).write_text("x")
    deep = Path(*["d" * 40] * 40)
    (outputs / deep).mkdir(parents=True)
    return "odd"


WAYS = {
    "refused": refused,
    "refused-silent": refused_and_silent,
    "later": later,
    "closed": closed,
    "exhausted": exhausted,
    "outputs-replaced": outputs_replaced,
    "interrupted": interrupted,
    "product-error": product_error,
    "environment": environment,
    "interrupt": interrupt,
    "cancel": cancel,
    "leave": leave,
    "limit": limit,
    "no-answer": no_answer,
    "half-characters": half_characters,
    "no-inputs": no_inputs,
    "no-workspace": no_workspace,
    "odd-files": odd_files,
}
# What is done before the model was asked for anything else.
UNANSWERED = (closed, outputs_replaced, interrupted)
