"""Python agents for Inspect's agent bridge, and one of upstream's contract."""

import json
import threading
import time
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from gta_bench.errors import GtaError
from gta_bench.harnesses.in_process import AgentTask

NO_FUNCTION = 1


async def bare(task: AgentTask) -> str:
    """A bare loop over the chat API."""
    client = AsyncOpenAI(api_key="none", base_url="http://127.0.0.1:9/v1")
    tools: Any = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
            },
        }
        for tool in task.tools
    ]
    messages: Any = [{"role": "user", "content": task.prompt}]
    while True:
        reply = await client.chat.completions.create(
            model="inspect", messages=messages, tools=tools
        )
        said = reply.choices[0].message
        messages.append(said)
        if not said.tool_calls:
            return said.content or ""
        for call in said.tool_calls:
            assert call.type == "function"
            result = await task.tool(call.function.name)(json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


class Upstream:
    """An agent as the original benchmark takes one: without `async`, steps in its own form."""

    def __init__(self, task: AgentTask) -> None:
        self.task = task

    def chat(self, query: str, memory: Any, resources: Any) -> tuple[Any, Any]:
        tools = [one["name"] for one in resources if one["type"] == "tool"]
        assert tools == [tool.name for tool in self.task.tools]
        files = [one for one in resources if one["type"] == "file"]
        assert {one["filetype"] for one in files} <= {"image"}
        assert all(Path(one["path"]).is_file() for one in files)
        assert len(files) == len(self.task.files)
        result = self.task.call("Calculator", {"expression": "6*7"})
        said = self.task.ask(
            [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": query},
                {"role": "assistant", "content": result},
            ]
        )
        return [{"role": "assistant", "content": f"{said} {result}"}], memory


def upstream_alone(task: AgentTask) -> object:
    """The same contract with tools of its own, whose calls only its steps tell of."""

    class Alone:
        def chat(self, query: str, memory: Any, resources: Any) -> tuple[Any, Any]:
            call = {"type": "function", "function": {"name": "Own", "arguments": {"a": 1}}}
            return (
                [
                    {"role": "assistant", "tool_calls": [call]},
                    {"role": "tool", "content": "fine"},
                    {"role": "assistant", "content": "Done."},
                ],
                memory,
            )

    return Alone()


class Stepping:
    """The same contract in step mode: repeats what it sees, and calls OCR on the first file."""

    def __init__(self, task: AgentTask) -> None:
        self.task = task

    def next_step(self, history: Any, resources: Any, stop: bool = False) -> Any:
        if len(history) == 1:
            (file,) = [one["path"] for one in resources if one["type"] == "file"]
            assert Path(file).is_file()
            call = {"type": "function", "function": {"name": "OCR", "arguments": {"image": file}}}
            return {"role": "assistant", "tool_calls": [call]}
        (called,) = history[1]["tool_calls"]
        assert called["function"]["arguments"]["image"] == resources[-1]["path"]
        assert history[2]["content"] == {"type": "text", "content": "(0, 0, 9, 9) Beer 7"}
        if not stop:
            raise ValueError("not yet")
        words = [{"role": "user", "content": "How much?"}]
        return {"role": "assistant", "content": f"It costs 7. {self.task.ask(words)}"}


class Stumbling:
    """Raises, then says something that is no step."""

    def __init__(self, task: AgentTask) -> None:
        pass

    def next_step(self, history: Any, resources: Any, stop: bool = False) -> Any:
        if not stop:
            raise ValueError("I lost the thread.")
        return "seven"


class Silent:
    """Has neither of the methods."""

    def __init__(self, task: AgentTask) -> None:
        pass


class Leaving:
    """Ends the process, or tries to."""

    def __init__(self, task: AgentTask) -> None:
        pass

    def chat(self, query: str, memory: Any, resources: Any) -> tuple[Any, Any]:
        raise SystemExit(3)

    def next_step(self, history: Any, resources: Any, stop: bool = False) -> Any:
        raise SystemExit(3)


class Dawdling:
    """Takes a second for each step."""

    def __init__(self, task: AgentTask) -> None:
        pass

    def next_step(self, history: Any, resources: Any, stop: bool = False) -> Any:
        time.sleep(1)
        return {"role": "assistant", "content": "7"}


async def speechless(task: AgentTask) -> None:
    """Returns without an answer, as a function does that lacks its `return`."""


async def failing(task: AgentTask) -> str:
    """Leaves a file and breaks."""
    (task.folder / "outputs" / "begun.txt").write_text("half")
    raise ValueError("I lost the thread.")


async def careless(task: AgentTask) -> str:
    """Answers, whatever became of its calculation."""
    try:
        await task.tool("Calculator")({"expression": "6*7"})
        await task.tool("Calculator")({"expression": "6*7"})
    except GtaError as exc:
        return f"Sorry: {exc}"
    return "42"


async def slow(task: AgentTask) -> str:
    import asyncio

    await asyncio.sleep(60)
    return "never"


async def curious(task: AgentTask) -> str:
    """Answers with all that Inspect tells it about the sample."""
    from inspect_ai.log._samples import sample_active
    from inspect_ai.solver._task_state import sample_state

    state, active = sample_state(), sample_active()
    assert state is not None and active is not None
    sample = active.sample
    known = [state.target.text, state.metadata, sample.target, sample.metadata, state.store]
    return repr(known)


MEETING = threading.Barrier(2)


def blocking(task: AgentTask) -> str:
    """Without `async`: waits for the agent of another task, then calls a tool."""
    MEETING.wait(timeout=60)
    return task.call("Calculator", {"expression": "6*7"})


def endless(task: AgentTask) -> str:
    """Without `async`, and never done."""
    time.sleep(3600)
    return "never"
