"""Read the traces of a file, whose format is found from its content."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue

from gta_bench.authoring.traces.dialogues import observe_spans
from gta_bench.authoring.traces.observed import ObservedTrace
from gta_bench.authoring.traces.spans import OTLP_KEYS, group_spans, is_span, read_otlp
from gta_bench.authoring.traces.trajectories import read_trajectory
from gta_bench.errors import UsageError, format_count, suggest_name

LARGEST: Final = 256 << 20
_PACKED: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PAR1": "Parquet"}
_KNOWN: Final = (
    "an Inspect log (.eval or .json), an ATIF trajectory, or spans with OpenInference's or "
    "OpenTelemetry's GenAI attributes as JSON (OTLP, or one span for each object)"
)
_Kind = Literal["an Inspect log", "ATIF", "spans", "something else"]


class FoundTrace(NamedTuple):
    """A trace of a file, which is read when it is needed."""

    id: str
    read: Callable[[], ObservedTrace]


class TraceList(NamedTuple):
    """The traces of a file, and how many others in it are of no agent."""

    found: Sequence[FoundTrace]
    others: int = 0

    def pick(self, names: Sequence[str], file: Path) -> list[FoundTrace]:
        """Return the traces with these ids; the beginning of an id is enough if only one has it."""
        chosen: dict[str, FoundTrace] = {}
        for name in names:
            same = [one for one in self.found if one.id == name]
            same = same or [one for one in self.found if one.id.startswith(name)]
            if len(same) != 1:
                known = [one.id for one in self.found]
                problem = "several traces begin" if same else "there is no trace"
                raise UsageError(f"{file}: {problem} with {name!r}{suggest_name(name, known)}")
            chosen[same[0].id] = same[0]
        return list(chosen.values())


def find_traces(file: Path) -> TraceList:
    """Find the traces of a file; raises UsageError with what was found and what to do."""
    # Inspect takes a second to import, and most traces are not its logs.
    with file.open("rb") as stream:
        head = stream.read(4)
    if head.startswith(b"PK"):
        return _find_samples(file)
    size = file.stat().st_size
    if size > LARGEST:
        raise UsageError(
            f"{file} has {size >> 20} MiB; at most {LARGEST >> 20} are read. Export fewer traces "
            "into a file."
        )
    values = list(_read_values(file))
    kinds = Counter(map(_classify, values))
    if not values or "something else" in kinds:
        other = next((one for one in values if _classify(one) == "something else"), None)
        raise UsageError(f"{file} has {_describe(other)}. A trace is {_KNOWN}.")
    if len(kinds) > 1 or (kinds["an Inspect log"] > 1):
        listed = ", ".join(f"{count} of {kind}" for kind, count in kinds.items())
        raise UsageError(f"{file} mixes formats: {listed}. Put each into a file of its own.")
    if "an Inspect log" in kinds:
        from gta_bench.authoring.traces.inspect_logs import read_json_log

        return TraceList(_name_apart([*map(_wrap, read_json_log(file))]))
    if "ATIF" in kinds:
        return TraceList(_name_apart([*_read_trajectories(file, values)]))
    return _find_span_traces(file, values)


def _find_samples(file: Path) -> TraceList:
    from gta_bench.authoring.traces.inspect_logs import (
        is_inspect_archive,
        list_samples,
        read_sample,
    )

    if not is_inspect_archive(file):
        raise UsageError(f"{file} is an archive and no Inspect log. A trace is {_KNOWN}.")
    names = list_samples(file)
    if not names:
        raise UsageError(f"{file} is an Inspect log without samples. Choose another one.")
    return TraceList([FoundTrace(name, partial(read_sample, file, name)) for name in names])


def _read_trajectories(file: Path, values: Sequence[JsonValue]) -> Iterator[FoundTrace]:
    for number, value in enumerate(values, 1):
        try:
            yield _wrap(read_trajectory(value, number))
        except UsageError as exc:
            raise UsageError(f"{file} {exc}. Export it again.") from exc


def _find_span_traces(file: Path, values: Sequence[JsonValue]) -> TraceList:
    groups = group_spans(_list_spans(values))
    read = [observe_spans(name, spans) for name, spans in groups.items()]
    found = [_wrap(one) for one in read if one is not None]
    if not found:
        count = format_count(len(groups), "trace")
        raise UsageError(
            f"{file} has {count} of spans, and none is of an agent: no span has "
            "`gen_ai.operation.name` or `openinference.span.kind`. Export the spans of the agent."
        )
    return TraceList(found, len(groups) - len(found))


def _wrap(trace: ObservedTrace) -> FoundTrace:
    return FoundTrace(trace.id, lambda: trace)


def _name_apart(found: Sequence[FoundTrace]) -> list[FoundTrace]:
    """Number traces that have the same id."""
    seen: Counter[str] = Counter()
    named = []
    for one in found:
        seen[one.id] += 1
        number = seen[one.id]
        named.append(one if number == 1 else one._replace(id=f"{one.id}-{number}"))
    return named


def _read_values(file: Path) -> Iterator[JsonValue]:
    """Yield the JSON values of a file: one, one in each line, or one after another.

    A list, and the list `data` or `spans` of an object, is its items.
    """
    data = file.read_bytes()
    packed = next((name for mark, name in _PACKED.items() if data.startswith(mark)), None)
    if packed is not None:
        raise UsageError(f"{file} is {packed}. Unpack it, or export JSON. A trace is {_KNOWN}.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise UsageError(
            f"{file} is not text. Spans in protobuf are not read: let the exporter or the "
            f"collector write JSON. A trace is {_KNOWN}."
        ) from exc
    decoder = json.JSONDecoder(parse_constant=str)
    place = 0
    while (place := _skip_space(text, place)) < len(text):
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as exc:
            line = text.count("\n", 0, place) + 1
            what = "nests too deeply" if isinstance(exc, RecursionError) else "is not JSON"
            raise UsageError(
                f"{file}, the value that begins in line {line} {what}. A trace is {_KNOWN}."
            ) from exc
        yield from _unwrap(value)


def _skip_space(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n,\x1e":
        place += 1
    return place


def _unwrap(value: JsonValue) -> Iterator[JsonValue]:
    if isinstance(value, dict) and not _is_known(value):
        inner = next((value[key] for key in ("data", "spans") if key in value), None)
        value = inner if isinstance(inner, list) else value
    if isinstance(value, list):
        yield from value
    else:
        yield value


def _is_known(value: dict[str, JsonValue]) -> bool:
    return _classify(value) != "something else"


def _classify(value: JsonValue) -> _Kind:
    if not isinstance(value, dict):
        return "something else"
    if str(value.get("schema_version") or "").startswith("ATIF"):
        return "ATIF"
    if "eval" in value and "version" in value and "status" in value:
        return "an Inspect log"
    return "spans" if any(key in value for key in OTLP_KEYS) or is_span(value) else "something else"


def _describe(value: JsonValue) -> str:
    """Say what a value is that is not a trace."""
    if value is None:
        return "no trace"
    if not isinstance(value, dict):
        return f"JSON that is no object ({type(value).__name__})"
    keys = ", ".join(repr(key[:40]) for key in list(value)[:6])
    return f"an object that is no trace (its keys: {keys or 'none'})"


def _list_spans(values: Sequence[JsonValue]) -> Iterator[dict[str, JsonValue]]:
    for value in values:
        if isinstance(value, dict):
            yield from [value] if is_span(value) else read_otlp(value)
