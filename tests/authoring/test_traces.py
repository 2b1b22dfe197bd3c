"""What readers make of spans that lack something, contradict each other, or are unusual."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from gta_bench.authoring.from_trace import TraceOrigin, write_draft
from gta_bench.authoring.traces.files import find_traces
from gta_bench.authoring.traces.observed import ObservedTrace, read_data_address, read_definition
from tests.authoring import trace_cases as cases
from tests.authoring.trace_cases import PNG, chat, made_call, message, otlp, span, text

TRACE = "ab" * 16
KIND = "openinference.span.kind"
USER = message("user", text(cases.ASKED))


def observe(tmp_path: Path, *spans: dict[str, Any]) -> ObservedTrace:
    file = cases.write_lines(tmp_path / "spans.json", [otlp(*spans)])
    (found,) = find_traces(file).found
    return found.read()


def states(trace: ObservedTrace, tmp_path: Path) -> dict[str, str]:
    made = write_draft(trace, tmp_path / "tasks" / "t", TraceOrigin("f", "0"))
    return {name: field.state for name, field in made.draft.fields.items()}


def test_messages_that_were_cut_are_missing_and_not_half_a_request(tmp_path: Path) -> None:
    asked = message("user", text("Sum up all of this: " + "x" * 3000))
    found = chat([asked], [message("assistant", text("12"))])
    found["gen_ai.input.messages"] = found["gen_ai.input.messages"][:2048]
    trace = observe(tmp_path, span(TRACE, 1, found, droppedAttributesCount=3))
    assert (trace.request, trace.answer) == (None, "12")
    assert "1 span with values that were probably cut at 2048 characters." in trace.notes
    assert "3 attributes of spans were dropped before the export." in trace.notes
    assert states(trace, tmp_path)["request"] == "missing"


def test_a_request_that_was_cut_itself_is_missing(tmp_path: Path) -> None:
    prefix = "llm.input_messages.0.message"
    found = {KIND: "LLM", f"{prefix}.role": "user", f"{prefix}.content": "x " * 512}
    trace = observe(tmp_path, span(TRACE, 1, found))
    assert trace.is_cut and states(trace, tmp_path)["request"] == "missing"


def test_pictures_and_texts_of_openinference_are_read_part_by_part(tmp_path: Path) -> None:
    prefix = "llm.input_messages.0.message"
    address = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    found = {
        KIND: "LLM",
        f"{prefix}.role": "user",
        f"{prefix}.contents.0.message_content.text": cases.ASKED,
        f"{prefix}.contents.1.message_content.image.image.url": address,
        f"{prefix}.contents.2.message_content.image.image.url": "https://example.org/a.png",
        "output.value": "12",
    }
    trace = observe(tmp_path, span(TRACE, 1, found))
    assert (trace.request, trace.answer) == (cases.ASKED, "12")
    assert [(one.name, one.data) for one in trace.files] == [
        ("image", PNG),
        ("https://example.org/a.png", None),
    ]
    assert states(trace, tmp_path)["inputs"] == "missing"


def test_a_chain_without_messages_has_its_plain_input(tmp_path: Path) -> None:
    chain = {KIND: "CHAIN", "input.value": cases.ASKED, "output.value": "12"}
    trace = observe(tmp_path, span(TRACE, 1, chain), span(TRACE, 2, {KIND: "RETRIEVER"}, parent=1))
    assert (trace.request, trace.answer, trace.format) == (cases.ASKED, "12", "OpenInference")
    data = {KIND: "CHAIN", "input.value": json.dumps({"question": cases.ASKED})}
    assert observe(tmp_path, span(TRACE, 1, data)).request is None


def test_calls_that_could_be_confused_are_not_joined(tmp_path: Path) -> None:
    both = [cases.asked_call("p", store=7), cases.asked_call("q", store=8)]
    spans = [span(TRACE, 1, chat([USER], [message("assistant", *both)]))]
    spans += [span(TRACE, number, made_call(None)) for number in (2, 3)]
    calls = observe(tmp_path, *spans).calls
    assert [(call.arguments, call.reply) for call in calls] == [
        *[(None, None)] * 2,
        ({"store": 7}, None),
        ({"store": 8}, None),
    ]
    assert observe(tmp_path, *spans[:2]).calls[0].arguments is None
    one = span(TRACE, 1, chat([USER], [message("assistant", both[0])]))
    (call,) = observe(tmp_path, one, spans[1]).calls
    assert call.arguments == {"store": 7}
    given = {"gen_ai.tool.call.arguments": {"store": 8}}  # not as text
    first, second = observe(tmp_path, spans[0], span(TRACE, 2, made_call(None, **given))).calls
    assert (first.arguments, second.arguments) == ({"store": 8}, {"store": 7})


def test_history_from_before_the_trace_is_not_a_call_of_it(tmp_path: Path) -> None:
    before = [
        message("user", text("An earlier question.")),
        message("assistant", cases.asked_call("old", store=1)),
        message("tool", cases.answered_call("old", "none")),
    ]
    found = chat([*before, USER], [message("assistant", text("12"))])
    trace = observe(tmp_path, span(TRACE, 1, found))
    assert (trace.calls, trace.turns) == ((), 2)
    assert states(trace, tmp_path)["request"] == "inferred"


def test_the_reply_that_the_model_saw_counts(tmp_path: Path) -> None:
    asked = message("assistant", cases.asked_call("p", store=7))
    reply = message("tool", cases.answered_call("p", "12 crates"))
    result = {"gen_ai.tool.call.result": "content='12 crates' name='stock'"}
    trace = observe(
        tmp_path,
        span(TRACE, 1, chat([USER], [asked])),
        span(TRACE, 2, made_call("p", **result)),
        span(TRACE, 3, chat([USER, asked, reply], [message("assistant", text("12"))])),
    )
    (call,) = trace.calls
    assert call.reply is not None and call.reply[0].content == "12 crates"


def test_tools_with_other_schemas_or_names_are_noted(tmp_path: Path) -> None:
    other = {"gen_ai.tool.definitions": json.dumps([{"name": "stock", "parameters": {}}])}
    strange = {"gen_ai.tool.definitions": [{"name": "look up!"}, {"name": "look up?"}, {"x": 1}]}
    changes: list[dict[str, Any]] = [{}, other, strange]
    spans = [
        span(TRACE, number, chat([USER], [], **more)) for number, more in enumerate(changes, 1)
    ]
    trace = observe(tmp_path, *spans)
    assert trace.notes == ("stock has several schemas in the trace; the last one counts.",)
    made = write_draft(trace, tmp_path / "tasks" / "t", TraceOrigin("f", "0"))
    toml = (made.folder / "task.toml").read_text()
    assert 'tools = ["trace__stock", "trace__look-up", "trace__look-up-2"]' in toml
    note = made.draft.fields["tools"].note
    assert "No schema in the trace, made from the calls: look up!, look up?." in note
    assert "Names that models do not accept were changed" in note


@pytest.mark.parametrize("time", [None, "soon", "2026-11-18T00:00:00", 17.5, True])
def test_spans_without_a_usable_time_keep_the_order_of_the_file(time: Any, tmp_path: Path) -> None:
    spans = [
        span(
            TRACE,
            9 - store,
            made_call(None, **{"gen_ai.tool.call.arguments": json.dumps({"n": store})}),
        )
        | {"startTimeUnixNano": time}
        for store in (1, 2)
    ]
    assert [call.arguments for call in observe(tmp_path, *spans).calls] == [{"n": 1}, {"n": 2}]


def test_what_is_no_definition_or_data_is_none() -> None:
    assert read_definition("no JSON") is None
    assert read_definition({"function": {"name": ""}}) is None
    assert read_data_address("data:image/png;base64,???") is None
    assert read_data_address("https://example.org/a.png") is None
