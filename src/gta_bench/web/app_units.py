"""Single units for the pages of the app: read from the logs without reading the whole run."""

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from gta_bench.errors import RunError
from gta_bench.judging.evidence_store import EVIDENCE, EvidenceStore
from gta_bench.metrics.workflow_scores import Thresholds, place_rows, score_units
from gta_bench.records.attempts import UnitKey
from gta_bench.records.evidence import FileEvidence
from gta_bench.records.files import Deliverable
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import log_folder
from gta_bench.runs.logs import UnitStream
from gta_bench.runs.store import StorePath
from gta_bench.runs.verdicts import read_judges, read_task_verdicts
from gta_bench.web.app_runs import RunEntry, Stamp, stamp_files
from gta_bench.web.task_view import NodeView, TaskView, view_task

# Runs whose places in logs and evidence are kept in memory.
RUNS_KEPT: Final = 64
PAGES_SHOWN: Final = 3
LONGEST_TEXT: Final = 20_000
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
# What a browser may show by itself; any other file is downloaded. SVG can have scripts.
PICTURES: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
}


class FileView(NamedTuple):
    """A deliverable: `number` is its place among those of the unit."""

    number: int
    path: str
    size: int
    kind: str = ""
    pictures: tuple[tuple[str, str], ...] = ()
    more: int = 0
    notes: tuple[str, ...] = ()
    text: str = ""
    is_picture: bool = False


class LeafSides(NamedTuple):
    """What two systems got for one leaf; a side is None if it was not judged."""

    id: str
    requirement: str
    sides: tuple[NodeView | None, NodeView | None]


@dataclass(frozen=True)
class _Places:
    stamp: Stamp
    found: Any


class UnitReader:
    """Reads single units, with their files and verdicts."""

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._kept: OrderedDict[tuple[str, Path], _Places] = OrderedDict()
        self._lock = threading.Lock()

    def unit(self, entry: RunEntry, key: UnitKey) -> AtomicUnit | WorkflowUnit | None:
        """Return a unit; None if it was not run."""
        return self._stream(entry).pick([key]).get(key)

    def _stream(self, entry: RunEntry) -> UnitStream[Any]:
        if entry.manifest is None:
            raise RunError(entry.problem)
        spec, logs = entry.manifest.spec, log_folder(entry.folder)
        kind = WorkflowUnit if spec.dataset == "workflow" else AtomicUnit
        stamp = stamp_files([logs, *logs.rglob("*.eval"), entry.folder / "attempts.jsonl"])
        found: UnitStream[Any] = self._keep(
            ("logs", entry.folder),
            stamp,
            lambda: UnitStream(logs, spec.tasks, spec.epochs, kind),  # type: ignore[type-var]
        )
        return found

    def views(self, entry: RunEntry, unit: WorkflowUnit) -> list[TaskView]:
        """Return the tree of a unit as each judge scored it."""
        rows = read_task_verdicts(entry.folder, unit.task.id)
        own = {key: row for key, row in rows.items() if row.key.epoch == unit.epoch}
        scored = entry.scored
        thresholds = self._thresholds
        if scored is not None and scored.thresholds is not None:
            thresholds = scored.thresholds
        scores = score_units(
            [unit],
            place_rows(own.values()),
            thresholds=thresholds,
            asked=[one.name for one in read_judges(entry.folder).judges],
        )
        return [
            view_task(
                unit,
                judge,
                own,
                leaf_threshold=thresholds.leaf,
                root_threshold=thresholds.root,
            )
            for judge in scores.judges
        ]

    def files(self, entry: RunEntry, files: Sequence[Deliverable]) -> list[FileView]:
        """Return files as pages show them, with pictures from the judges' evidence if there is."""
        store = EvidenceStore(entry.folder / EVIDENCE)
        index = self._evidence(entry, store)
        views = []
        for number, file in enumerate(files):
            at = index.get(file.digest)
            views.append(_view_file(number, file, None if at is None else store.read(at)))
        return views

    def _evidence(self, entry: RunEntry, store: EvidenceStore) -> Mapping[str, StorePath]:
        folder = entry.folder / EVIDENCE
        stamp = stamp_files(folder.glob("*/*"))
        found: Mapping[str, StorePath] = self._keep(("evidence", entry.folder), stamp, store.index)
        return found

    def _keep(self, key: tuple[str, Path], stamp: Stamp, read: Any) -> Any:
        with self._lock:
            known = self._kept.get(key)
            if known is None or known.stamp != stamp:
                known = self._kept[key] = _Places(stamp, read())
            self._kept.move_to_end(key)
            while len(self._kept) > 2 * RUNS_KEPT:
                self._kept.popitem(last=False)
            return known.found


def _view_file(number: int, file: Deliverable, shown: FileEvidence | None) -> FileView:
    looks = Path(file.path).suffix.lower() in (".png", ".jpg", ".jpeg", ".gif", ".webp")
    if shown is None:
        return FileView(number, file.path, file.size, is_picture=looks)
    pages = shown.pictures[:PAGES_SHOWN]
    return FileView(
        number,
        file.path,
        file.size,
        kind=shown.kind,
        pictures=tuple((one.digest, one.label) for one in pages),
        more=len(shown.pictures) - len(pages),
        notes=(*shown.findings, *shown.cut, *shown.unshown),
        text="" if pages else shown.text[:LONGEST_TEXT],
    )


def pair_leaves(left: TaskView | None, right: TaskView | None) -> list[LeafSides]:
    """Return the leaves of a task with what both systems got."""
    sides = [{} if view is None else _leaves(view.root) for view in (left, right)]
    requirements = {name: leaf.requirement for own in sides for name, leaf in own.items()}
    return [
        LeafSides(name, requirement, (sides[0].get(name), sides[1].get(name)))
        for name, requirement in requirements.items()
    ]


def _leaves(node: NodeView) -> dict[str, NodeView]:
    if not node.children:
        return {node.id: node}
    return {name: leaf for child in node.children for name, leaf in _leaves(child).items()}


def read_deliverable(entry: RunEntry, file: Deliverable) -> bytes:
    """Return the bytes of a file, which the run stores by its digest."""
    return ArtefactStore(entry.folder / ARTEFACTS).read(file.digest)


def read_picture(entry: RunEntry, digest: str) -> bytes:
    """Return a picture of the evidence; raises RunError if there is none."""
    if not _DIGEST.fullmatch(digest):
        raise RunError(f"{digest!r} is not the digest of a picture.")
    return EvidenceStore(entry.folder / EVIDENCE).picture(digest)


def picture_type(data: bytes) -> str | None:
    """Return the media type of a picture that browsers show safely; None for anything else.

    >>> picture_type(b"GIF89a"), picture_type(b"<svg onload=x>")
    ('image/gif', None)
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in PICTURES.items() if data.startswith(start)), None)
