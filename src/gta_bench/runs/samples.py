"""Where a sample keeps what scoring needs: the task, the steps, the files."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from gta_bench.records.atomic import AtomicTask
from gta_bench.records.calls import CallRecord
from gta_bench.records.deliverables import Deliverable
from gta_bench.records.run import UpstreamPair
from gta_bench.records.steps import Trace
from gta_bench.records.workflow import WorkflowTask

TASK = "gta_task"
STEPS = "gta_steps"
CALLS = "gta_calls"
UPSTREAM = "gta_upstream"
DELIVERABLES = "gta_deliverables"
INPUTS = "gta_inputs"
STRAYS = "gta_strays"
TURNS = "gta_turns"
# What a foreign system says that the sample took.
USAGE = "gta_usage"
# All that a finished Workflow sample keeps.
KEPT = (STEPS, CALLS, DELIVERABLES, INPUTS, STRAYS, TURNS)

_TRACE = TypeAdapter[Trace](Trace)


def read_task(metadata: Mapping[str, Any]) -> AtomicTask:
    """The task of a sample, from its metadata."""
    return AtomicTask.model_validate(metadata[TASK])


def read_workflow_task(metadata: Mapping[str, Any]) -> WorkflowTask:
    """The Workflow task of a sample, from its metadata."""
    return WorkflowTask.model_validate(metadata[TASK])


def read_deliverables(files: Sequence[Any] | None) -> tuple[Deliverable, ...]:
    """The files that a sample keeps by name and digest."""
    return tuple(Deliverable.model_validate(file) for file in files or ())


def read_steps(steps: Sequence[Any] | None) -> Trace | None:
    """The predicted steps that a sample keeps; None where none were made."""
    return None if steps is None else _TRACE.validate_python(tuple(steps))


def read_calls(calls: Sequence[Any] | None) -> tuple[CallRecord, ...]:
    """What became of a sample's tool calls."""
    return tuple(CallRecord.model_validate(call) for call in calls or ())


def read_upstream(metadata: Mapping[str, Any]) -> UpstreamPair | None:
    """The prediction and reference of an imported sample, as its file had them."""
    pair = metadata.get(UPSTREAM)
    return None if pair is None else UpstreamPair.model_validate(pair)


def dumped(steps: Sequence[Any]) -> list[dict[str, Any]]:
    """Steps in the form in which a sample keeps them."""
    return [step.model_dump(mode="json") for step in steps]
