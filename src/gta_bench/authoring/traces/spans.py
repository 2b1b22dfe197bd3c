"""Spans of OpenTelemetry, in the JSON forms that exporters and backends write.

Those are OTLP's (`resourceSpans`), the SDK's console exporter's, and Phoenix's. Ids are only
compared, so that their spelling (hex, base64) does not matter.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from pydantic import JsonValue

_JsonObject = dict[str, JsonValue]
OTLP_KEYS: Final = ("resourceSpans", "resource_spans")
_SCOPES: Final = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_FAILED: Final = ("ERROR", "STATUS_CODE_ERROR", "2")
# Limits that SDKs and collectors are commonly given; values of that length were probably cut.
_USUAL_LIMITS: Final = frozenset(
    size + more
    for size in (128, 250, 255, 256, 500, 512, 1000, 1024, 2000, 2048, 4000, 4095, 4096, 5000)
    for more in (0, 3)
) | {8191, 8192, 10_000, 12_000, 12_288, 16_384, 20_000, 32_000, 32_766, 32_768, 65_535, 65_536}
_MARKS_OF_CUTS: Final = ("[truncated]", "<truncated>", "(truncated)", "...truncated")
_SHORTEST_CUT: Final = 100


class ReadSpan(NamedTuple):
    """One span; `error` is None unless it failed. `start` orders the spans of a trace."""

    trace: str
    id: str
    parent: str
    name: str
    start: tuple[int, int]
    attributes: Mapping[str, JsonValue]
    error: str | None = None
    dropped: int = 0

    def text(self, key: str) -> str | None:
        """Return an attribute that is a text with something in it."""
        value = self.attributes.get(key)
        return value if isinstance(value, str) and value else None


def is_span(value: _JsonObject) -> bool:
    """Whether an object has the form of a span."""
    return _find_ids(value) is not None and "name" in value


def read_otlp(value: _JsonObject) -> Iterator[_JsonObject]:
    """Yield the spans of an OTLP request."""
    for resource in _list(value, OTLP_KEYS):
        for scope in _list(resource, _SCOPES):
            yield from _list(scope, ("spans",))


def group_spans(values: Iterable[_JsonObject]) -> dict[str, list[ReadSpan]]:
    """Return the spans of each trace in the order in which they began.

    Exporters that try again send a span twice; the one with more attributes counts.
    """
    found: dict[str, dict[str, ReadSpan]] = {}
    for number, value in enumerate(values):
        span = _read_span(value, number)
        if span is None:
            continue
        trace = found.setdefault(span.trace, {})
        before = trace.get(span.id)
        if before is None or len(before.attributes) < len(span.attributes):
            trace[span.id] = span
    return {
        name: sorted(spans.values(), key=lambda span: span.start) for name, spans in found.items()
    }


class CutFinder:
    """Decides which texts of a trace were cut when they were stored.

    SDKs cut long values without a mark. So the longest values count as cut if their length is a
    usual limit, or if two different values have it.
    """

    def __init__(self, spans: Iterable[ReadSpan]) -> None:
        texts = {
            value
            for span in spans
            for value in span.attributes.values()
            if isinstance(value, str) and len(value) >= _SHORTEST_CUT
        }
        lengths = Counter(map(len, texts))
        longest = max(lengths, default=0)
        is_limit = longest in _USUAL_LIMITS or lengths[longest] > 1
        self.limit = longest if longest and is_limit else None

    def is_cut(self, text: JsonValue) -> bool:
        """Whether an attribute was cut, or ends with a mark that says so."""
        if not isinstance(text, str):
            return False
        marked = len(text) >= _SHORTEST_CUT and text.rstrip().endswith(_MARKS_OF_CUTS)
        return marked or (self.limit is not None and len(text) == self.limit)


def _read_span(value: _JsonObject, number: int) -> ReadSpan | None:
    ids = _find_ids(value)
    if ids is None:
        return None
    attributes = _read_attributes(value.get("attributes"))
    events = [one for one in _list(value, ("events",)) if isinstance(one, dict)]
    raised = None
    for event in events:
        details = _read_attributes(event.get("attributes"))
        if event.get("name") == "exception":
            raised = details.get("exception.message") or details.get("exception.type")
        # Content may be in an event of the span instead of its attributes.
        for key, one in details.items():
            if key.startswith("gen_ai."):
                attributes.setdefault(key, one)
    began = _first(value, ("startTimeUnixNano", "start_time_unix_nano", "start_time"))
    parent = _first(value, ("parentSpanId", "parent_span_id", "parent_id"))
    dropped = _first(value, ("droppedAttributesCount", "dropped_attributes_count"))
    return ReadSpan(
        trace=ids[0],
        id=ids[1],
        parent=parent if isinstance(parent, str) else "",
        name=str(value.get("name") or ""),
        start=(_read_time(began), number),
        attributes=attributes,
        error=_read_error(value, attributes, raised),
        dropped=dropped if isinstance(dropped, int) else 0,
    )


def _find_ids(value: _JsonObject) -> tuple[str, str] | None:
    """Return the ids of the trace and the span."""
    context = value.get("context")
    place = context if isinstance(context, dict) else value
    trace = _first(place, ("traceId", "trace_id"))
    span = _first(place, ("spanId", "span_id"))
    return (trace, span) if isinstance(trace, str) and isinstance(span, str) else None


def _read_error(
    value: _JsonObject, attributes: Mapping[str, JsonValue], raised: JsonValue
) -> str | None:
    status = value.get("status")
    about = status if isinstance(status, dict) else {}
    code = _first(about, ("code", "status_code")) or value.get("status_code")
    kind = attributes.get("error.type")
    if str(code) not in _FAILED and kind is None:
        return None
    said = _first(about, ("message", "description")) or value.get("status_message")
    return next((str(one) for one in (said, raised, kind) if one), "The call failed.")


def _read_time(value: JsonValue) -> int:
    """Return nanoseconds since 1970; 0 without a time, so that the order of the file counts."""
    if isinstance(value, int | float):
        return int(value)
    if not isinstance(value, str):
        return 0
    if value.isdecimal() and len(value) < 30:
        return int(value)
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return 0
    since = (when if when.tzinfo else when.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000


def _read_attributes(found: JsonValue) -> _JsonObject:
    """Return attributes by dotted names, from OTLP's pairs, or from flat or nested objects."""
    if isinstance(found, list):
        pairs = [one for one in found if isinstance(one, dict)]
        found = {str(one.get("key")): _read_value(one.get("value")) for one in pairs}
    flat: _JsonObject = {}
    if isinstance(found, dict):
        _flatten(found, "", flat)
    return flat


def _flatten(value: JsonValue, name: str, into: _JsonObject) -> None:
    """Name each part of a value, and the value as a whole, because contents are structured, too."""
    if name:
        into[name] = value
    if isinstance(value, dict):
        for key, one in value.items():
            _flatten(one, f"{name}.{key}" if name else key, into)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            if isinstance(one, dict):
                _flatten(one, f"{name}.{number}", into)


def _read_value(value: JsonValue) -> JsonValue:
    """Read one value of OTLP."""
    if not isinstance(value, dict):
        return value
    for key, one in value.items():
        match key.replace("_", "").lower():
            case "intvalue":
                return int(one) if isinstance(one, str) and one.lstrip("-").isdecimal() else one
            case "arrayvalue":
                return [_read_value(item) for item in _items(one)]
            case "kvlistvalue":
                pairs = (item for item in _items(one) if isinstance(item, dict))
                return {str(item.get("key")): _read_value(item.get("value")) for item in pairs}
            case _:
                return one
    return None


def _items(value: JsonValue) -> list[JsonValue]:
    found = value.get("values") if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _first(value: _JsonObject, keys: Iterable[str]) -> JsonValue:
    return next((value[key] for key in keys if value.get(key) is not None), None)


def _list(value: JsonValue, keys: Iterable[str]) -> list[_JsonObject]:
    """Return the objects in a list that has one of these names."""
    found = _first(value, keys) if isinstance(value, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
