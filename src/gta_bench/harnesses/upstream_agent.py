"""The custom agents of the original benchmark: `chat` end to end, `next_step` step by step.

An agent is told its tools and files as resources: `{"type": "tool", "name": …}`, and
`{"type": "file", "filetype": …, "path": …}` with a path that can be opened. Its steps name files by
the same paths, which become the portable ones before they are scored.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pydantic import JsonValue

from gta_bench.records.dialogue import AnswerTurn, CallTurn, Turn, UserTurn
from gta_bench.records.files import Attachment
from gta_bench.records.steps import CallStep, PredictedStep


@runtime_checkable
class ChatAgent(Protocol):
    """What end-to-end mode needs of an agent."""

    def chat(self, query: str, memory: Any, resources: Any) -> tuple[Any, Any]:
        """The steps of one turn, and what the agent remembers."""
        ...


@runtime_checkable
class StepAgent(Protocol):
    """What step mode needs of an agent."""

    def next_step(self, history: Any, resources: Any, stop: bool) -> Any:
        """One step after the history; with `stop` it should answer without a tool."""
        ...


def describe_resources(
    tools: Iterable[str], files: Iterable[Attachment], folder: Path
) -> list[dict[str, Any]]:
    """Tools, then files, as the original loader gives them to an agent."""
    return [
        *({"type": "tool", "name": name} for name in tools),
        *(
            {"type": "file", "filetype": item.type, "path": str(folder / item.path)}
            for item in files
        ),
    ]


def write_history(
    turns: Sequence[Turn], files: Iterable[Attachment], folder: Path
) -> list[dict[str, Any]]:
    """Turns of the reference in the form of the dataset; thoughts stay out."""
    paths = {item.path: str(folder / item.path) for item in files}
    return [_message(turn, paths) for turn in turns]


def make_portable(step: PredictedStep, folder: Path) -> PredictedStep:
    """A step with the files of the task's folder by their paths inside it."""
    if not isinstance(step, CallStep) or not isinstance(step.arguments, dict):
        return step
    given = {name: portable_value(value, folder) for name, value in step.arguments.items()}
    return step.model_copy(update={"arguments": given})


def portable_value(value: JsonValue, folder: Path) -> JsonValue:
    """A path below the folder as seen from it; anything else stays."""
    if not isinstance(value, str):
        return value
    for root in (folder, folder.resolve()):
        value = value.removeprefix(f"{root}/")
    return value


def _message(turn: Turn, paths: Mapping[str, str]) -> dict[str, Any]:
    if isinstance(turn, UserTurn):
        return {"role": "user", "content": turn.content}
    if isinstance(turn, CallTurn):
        arguments = {
            name: paths.get(value, value) if isinstance(value, str) else value
            for name, value in turn.call.arguments.items()
        }
        function = {"name": turn.call.name, "arguments": arguments}
        call = {"type": "function", "function": function}
        return {"role": "assistant", "tool_calls": [call]}
    if isinstance(turn, AnswerTurn):
        return {"role": "assistant", "content": turn.content}
    content = {"type": turn.type, "content": turn.content}
    return {"role": "tool", "name": turn.tool, "content": content}
