"""The released file layouts, as they are: types for the JSON of the GTA publications.

Unknown keys are kept so that they can be reported; everything else must have its known type.
"""

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from gta_bench.records.tools import ParameterType


class Released(BaseModel):
    """Part of a released file; unknown keys are allowed and reported."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)


class ReleasedParameter(Released):
    """An input or output in `toolmeta.json`."""

    type: ParameterType
    name: str | None = None
    description: str | None = None
    optional: bool = False
    default: JsonValue = None
    filetype: str | None = None


class ReleasedTool(Released):
    """A tool in `toolmeta.json` or in a task's own list."""

    name: str
    description: str | None = None
    inputs: list[ReleasedParameter] = []
    outputs: list[ReleasedParameter] = []


class ReleasedFile(Released):
    """An input file of a task."""

    type: str | None = None
    path: str
    url: str | None = None


class ReleasedFunction(Released):
    """The function of a tool call; `arguments` is an object, not a JSON string."""

    name: str
    arguments: dict[str, JsonValue]


class ReleasedCall(Released):
    """One entry of `tool_calls`."""

    type: Literal["function"] = "function"
    function: ReleasedFunction


class ReleasedReply(Released):
    """What a tool message holds."""

    type: ParameterType
    content: str


class ReleasedMessage(Released):
    """A message of a dialogue, whatever its role."""

    role: Literal["user", "assistant", "tool"]
    content: str | ReleasedReply | None = None
    name: str | None = None
    thought: str | None = None
    tool_calls: list[ReleasedCall] | None = Field(None, min_length=1, max_length=1)
    resources: list[ReleasedFile] = []


class ReleasedWhitelist(Released):
    """The accepted and the refused aliases of an answer."""

    whitelist: list[list[str]]
    blacklist: list[list[str]] | None = None


class ReleasedAtomicTask(Released):
    """An entry of `dataset.json`, or of a `step.json` of the same shape."""

    tools: list[ReleasedTool]
    files: list[ReleasedFile | str]
    dialogs: list[ReleasedMessage] = Field(min_length=1)
    gt_answer: ReleasedWhitelist | list[str] | None = None


class ReleasedCheckpoint(Released):
    """A node of a checkpoint tree."""

    id: str
    requirements: str | None = None
    weight: float = Field(1.0, ge=0, allow_inf_nan=False)
    sub_tasks: list["ReleasedCheckpoint"] = []


class ReleasedWorkflowTask(Released):
    """An entry of `end.json`."""

    tools: list[ReleasedTool | str] = []
    files: list[ReleasedFile | str] = []
    dialogs: list[ReleasedMessage] = Field(min_length=1)
    sub_tasks: list[ReleasedCheckpoint]
    workflow_category_6class: str | None = None


def unknown_keys(part: BaseModel, where: str = "") -> Iterator[str]:
    """The dotted places of keys that the released layout does not have."""
    yield from (f"{where}{key}" for key in part.model_extra or ())
    for name in type(part).model_fields:
        value = getattr(part, name)
        for index, item in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(item, BaseModel):
                step = f"{name}.{index}." if isinstance(value, list) else f"{name}."
                yield from unknown_keys(item, where + step)
