"""Finished results of a system: the metadata a user can state, and the eval pack format."""

from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

from gta_bench.records.base import Record
from gta_bench.records.calls import CallRecord
from gta_bench.records.steps import Trace

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Tokens(Record):
    """Tokens of all model calls together."""

    input: Count = 0
    output: Count = 0


class ResultMeta(Record):
    """`meta.json` in a task's folder, or in the folder above for all tasks; all keys are optional.

    Times need an offset: `2026-11-15T09:30:00Z`.
    """

    started: AwareDatetime | None = Field(None, description="When the system received the task.")
    finished: AwareDatetime | None = Field(None, description="When the system finished.")
    seconds: Amount | None = Field(None, description="Duration; default: from the two times.")
    cost_usd: Amount | None = Field(None, description="Cost in US dollars.")
    model: str | None = Field(None, description="The model that the system used.")
    harness: str | None = Field(None, description="The agent system, such as `Manus`.")
    harness_version: str | None = Field(None, description="The version of the agent system.")
    tokens: Tokens | None = Field(None, description="Tokens of all model calls.")

    @property
    def duration(self) -> float | None:
        """Seconds, as stated or computed from the two times."""
        if self.seconds is not None or self.started is None or self.finished is None:
            return self.seconds
        return max(0.0, (self.finished - self.started).total_seconds())


PACK_VERSION: Final = 1


class _Part(BaseModel):
    """Part of a pack; unused keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class PackMeta(_Part):
    """What a system states about its work on one task."""

    backend: str | None = Field(None, description="The system, such as `manus` or `openclaw`.")
    model: str | None = Field(None, description="The model that the system used.")
    harness_version: str | None = Field(None, description="The version of the system.")
    elapsed_sec: Amount | None = Field(None, description="Seconds that the task took.")
    call_elapsed_sec: Amount | None = Field(
        None, description="Seconds of the system's own work; used instead of `elapsed_sec`."
    )
    cost_usd: Amount | None = Field(None, description="Cost of the task in US dollars.")


class PackTask(_Part):
    """The results of a system for one task."""

    task_id: int | str = Field(description="The task's id in the dataset, such as `7`.")
    origin_prompt: list[str] = Field(
        [],
        description="The prompt that the system got; a warning if it lacks the task's request.",
    )
    assistant_outputs: list[list[dict[str, Any]]] = Field(
        [],
        description="The steps of the system, one list per user message, as in the "
        "published prediction files: `{role: assistant, content}`, `{role: assistant, "
        "tool_calls}`, `{role: tool, content}`. `tool_calls_summary`, a list of "
        "`{name, last_arguments, success}`, can replace calls and replies. The last "
        "text of the assistant is the answer.",
    )
    attached_files: list[str] = Field(
        [], description="The deliverables, as paths below the pack's folder, or below `--root`."
    )
    meta: PackMeta | None = Field(None, description="What the system states about its work.")


class Pack(_Part):
    """An eval pack. Tasks are read one by one, so errors name their task."""

    schema_version: Literal[1] = Field(description="The version of the format.")
    generated_from: JsonValue = Field(
        None,
        description="Where the pack comes from; an object's `backend` and `model` name the system.",
    )
    tasks: list[PackTask] = Field(description="One entry per task.")


# In the folder of an attempt of AgentCompass.
COMPASS_ATTEMPT: Final = "gta/attempt.json"
COMPASS_FILES: Final = "files"


class CompassAttempt(Record):
    """`gta/attempt.json` in the folder of an attempt, which the AgentCompass plugin writes.

    The deliverables are in `files/` beside it. `left_out` has the other files that the harness left
    in `outputs/`, with the reasons. `asks` is the digest of what the system got. An attempt with a
    `fault`, such as a tool server that was lost, has no result.
    """

    schema_version: Literal[1] = 1
    task: str
    asks: str | None
    fault: str = ""
    attempt: int = Field(default=1, ge=1)
    trace: Trace = ()
    calls: tuple[CallRecord, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    meta: ResultMeta = ResultMeta()
