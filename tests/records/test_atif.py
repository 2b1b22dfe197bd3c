"""Traces as ATIF trajectories, and back."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from gta_bench.metrics.reference import reference_trace
from gta_bench.records.atif import (
    AtifAgent,
    AtifCall,
    AtifObservation,
    AtifResult,
    AtifStep,
    Trajectory,
    read_steps,
    write_steps,
)
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    ReplyPart,
    ReplyStep,
    StepError,
    ThoughtStep,
    Trace,
)

FAILED = StepError(type="API_ERROR", message="no such file")
TEXTS = st.text(max_size=8)
STEPS: st.SearchStrategy[PredictedStep] = st.one_of(
    st.builds(
        CallStep,
        name=TEXTS,
        arguments=st.one_of(TEXTS, st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers()))),
        error=st.sampled_from([None, FAILED]),
    ),
    st.builds(AnswerStep, content=TEXTS, error=st.sampled_from([None, FAILED])),
    st.builds(ThoughtStep, content=TEXTS),
    st.builds(MalformedStep, content=TEXTS, reason=TEXTS),
    st.builds(
        ReplyStep,
        parts=st.lists(
            st.builds(ReplyPart, type=st.sampled_from(["text", "image", "int"]), content=TEXTS),
            max_size=2,
        ).map(tuple),
    ),
)


def through_json(trace: Trace) -> Trace:
    steps = write_steps("Do it.", trace)
    agent = AtifAgent(name="x", version="1")
    whole = Trajectory(agent=agent, steps=steps).model_dump_json(exclude_none=True)
    return read_steps(Trajectory.model_validate_json(whole).steps)


@given(st.lists(STEPS, max_size=8).map(tuple))
def test_every_trace_comes_back_as_it_was(trace: Trace) -> None:
    assert through_json(trace) == trace
    steps = write_steps("Do it.", trace)
    assert [step.step_id for step in steps] == list(range(1, len(steps) + 1))
    assert (steps[0].source, steps[0].message) == ("user", "Do it.")


def test_every_reference_comes_back(atomic_tasks: Mapping[str, AtomicTask]) -> None:
    for task in atomic_tasks.values():
        assert through_json(reference_trace(task)) == reference_trace(task)


def test_a_call_stands_with_its_thought_and_its_reply() -> None:
    trace: Trace = (
        ThoughtStep(content="Look."),
        CallStep(name="OCR", arguments={"image": "inputs/a.png"}),
        ReplyStep(parts=(ReplyPart(type="text", content="Beer 7"),)),
        AnswerStep(content="7"),
    )
    _, call, answer = write_steps("What is it?", trace)
    assert call.reasoning_content == "Look."
    assert call.tool_calls is not None and call.observation is not None
    assert call.tool_calls[0].function_name == "OCR"
    assert call.observation.results[0].source_call_id == call.tool_calls[0].tool_call_id
    assert call.observation.results[0].content == "Beer 7"
    assert answer.message == "7"


@pytest.mark.parametrize("ids", [("a", "b"), ("b", "a"), (None, None)])
def test_calls_of_one_step_are_joined_with_their_results_by_id(ids: tuple[str | None, ...]) -> None:
    """Two calls were read before their two results, so that only the second had a result."""
    written = {
        "step_id": 1,
        "source": "agent",
        "message": "Both.",
        "tool_calls": [
            {"tool_call_id": one, "function_name": one, "arguments": {}} for one in ("a", "b")
        ],
        "observation": {
            "results": [
                {"source_call_id": one, "content": f"of {one or place}"}
                for place, one in zip(("a", "b"), ids, strict=True)
            ]
        },
    }
    assert read_steps([AtifStep.model_validate(written)]) == (
        CallStep(name="a", arguments={}),
        ReplyStep(parts=(ReplyPart(type="text", content="of a"),)),
        CallStep(name="b", arguments={}),
        ReplyStep(parts=(ReplyPart(type="text", content="of b"),)),
    )


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"source": "system", "message": "Be good."}, ()),
        ({"source": "agent", "message": "Seven."}, (AnswerStep(content="Seven."),)),
        ({"source": "agent", "message": ""}, ()),
        ({"source": "agent", "message": [{"type": "text", "text": "7"}]}, ()),
        (
            {
                "source": "agent",
                "message": "I call.",
                "model_name": "m",
                "tool_calls": [{"tool_call_id": "1", "function_name": "f", "arguments": {}}],
                "observation": {"results": [{"content": "done"}, {"content": None}]},
                "extra": {"theirs": 1},
            },
            (
                CallStep(name="f", arguments={}),
                ReplyStep(parts=(ReplyPart(type="text", content="done"),)),
                ReplyStep(),
            ),
        ),
    ],
)
def test_trajectories_of_others_are_read_as_far_as_they_go(
    written: dict[str, object], read: Trace
) -> None:
    step = AtifStep.model_validate_json(json.dumps({"step_id": 1, **written}))
    assert read_steps([step]) == read


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], ["a", "b"]),
        ([{"type": "text", "text": "a"}, {"type": "image", "source": {"path": "x.png"}}], []),
        (None, []),
    ],
)
def test_a_result_with_parts_is_read_if_all_of_them_are_texts(
    content: JsonValue, texts: list[str]
) -> None:
    call = AtifCall(tool_call_id="c", function_name="OCR", arguments={})
    results = (AtifResult(source_call_id="c", content=content),)
    step = AtifStep(
        step_id=1,
        source="agent",
        message="",
        tool_calls=(call,),
        observation=AtifObservation(results=results),
    )
    _, reply = read_steps([step])
    assert isinstance(reply, ReplyStep)
    assert [part.content for part in reply.parts] == texts
