"""Finished results of a system: the metadata a user can state, and the eval pack format."""

from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

from gta_bench.records.base import Record

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Tokens(Record):
    """Tokens of all model calls together."""

    input: Count = 0
    output: Count = 0


class ResultMeta(Record):
    """`meta.json` of a task's folder, or of the folder above for all tasks; every key is optional.

    Times need an offset: `2026-11-15T09:30:00Z`.
    """

    started: AwareDatetime | None = Field(None, description="When the system got the task.")
    finished: AwareDatetime | None = Field(None, description="When it delivered.")
    seconds: Amount | None = Field(None, description="How long it took; else from the times.")
    cost_usd: Amount | None = Field(None, description="What it cost, in US dollars.")
    model: str | None = Field(None, description="The model that was asked.")
    harness: str | None = Field(None, description="The agent system, such as `Manus`.")
    harness_version: str | None = Field(None, description="Its version.")
    tokens: Tokens | None = Field(None, description="Tokens of all model calls together.")

    @property
    def duration(self) -> float | None:
        """Seconds, as stated or between the two times."""
        if self.seconds is not None or self.started is None or self.finished is None:
            return self.seconds
        return max(0.0, (self.finished - self.started).total_seconds())


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
