"""A unit as a sample of Every Eval Ever: its dialogue, its score, what it used.

Reference answers stay out: a published one would be in the next model's training data.
"""

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256

from pydantic import JsonValue

from gta_bench.exports.unit_scores import OneScore
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    ReplyStep,
    ThoughtStep,
)
from gta_bench.records.units import AtomicUnit, WorkflowUnit

_Object = dict[str, JsonValue]


def format_sample(
    unit: AtomicUnit | WorkflowUnit, main: OneScore, others: Sequence[OneScore]
) -> _Object:
    """Return a sample without the ids that link it to its record."""
    request, usage = unit.task.request, unit.usage
    messages = [
        {"turn_idx": place, **message}
        for place, message in enumerate(_list_messages(request, unit.trace or ()))
    ]
    calls = sum(isinstance(step, CallStep) for step in unit.trace or ())
    turns = sum(message["role"] == "assistant" for message in messages)
    return {
        "sample_id": unit.task.id,
        "sample_hash": sha256(request.encode("utf-8", "replace")).hexdigest(),
        "interaction_type": "agentic",
        "input": {"raw": request, "reference": []},
        "output": None,
        "messages": list[JsonValue](messages),
        "answer_attribution": _attribute_answer(unit.answer, messages),
        "evaluation": {
            "score": main.value,
            "is_correct": bool(main.passed),
            "num_turns": max(1, turns),
            "tool_calls_count": calls,
        },
        "token_usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
        },
        "performance": {"latency_ms": 1000 * usage.seconds},
        "metadata": {
            "epoch": str(unit.epoch),
            **{one.leaf or one.name: _show(one) for one in others},
        },
    }


def _show(one: OneScore) -> str:
    return f"no score: {one.cause}" if one.value is None else f"{one.value:g}"


def _list_messages(request: str, trace: Sequence[PredictedStep]) -> Iterator[_Object]:
    """Yield the dialogue; a reply belongs to the call before it."""
    yield {"role": "user", "content": request}
    number = 0
    for step in trace:
        match step:
            case ThoughtStep():
                yield {"role": "assistant", "content": None, "reasoning_trace": step.content}
            case CallStep():
                number += 1
                call: _Object = {"id": f"call_{number}", "name": step.name}
                call["arguments"] = _write_arguments(step.arguments)
                yield {"role": "assistant", "content": None, "tool_calls": [call]}
                if step.error is not None:
                    said = step.error.message or step.error.type
                    yield {"role": "tool", "content": said, "tool_call_id": [f"call_{number}"]}
            case ReplyStep():
                text = "\n".join(part.content for part in step.parts)
                if text:
                    yield {"role": "tool", "content": text, "tool_call_id": [f"call_{number}"]}
            case AnswerStep() | MalformedStep():
                yield {"role": "assistant", "content": step.content}


def _write_arguments(arguments: JsonValue) -> _Object:
    """Return arguments as the format wants them: an object whose values are texts."""
    if not isinstance(arguments, dict):
        return {} if arguments is None else {"raw": _write_text(arguments)}
    return {key: _write_text(value) for key, value in arguments.items()}


def _write_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _attribute_answer(answer: str, messages: Sequence[_Object]) -> list[JsonValue]:
    """Say which message has the answer; none if there is no answer."""
    places = [one["turn_idx"] for one in messages[1:] if answer and one["content"] == answer]
    if not places:
        return []
    return [
        {
            "turn_idx": places[-1],
            "source": "messages[turn_idx].content",
            "extracted_value": answer,
            "extraction_method": "last answer to the user",
            "is_terminal": True,
        }
    ]
