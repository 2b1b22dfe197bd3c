"""ATIF trajectories as observed traces."""

from collections.abc import Iterator

from pydantic import JsonValue, ValidationError

from gta_bench.authoring.traces.observed import (
    ObservedFile,
    ObservedTool,
    ObservedTrace,
    find_answer,
    join_tools,
    read_definition,
    read_step_calls,
)
from gta_bench.errors import UsageError
from gta_bench.records.atif import AtifStep, Trajectory, read_steps


def read_trajectory(value: JsonValue, number: int) -> ObservedTrace:
    """Read a trajectory; raises UsageError with what is wrong with it."""
    try:
        found = Trajectory.model_validate(value)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        problem = f"is an ATIF trajectory that cannot be read ({where}: {first['msg']})"
        raise UsageError(problem) from exc
    own = [step for step in found.steps if not step.is_copied_context]
    trace = read_steps(own)
    calls = read_step_calls(trace)
    users = [step for step in own if step.source == "user"]
    system = [step for step in own if step.source == "system"]
    tools, notes = join_tools(_read_tools(found), calls)
    extra = found.extra or {}
    return ObservedTrace(
        id=found.trajectory_id or found.session_id or str(number),
        format="ATIF",
        request=_read_text(users[0].message) if users else None,
        turns=len(users),
        system=_read_text(system[0].message) if system else None,
        answer=find_answer(trace),
        tools=tools,
        calls=calls,
        files=tuple(_read_files(users[0])) if users else (),
        # Our own export says what was run.
        is_ours={"dataset", "task", "epoch"} <= extra.keys(),
        notes=notes,
    )


def _read_tools(found: Trajectory) -> list[ObservedTool]:
    tools = (read_definition(dict(one)) for one in found.agent.tool_definitions or ())
    return [tool for tool in tools if tool is not None]


def _read_text(message: JsonValue) -> str | None:
    """Return a message, or the texts of one with several parts."""
    if isinstance(message, list):
        parts = [part.get("text") for part in message if isinstance(part, dict)]
        message = "\n".join(part for part in parts if isinstance(part, str))
    return message if isinstance(message, str) and message.strip() else None


def _read_files(step: AtifStep) -> Iterator[ObservedFile]:
    for part in step.message if isinstance(step.message, list) else ():
        source = part.get("source") if isinstance(part, dict) else None
        path = source.get("path") if isinstance(source, dict) else None
        if isinstance(path, str):
            yield ObservedFile(name=path)
