"""The labels that people gave to a run's leaves: a file per person, and one for adjudication."""

import csv
import io
from collections.abc import Sequence

from gta_bench.errors import RunError, UsageError
from gta_bench.records.labels import Labels
from gta_bench.runs.csv_cells import neutralize_cell
from gta_bench.runs.directory import read_manifest, read_record, write_record
from gta_bench.runs.store import StorePath, sort_by_name

LABELS = "labels"
ADJUDICATION = "adjudication.json"
COLUMNS = ("task", "epoch", "leaf", "rater", "score", "reason", "adjudicated", "evidence", "chance")


def read_labels(run: StorePath) -> list[Labels]:
    """Read everybody's labels, sorted by name."""
    files = sort_by_name((run / LABELS).glob("*.json"))
    return [read_record(file, Labels) for file in files]


def require_leaves(run: StorePath) -> None:
    """Raise if a run has no leaves to label."""
    if read_manifest(run).spec.mode != "workflow":
        raise RunError(f"{run} is a run of GTA-Atomic, which has no leaves to label.")


def require_labels(run: StorePath) -> list[Labels]:
    """Read everybody's labels; raises an error that says how to get them if there are none."""
    require_leaves(run)
    found = read_labels(run)
    if not found:
        raise UsageError(f"{run} has no labels yet: run `gta judge label {run}`.")
    return found


def read_labels_of(run: StorePath, rater: str) -> Labels:
    """Read one person's labels; empty before the first."""
    file = run / LABELS / f"{rater}.json"
    return read_record(file, Labels) if file.is_file() else Labels(rater=rater)


def write_labels(run: StorePath, labels: Labels) -> None:
    """Write one person's labels."""
    write_record(run / LABELS / f"{labels.rater}.json", labels)


def read_adjudication(run: StorePath) -> Labels | None:
    """Read the final labels of disputed leaves; None if there are none."""
    file = run / ADJUDICATION
    return read_record(file, Labels) if file.is_file() else None


def write_adjudication(run: StorePath, labels: Labels) -> None:
    """Write the final labels of disputed leaves."""
    write_record(run / ADJUDICATION, labels)


def dump_labels_csv(raters: Sequence[Labels], adjudication: Labels | None) -> str:
    """Return all labels as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    everyone = [(one, "false") for one in raters]
    everyone += [] if adjudication is None else [(adjudication, "true")]
    for labels, is_final in everyone:
        for one in labels.labels:
            judged = (one.value, one.reason, is_final, one.evidence, one.chance)
            cells = (one.task, one.epoch, one.leaf, labels.rater, *judged)
            writer.writerow(map(neutralize_cell, cells))
    return text.getvalue()
