"""An eval pack: the finished results of a system as one JSON file, with deliverables beside it."""

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from gta_bench.records.finished import Amount

PACK_VERSION: Final = 1


class _Part(BaseModel):
    """Part of a pack; keys that we do not need are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class PackMeta(_Part):
    """What a system says of its work on one task."""

    backend: str | None = Field(None, description="The system, such as `manus` or `openclaw`.")
    model: str | None = Field(None, description="The model that it used.")
    harness_version: str | None = Field(None, description="Its version.")
    elapsed_sec: Amount | None = Field(None, description="Seconds that the task took.")
    call_elapsed_sec: Amount | None = Field(
        None, description="Seconds of the system's own work; counts before `elapsed_sec`."
    )
    cost_usd: Amount | None = Field(None, description="What the task cost, in US dollars.")


class PackTask(_Part):
    """What a system made of one task."""

    task_id: int | str = Field(description="The task's id in the dataset, such as `7`.")
    origin_prompt: list[str] = Field(
        [],
        description="What the system was asked; a warning where the task's request is not in it.",
    )
    assistant_outputs: list[list[dict[str, Any]]] = Field(
        [],
        description="The steps of the system, a list for each message of the user, as in the "
        "published prediction files: `{role: assistant, content}`, `{role: assistant, "
        "tool_calls}`, `{role: tool, content}`. `tool_calls_summary`, a list of "
        "`{name, last_arguments, success}`, may stand for calls and replies. The last "
        "text of the assistant is the answer.",
    )
    attached_files: list[str] = Field(
        [], description="The deliverables, as paths below the pack's folder, or below `--root`."
    )
    meta: PackMeta | None = Field(None, description="What the system says of its work.")


class Pack(_Part):
    """The whole file; tasks are read one by one, so a fault is told with its task."""

    schema_version: Literal[1] = Field(description="The version of the format.")
    generated_from: JsonValue = Field(
        None,
        description="Where the pack comes from; an object's `backend` and `model` name the system.",
    )
    tasks: list[PackTask] = Field(description="A task each; none may stand there twice.")
