"""People's labels of a run: a file for each of them, and one for the last word."""

import csv
import io
from collections.abc import Sequence

from pydantic import ValidationError

from gta_bench.errors import RunError
from gta_bench.records.labels import Labels
from gta_bench.runs.directory import write_record
from gta_bench.runs.store import StorePath, sorted_by_name

LABELS = "labels"
ADJUDICATION = "adjudication.json"
COLUMNS = ("task", "epoch", "leaf", "rater", "score", "reason", "adjudicated", "evidence", "chance")


def read_labels(run: StorePath) -> list[Labels]:
    """The labels of everybody, by name."""
    return [_read(file) for file in sorted_by_name((run / LABELS).glob("*.json"))]


def labels_of(run: StorePath, rater: str) -> Labels:
    """One person's labels; empty before the first."""
    file = run / LABELS / f"{rater}.json"
    return _read(file) if file.is_file() else Labels(rater=rater)


def write_labels(run: StorePath, labels: Labels) -> None:
    """Keep one person's labels."""
    (run / LABELS).mkdir(parents=True, exist_ok=True)
    write_record(run / LABELS / f"{labels.rater}.json", labels)


def read_adjudication(run: StorePath) -> Labels | None:
    """The last words on disputed leaves, if any was said."""
    file = run / ADJUDICATION
    return _read(file) if file.is_file() else None


def write_adjudication(run: StorePath, labels: Labels) -> None:
    """Keep the last words."""
    write_record(run / ADJUDICATION, labels)


def labels_csv(raters: Sequence[Labels], adjudication: Labels | None) -> str:
    """All labels as CSV, for any other program."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    every = [(one, False) for one in raters]
    every += [] if adjudication is None else [(adjudication, True)]
    for labels, last in every:
        for one in labels.labels:
            said = (one.value, one.reason, str(last).lower(), one.evidence, one.chance)
            writer.writerow((one.task, one.epoch, one.leaf, labels.rater, *said))
    return text.getvalue()


def _read(file: StorePath) -> Labels:
    try:
        return Labels.model_validate_json(file.read_bytes())
    except ValidationError as exc:
        raise RunError(f"{file}: {exc.error_count()} fields cannot be read.") from exc
