"""A scripted model behind HTTP that works off GTA-Atomic's reference dialogues."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gta_bench.records.atomic import AtomicTask
from gta_bench.records.dialogue import CallTurn
from tests.chat_server import Reply


def reference_reply(tasks: Mapping[str, AtomicTask], wrong: int = 5) -> Reply:
    """The reference's next step, by the request and the turns so far; every so many tasks an end.

    What is said depends on the messages alone, so it is the same whoever asks and when. A request
    that is of no task gets a word.
    """
    by_request = {task.request: task for task in tasks.values()}

    def reply(request: dict[str, Any]) -> str | dict[str, Any]:
        messages = request["messages"]
        task = find_task(request, by_request)
        if task is None:
            return "Ready."
        turns = sum(message["role"] == "assistant" for message in messages)
        if int(task.id) % wrong == 0:
            return "I do not know."
        step = task.steps[min(turns, len(task.steps) - 1)]
        if isinstance(step, CallTurn):
            call = {"name": step.call.name, "arguments": json.dumps(dict(step.call.arguments))}
            calls = [{"id": f"call-{turns}", "type": "function", "function": call}]
            message = {"role": "assistant", "content": "", "tool_calls": calls}
            return {"message": message, "finish_reason": "tool_calls"}
        return str(step.content)

    return reply


def write_settings(file: Path, url: str, **budget: float) -> Path:
    """A gta.toml whose model `scripted` is the server at that address."""
    lines = [
        "[models.scripted]",
        'model = "openai-api/local/scripted"',
        f'base_url = "{url}"',
        'key_env = "SCRIPTED_KEY"',
        # Ten input tokens, as the server counts every call, are a dollar.
        "input_price = 100000.0",
        "output_price = 0.0",
        "[budget]",
        "max_retries = 0",
        *(f"{name} = {value}" for name, value in budget.items()),
    ]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def find_task(request: dict[str, Any], by_request: Mapping[str, AtomicTask]) -> AtomicTask | None:
    """The task that a model is asked about; None where it is asked about something else."""
    found = (_known(text, by_request) for text in _texts(request["messages"]))
    return next((task for task in found if task is not None), None)


def _texts(messages: list[dict[str, Any]]) -> list[str]:
    contents = [message["content"] for message in messages if message["role"] == "user"]
    return [
        content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)
        for content in contents
    ]


def _known(text: str, by_request: Mapping[str, AtomicTask]) -> AtomicTask | None:
    """The longest request in the text: one request begins like another one."""
    found = [request for request in by_request if request in text]
    return by_request[max(found, key=len)] if found else None
