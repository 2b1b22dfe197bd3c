"""Traces and scores over OTLP, received on the official protobuf classes."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai.model import ChatMessage, ModelOutput
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from gta_bench.cli import app
from gta_bench.errors import EnvironmentProblem
from gta_bench.exports import otel, otlp, score_sinks
from gta_bench.exports.spans import GenAiSpan, UnitSpans
from gta_bench.exports.unit_scores import OneScore
from gta_bench.records.steps import AnswerStep, CallStep, ReplyPart, ReplyStep, write_trace
from gta_bench.running.system_run import execute
from gta_bench.runs.directory import log_folder
from gta_bench.runs.logs import model_events, read_whole_samples
from gta_bench.settings import read_otlp_variables
from tests.builders import atomic_task, write_atomic
from tests.otlp_server import OtlpServer, read_attributes, serving
from tests.tasks.test_atomic_step import native_call, said
from tests.tasks.workflow_runs import judge_by_words, scripted, wanted, write_dataset, write_page

pytestmark = pytest.mark.usefixtures("loopback")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OtlpServer]:
    for name in ("ENDPOINT", "TRACES_ENDPOINT", "LOGS_ENDPOINT", "HEADERS"):
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{name}", raising=False)
    with serving() as server:
        yield server


def export(run: Path, server: OtlpServer, *options: str) -> Result:
    command = ["export", "otel", str(run), "--endpoint", server.url, *options]
    return CliRunner().invoke(app, command)


def exported(run: Path, server: OtlpServer, *options: str) -> str:
    result = export(run, server, *options)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def by_trace(server: OtlpServer) -> dict[bytes, list[Span]]:
    found: dict[bytes, list[Span]] = {}
    for span in server.spans:
        found.setdefault(span.trace_id, []).append(span)
    return found


def test_a_unit_is_a_trace_of_the_agent_its_model_calls_and_its_tool_calls(
    judged: Path, server: OtlpServer
) -> None:
    assert "Sent 2 units (8 spans, 8 scores)" in exported(judged, server)
    traces = by_trace(server)
    assert len(traces) == 2
    for spans in traces.values():
        root, *below = spans
        assert [span.name for span in spans] == [
            "invoke_agent toolcalling",
            "chat model",
            "execute_tool HtmlFileGenerator",
            "chat model",
        ]
        assert root.parent_span_id == b"" and {span.parent_span_id for span in below} == {
            root.span_id
        }
        assert [span.kind for span in spans] == [
            *(Span.SPAN_KIND_INTERNAL, Span.SPAN_KIND_CLIENT),
            *(Span.SPAN_KIND_INTERNAL, Span.SPAN_KIND_CLIENT),
        ]
        assert len({span.span_id for span in spans}) == 4
        first, tool, second = below
        assert root.start_time_unix_nano <= first.start_time_unix_nano
        assert first.end_time_unix_nano <= tool.start_time_unix_nano < tool.end_time_unix_nano
        assert second.end_time_unix_nano <= root.end_time_unix_nano
    about = read_attributes(server.traces[0].resource_spans[0].resource.attributes)
    assert about == {"service.name": "gta-bench", "gta.run": "run"}


def test_times_are_those_of_the_log(judged: Path, server: OtlpServer) -> None:
    exported(judged, server, "--scores", "none")
    wanted = {
        round(event.timestamp.timestamp() * 1e6)
        for sample in read_whole_samples(log_folder(judged))
        for event in model_events(sample)
    }
    found = {
        span.start_time_unix_nano // 1000
        for span in server.spans
        if span.kind == Span.SPAN_KIND_CLIENT
    }
    assert found == wanted and not server.logs


def test_attributes_follow_the_conventions(judged: Path, server: OtlpServer) -> None:
    exported(judged, server)
    root, chat, tool, _ = by_trace(server).popitem()[1]
    found = read_attributes(root.attributes)
    assert found["gen_ai.operation.name"] == "invoke_agent"
    assert found["gen_ai.provider.name"] == "mockllm"
    assert found["gen_ai.agent.name"] == "toolcalling"
    assert (found["gta.dataset"], found["gta.epoch"]) == ("workflow", 1)
    assert found["gen_ai.conversation.id"] in ("run/1.1", "run/2.1")
    found = read_attributes(chat.attributes)
    assert found["gen_ai.operation.name"] == "chat"
    assert found["gen_ai.request.model"] == "model"
    assert found["gen_ai.response.finish_reasons"] == ["tool_call"]
    assert isinstance(found["gen_ai.usage.input_tokens"], int)
    found = read_attributes(tool.attributes)
    assert found["gen_ai.operation.name"] == "execute_tool"
    assert found["gen_ai.tool.name"] == "HtmlFileGenerator"
    assert found["gen_ai.tool.call.id"]


def test_no_text_leaves_the_machine_unless_asked_for(judged: Path, server: OtlpServer) -> None:
    exported(judged, server, "--scores", "none")
    sent = b"".join(one.SerializeToString() for one in server.traces)
    assert b"animals" not in sent and b"quokka" not in sent
    server.traces.clear()
    exported(judged, server, "--scores", "none", "--content")
    root, chat, tool, last = by_trace(server).popitem()[1]
    asked = json.loads(read_attributes(root.attributes)["gen_ai.input.messages"])
    assert asked == [
        {"role": "user", "parts": [{"type": "text", "content": "Write a page about animals."}]}
    ]
    said = json.loads(read_attributes(root.attributes)["gen_ai.output.messages"])
    assert said[0]["parts"] == [{"type": "text", "content": "Done."}]
    [reply] = json.loads(read_attributes(chat.attributes)["gen_ai.output.messages"])
    call = reply["parts"][-1]
    assert (call["type"], call["name"]) == ("tool_call", "HtmlFileGenerator")
    found = read_attributes(tool.attributes)
    assert json.loads(found["gen_ai.tool.call.arguments"])["html_code"] == "<p>quokka</p>"
    assert "page.html" in found["gen_ai.tool.call.result"]
    history = json.loads(read_attributes(last.attributes)["gen_ai.input.messages"])
    assert history[-1]["parts"][0]["type"] == "tool_call_response"
    [definition] = json.loads(read_attributes(chat.attributes)["gen_ai.tool.definitions"])
    assert (definition["type"], definition["name"]) == ("function", "HtmlFileGenerator")


def test_scores_are_log_records_of_the_agents_span(judged: Path, server: OtlpServer) -> None:
    exported(judged, server)
    root = by_trace(server).popitem()[1][0]
    own = [record for record in server.records if record.trace_id == root.trace_id]
    assert {record.event_name for record in own} == {"gen_ai.evaluation.result"}
    assert {record.span_id for record in own} == {root.span_id}
    assert {record.time_unix_nano for record in own} == {root.end_time_unix_nano}
    task, first, second, _ = (read_attributes(record.attributes) for record in own)
    assert task["gen_ai.evaluation.name"] == "root_score"
    assert task["gen_ai.evaluation.score.label"] == "fail"
    assert first["gen_ai.evaluation.name"] == "leaf_score cp1-1"
    assert first["gen_ai.evaluation.score.value"] == 10
    assert (first["gta.judge"], first["gta.leaf"]) == ("scripted", "cp1-1")
    assert second["gen_ai.evaluation.score.label"] == "fail"
    assert second["gen_ai.evaluation.explanation"] == "the wombat was looked for"


def test_the_same_run_gives_the_same_spans(judged: Path, server: OtlpServer) -> None:
    exported(judged, server)
    exported(judged, server)
    empty, first, again, second = server.logs
    assert empty == again and not empty.resource_logs
    assert first == second and server.traces[0] == server.traces[1]


def test_mlflow_gets_feedback_for_each_score(judged: Path, server: OtlpServer) -> None:
    exported(judged, server, "--scores", "mlflow")
    root = server.spans[0]
    path, body = server.posted[0]
    trace = f"tr-{root.trace_id.hex()}"
    assert path == f"/api/3.0/mlflow/traces/{trace}/assessments"
    found = body["assessment"]
    assert (found["trace_id"], found["span_id"]) == (trace, root.span_id.hex())
    assert found["assessment_name"] == "root_score"
    assert found["source"] == {"source_type": "LLM_JUDGE", "source_id": "scripted"}
    assert 0 < found["feedback"]["value"] < 7
    leaf = server.posted[2][1]["assessment"]
    assert (leaf["assessment_name"], leaf["feedback"]) == ("leaf_score", {"value": 3})
    assert leaf["rationale"] == "cp1-2: the wombat was looked for"
    assert leaf["metadata"] == {"max_score": "10", "leaf": "cp1-2", "outcome": "fail"}
    assert len(server.posted) == 8 and not server.logs
    # MLflow would keep the same score twice.
    exported(judged, server, "--scores", "mlflow")
    assert len(server.posted) == 8


def test_mlflow_learns_why_there_is_no_score(tmp_path: Path, server: OtlpServer) -> None:
    run = failing(tmp_path)
    judge_by_words(run)
    exported(run, server, "--scores", "mlflow")
    [lost] = [
        body["assessment"] for _, body in server.posted if "error" in body["assessment"]["feedback"]
    ]
    assert lost["feedback"]["error"]["error_code"] == "no_result"
    assert "died" in lost["rationale"]
    server.posted.clear()
    exported(run, server, "--scores", "phoenix")
    [(_, body)] = server.posted
    labels = {one["result"]["label"] for one in body["data"]}
    assert labels == {"pass", "fail", "no score: no_result"}
    exported(run, server)
    kinds = [read_attributes(record.attributes).get("error.type") for record in server.records]
    assert kinds.count("no_result") == 1


def test_phoenix_gets_annotations(judged: Path, server: OtlpServer) -> None:
    exported(judged, server, "--scores", "phoenix")
    [(path, body)] = server.posted
    assert path == "/v1/span_annotations"
    found = {(one["span_id"], one["name"], one["identifier"]): one for one in body["data"]}
    assert len(found) == 8
    one = found[server.spans[0].span_id.hex(), "leaf_score", "scripted cp1-1"]
    assert one["annotator_kind"] == "LLM"
    assert (one["result"]["score"], one["result"]["label"]) == (10, "pass")


def test_headers_and_resource_come_from_the_standard_variables(
    judged: Path, server: OtlpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{server.url}/")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20aGFsbG8=,x-a=1")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "wandb.project=p")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "nightly")
    result = CliRunner().invoke(app, ["export", "otel", str(judged)])
    assert result.exit_code == 0, result.output
    assert {one["authorization"] for one in server.headers} == {"Basic aGFsbG8="}
    assert server.headers[0]["content-type"] == "application/x-protobuf"
    about = read_attributes(server.traces[0].resource_spans[0].resource.attributes)
    assert about == {"service.name": "nightly", "wandb.project": "p", "gta.run": "run"}


def test_a_server_without_log_records_is_refused_before_anything_is_sent(
    judged: Path, server: OtlpServer
) -> None:
    server.statuses["/v1/logs"] = [404]
    result = export(judged, server)
    assert "/v1/logs does not offer this service" in str(result.exception)
    assert "send scores by the API of MLflow or Phoenix, or none" in str(result.exception)
    # A web page is no explanation.
    assert not {*"\n<"} & {*str(result.exception)} and not server.traces


def test_units_are_sent_in_several_requests(
    judged: Path, server: OtlpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otel, "MOST_UNITS", 1)
    exported(judged, server)
    assert [len(_spans(one)) for one in server.traces] == [4, 4]
    monkeypatch.setattr(otel, "MOST_UNITS", 50)
    monkeypatch.setattr(otel, "MOST_CHARACTERS", 10)
    exported(judged, server)
    assert len(server.traces) == 4


def test_a_busy_server_is_asked_again(judged: Path, server: OtlpServer) -> None:
    server.statuses["/v1/traces"] = [503]
    exported(judged, server)
    assert len(server.spans) == 8


@pytest.mark.parametrize(("status", "words"), [(401, "rejected the key"), (400, "(status 400)")])
def test_a_refusal_is_one_line(judged: Path, server: OtlpServer, status: int, words: str) -> None:
    server.statuses["/v1/traces"] = [status]
    problem: Any = export(judged, server).exception
    assert words in str(problem) and "\n" not in str(problem) and problem.exit_code == 3


def test_rejected_spans_are_reported(judged: Path, server: OtlpServer) -> None:
    server.rejected = 3
    problem = str(export(judged, server).exception)
    assert "rejected 3 of the records in one request: too old" in problem


@pytest.mark.parametrize("path", ["/v1/logs", "/v1/traces"])
def test_a_web_page_is_no_reply(judged: Path, server: OtlpServer, path: str) -> None:
    server.statuses[path] = [200]
    problem: Any = export(judged, server).exception
    assert f"{path} did not answer as an OTLP server." in str(problem)
    assert problem.exit_code == 3


def test_a_reply_in_json_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    replies = [b"{}", b'{"partialSuccess": {"rejectedSpans": "3", "errorMessage": "too old"}}']
    monkeypatch.setattr(otlp, "call_server", lambda *_, **__: replies.pop(0))
    variables = read_otlp_variables("http://127.0.0.1:4318")
    otlp.send_spans([], variables)
    with pytest.raises(EnvironmentProblem, match=r"rejected 3 of the records .*: too old"):
        otlp.send_spans([], variables)


def test_mlflow_that_answers_with_a_page_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_sinks, "call_server", lambda *_, **__: b"<!doctype html>")
    span = make_span(name="invoke_agent x")
    unit = UnitSpans(task="0", epoch=1, spans=(span,))
    sink = score_sinks.MlflowSink(read_otlp_variables("http://127.0.0.1:5000"))
    with pytest.raises(EnvironmentProblem, match="did not answer as MLflow"):
        sink.send([otlp.ScoredSpans(unit, [OneScore(name="root_score", value=1.0)])])


def test_a_lone_surrogate_in_a_name_or_an_error_is_replaced() -> None:
    unit = UnitSpans(task="0", epoch=1, spans=(make_span(name="tool \ud800", error="no \udfff"),))
    [resource] = ExportTraceServiceRequest.FromString(otlp.encode_spans([unit], {})).resource_spans
    span = resource.scope_spans[0].spans[0]
    assert (span.name, span.status.message) == ("tool ?", "no ?")


def make_span(**changes: Any) -> GenAiSpan:
    facts: dict[str, Any] = {"kind": "client", "trace": b"t" * 16, "id": b"s" * 8, "parent": None}
    return GenAiSpan(**facts, start=1, end=2, attributes={}, **changes)


def test_nobody_listening_is_one_line(judged: Path) -> None:
    command = ["export", "otel", str(judged), "--endpoint", "http://127.0.0.1:9"]
    result = CliRunner().invoke(app, command)
    assert "http://127.0.0.1:9/v1/logs cannot be reached" in str(result.exception)


def test_a_server_must_be_named(judged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    result = CliRunner().invoke(app, ["export", "otel", str(judged)])
    assert "--endpoint" in str(result.exception)


def test_an_imported_run_has_the_calls_that_it_states(tmp_path: Path, server: OtlpServer) -> None:
    data = write_atomic(tmp_path / "data", {"0": atomic_task()})
    trace = (
        CallStep(name="OCR", arguments={"image": "inputs/menu.jpg"}),
        ReplyStep(parts=(ReplyPart(type="text", content="Beer 7"),)),
        AnswerStep(content="7"),
    )
    file = tmp_path / "predictions.json"
    both = {"prediction": [write_trace(trace)], "gold": [write_trace(trace)]}
    file.write_text(json.dumps({"0": both}))
    run = tmp_path / "run"
    options = ["--mode", "end-to-end", "--data", str(data), "--out", str(run), "--model", "m"]
    began = datetime.now(UTC).timestamp()
    assert CliRunner().invoke(app, ["import", "opencompass", str(file), *options]).exit_code == 0
    exported(run, server, "--scores", "none", "--content")
    root, tool = server.spans
    assert (root.name, tool.name) == ("invoke_agent imported", "execute_tool OCR")
    assert root.start_time_unix_nano / 1e9 == pytest.approx(began, abs=60)
    assert tool.status.code == Status.STATUS_CODE_UNSET
    assert read_attributes(tool.attributes)["gen_ai.tool.call.result"] == "Beer 7"


def failing(folder: Path) -> Path:
    """A run of two tasks: in the first a call is refused, the second fails with its model."""

    def reply(messages: list[ChatMessage]) -> ModelOutput:
        made = [message for message in messages if message.role == "tool"]
        if made and any("second" in message.text for message in messages):
            raise RuntimeError("the model said quokka and died")
        wrong = {"html": "<p>quokka</p>"}
        call = native_call("HtmlFileGenerator", wrong) if not made else write_page("quokka")
        return said("Done.") if len(made) == 2 else call

    data = write_dataset(folder / "data")
    tasks = json.loads((data / "end.json").read_text(encoding="utf-8"))
    tasks["2"]["dialogs"][0]["content"] = "Write the second page."
    (data / "end.json").write_text(json.dumps(tasks), encoding="utf-8")
    execute(*wanted(data), folder / "run", lambda well: None, model=scripted(reply))
    return folder / "run"


def test_failures_are_errors_whose_texts_are_content(tmp_path: Path, server: OtlpServer) -> None:
    run = failing(tmp_path)
    exported(run, server, "--scores", "none")
    exported(run, server, "--scores", "none", "--content")
    bare, full = ({span.span_id: span for span in _spans(one)} for one in server.traces)
    failed = [
        [span.name for span in spans.values() if span.status.code == Status.STATUS_CODE_ERROR]
        for spans in (bare, full)
    ]
    assert failed[0] == failed[1]
    assert sorted(failed[0]) == [
        "chat model",
        "execute_tool HtmlFileGenerator",
        "invoke_agent toolcalling",
    ]
    assert not any(span.status.message for span in bare.values())
    kinds = {
        read_attributes(span.attributes).get("error.type"): span.status.message
        for span in full.values()
    }
    assert "html" in kinds["ARGS_ERROR"] and "died" in kinds["_OTHER"]
    tools = [span for span in full.values() if span.name.startswith("execute_tool")]
    refused, made = sorted(tools, key=lambda span: span.start_time_unix_nano)
    # The tool's time belongs to the call that reached it.
    assert refused.start_time_unix_nano == refused.end_time_unix_nano
    assert made.start_time_unix_nano < made.end_time_unix_nano


def _spans(request: ExportTraceServiceRequest) -> list[Span]:
    return [
        span
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
