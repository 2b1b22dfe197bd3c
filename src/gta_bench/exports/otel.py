"""Export a run to a server that takes OpenTelemetry's traces, with its scores."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from gta_bench.exports.otlp import ScoredSpans, send_spans
from gta_bench.exports.score_sinks import SINKS, SinkName
from gta_bench.exports.spans import make_spans
from gta_bench.exports.unit_scores import UnitScores
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import find_kept_units, read_whole_samples
from gta_bench.runs.store import StorePath
from gta_bench.settings import OtlpVariables

# A server may refuse a request as a whole, so requests are small.
MOST_UNITS: Final = 50
MOST_CHARACTERS: Final = 2_000_000


class SentUnits(NamedTuple):
    """How much was sent: units, spans and scores."""

    units: int = 0
    spans: int = 0
    scores: int = 0


def export_otel(
    run: StorePath,
    otlp: OtlpVariables,
    *,
    sink: SinkName = "logs",
    judge: str | None = None,
    content: bool = False,
    listen: Callable[[int, int], None] = lambda done, total: None,
) -> SentUnits:
    """Send the spans and scores of every unit that was run, a few units in each request.

    Without `content`, no text of a dialogue leaves this machine. `listen` gets the number of units
    that were sent, and of all.
    """
    otlp = otlp._replace(resource={**otlp.resource, "gta.run": run.name})
    target = SINKS[sink](otlp)
    target.check()
    total = sum(not kept.stopped for kept in find_kept_units(log_folder(run)).values())
    sent = SentUnits()
    for batch in _make_batches(_make_units(run, sink, judge, content=content)):
        send_spans([one.unit for one in batch], otlp)
        target.send(batch)
        sent = SentUnits(
            sent.units + len(batch),
            sent.spans + sum(len(one.unit.spans) for one in batch),
            sent.scores + sum(len(one.scores) for one in batch),
        )
        listen(sent.units, total)
    return sent


def _make_units(
    run: StorePath, sink: SinkName, judge: str | None, *, content: bool
) -> Iterator[ScoredSpans]:
    scores = None if sink == "none" else UnitScores(run, judge)
    manifest = read_manifest(run)
    for sample in read_whole_samples(log_folder(run)):
        unit = make_spans(sample, run.name, manifest, content=content)
        found = () if scores is None else scores.of((unit.task, unit.epoch))
        # A task with nothing to measure has no result.
        yield ScoredSpans(unit, [one for one in found if one.value is not None or one.cause])


def _make_batches(units: Iterator[ScoredSpans]) -> Iterator[list[ScoredSpans]]:
    """Group units so that no request is long; a single unit may be."""
    batch: list[ScoredSpans] = []
    length = 0
    for one in units:
        own = sum(_measure(span.attributes.values()) for span in one.unit.spans)
        if batch and (len(batch) == MOST_UNITS or length + own > MOST_CHARACTERS):
            yield batch
            batch, length = [], 0
        batch.append(one)
        length += own
    if batch:
        yield batch


def _measure(values: Iterable[object]) -> int:
    return sum(len(value) for value in values if isinstance(value, str))
