"""Where scores go besides the spans: log records, or a backend that takes none, by its own call.

MLflow and Phoenix show scores beside a trace, but have no endpoint for log records (MLflow 3.18,
Phoenix 20). To add a backend, write a class with `send` and add it to `SINKS`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol
from urllib.parse import urlsplit

from pydantic import JsonValue

from gta_bench.errors import EnvironmentProblem
from gta_bench.exports.otlp import FIX, ScoredSpans, call_server, label_score, send_scores
from gta_bench.exports.unit_scores import OneScore
from gta_bench.redaction import current_redactor
from gta_bench.settings import OtlpVariables

SinkName = Literal["logs", "mlflow", "phoenix", "none"]
JSON: Final = "application/json"
# What makes two of MLflow's assessments the same: name, source, leaf, value and error.
_Identity = tuple[str, str, str | None, float | None, str | None]


class ScoreSink(Protocol):
    """Takes the scores of units whose spans were sent before."""

    def check(self) -> None:
        """Raise if the backend takes no scores, before anything is sent."""

    def send(self, units: Sequence[ScoredSpans]) -> None:
        """Send the scores."""


class LogSink:
    """Log records by OpenTelemetry's conventions, for collectors and what is behind them."""

    def __init__(self, otlp: OtlpVariables) -> None:
        self._otlp = otlp

    def check(self) -> None:
        """Send an empty request, which a server must accept."""
        send_scores([], self._otlp)

    def send(self, units: Sequence[ScoredSpans]) -> None:
        """Send a record for each score."""
        send_scores(units, self._otlp)


class NoSink:
    """No scores."""

    def __init__(self, otlp: OtlpVariables) -> None:
        pass

    def check(self) -> None:
        """Accept everything."""

    def send(self, units: Sequence[ScoredSpans]) -> None:
        """Send nothing."""


class MlflowSink:
    """Feedback on MLflow's traces, as `mlflow.log_feedback` sends it."""

    def __init__(self, otlp: OtlpVariables) -> None:
        self._base = f"{_find_origin(otlp)}/api/3.0/mlflow/traces"
        self._headers = otlp.trace_headers

    def check(self) -> None:
        """Accept everything: MLflow tells only when a trace is there."""

    def send(self, units: Sequence[ScoredSpans]) -> None:
        """Send one request for each score; MLflow has none for several.

        MLflow would keep the same score twice, so those that are there are left out.
        """
        for unit, scores in units:
            trace = f"tr-{unit.root.trace.hex()}"
            known = self._read_known(trace) if scores else ()
            for one in scores:
                assessment = _make_feedback(one, trace, unit.root.id.hex(), unit.root.end)
                if _identify(assessment) not in known:
                    body = _dump({"assessment": assessment})
                    self._call("POST", f"{trace}/assessments", body)

    def _read_known(self, trace: str) -> set[_Identity]:
        reply = self._call("GET", trace, b"")
        try:
            known = json.loads(reply)["trace"]["trace_info"].get("assessments", ())
        except (ValueError, LookupError, TypeError) as exc:
            said = f"{self._base}/{trace} did not answer as MLflow 3.6 or newer does. {FIX}"
            raise EnvironmentProblem(said) from exc
        return {_identify(one) for one in known}

    def _call(self, method: str, path: str, body: bytes) -> bytes:
        url = f"{self._base}/{path}"
        return call_server(url, body, self._headers, media_type=JSON, method=method)


class PhoenixSink:
    """Annotations on Phoenix's spans."""

    def __init__(self, otlp: OtlpVariables) -> None:
        self._url = f"{_find_origin(otlp)}/v1/span_annotations"
        self._headers = otlp.trace_headers

    def check(self) -> None:
        """Accept everything: annotations wait in Phoenix until their span is there."""

    def send(self, units: Sequence[ScoredSpans]) -> None:
        """Send all scores in one request; those of a repeated export replace earlier ones."""
        data: list[JsonValue] = [
            _make_annotation(one, unit.root.id.hex()) for unit, scores in units for one in scores
        ]
        if data:
            call_server(self._url, _dump({"data": data}), self._headers, media_type=JSON)


SINKS: Final[Mapping[SinkName, Callable[[OtlpVariables], ScoreSink]]] = {
    "logs": LogSink,
    "mlflow": MlflowSink,
    "phoenix": PhoenixSink,
    "none": NoSink,
}


def _find_origin(otlp: OtlpVariables) -> str:
    """Return the address of the server without its endpoint of traces."""
    parts = urlsplit(otlp.traces or "")
    return f"{parts.scheme}://{parts.netloc}{parts.path.removesuffix('/v1/traces')}"


def _dump(value: JsonValue) -> bytes:
    return current_redactor().json(json.dumps(value).encode())


def _find_source(one: OneScore) -> tuple[Literal["CODE", "LLM"], str]:
    """Return who scored: code, or a judge."""
    if one.judge is None or one.by_check:
        return "CODE", "gta-bench"
    return "LLM", one.judge


def _identify(assessment: Mapping[str, Any]) -> _Identity:
    feedback = assessment.get("feedback") or {}
    return (
        assessment["assessment_name"],
        assessment["source"]["source_id"],
        assessment.get("metadata", {}).get("leaf"),
        feedback.get("value"),
        (feedback.get("error") or {}).get("error_code"),
    )


def _make_feedback(one: OneScore, trace: str, span: str, when: int) -> dict[str, JsonValue]:
    kind, who = _find_source(one)
    at = datetime.fromtimestamp(when / 1e9, UTC).isoformat().replace("+00:00", "Z")
    if one.cause is not None:
        feedback: JsonValue = {"error": {"error_code": one.cause, "error_message": one.reason}}
    else:
        feedback = {"value": _round(one)}
    return {
        "assessment_name": one.name,
        "trace_id": trace,
        "span_id": span,
        "source": {"source_type": "LLM_JUDGE" if kind == "LLM" else kind, "source_id": who},
        "create_time": at,
        "last_update_time": at,
        "feedback": feedback,
        "rationale": _explain(one),
        "metadata": _describe(one),
        "valid": True,
    }


def _make_annotation(one: OneScore, span: str) -> JsonValue:
    result: dict[str, JsonValue] = {"explanation": _explain(one)}
    if one.cause is not None:
        result["label"] = f"no score: {one.cause}"
    else:
        result["score"] = _round(one)
        if one.passed is not None:
            result["label"] = label_score(one)
    return {
        "span_id": span,
        "name": one.name,
        "annotator_kind": _find_source(one)[0],
        "identifier": " ".join(part for part in (one.judge, one.leaf) if part is not None),
        "result": result,
        "metadata": dict(_describe(one)),
    }


def _explain(one: OneScore) -> str:
    """Return the reason; pages show all leaves under one name, so theirs begins with the leaf."""
    return one.reason if one.leaf is None else f"{one.leaf}: {one.reason}"


def _round(one: OneScore) -> float | None:
    """Return the value with as many digits as a page can show."""
    return None if one.value is None else round(one.value, 4)


def _describe(one: OneScore) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {"max_score": f"{one.top:g}"}
    if one.leaf is not None:
        found["leaf"] = one.leaf
    if one.passed is not None:
        found["outcome"] = label_score(one)
    return found
