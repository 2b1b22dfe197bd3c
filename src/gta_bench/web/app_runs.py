"""The runs in a folder, as the app shows them: found again, and read again when a file changes.

What is cheap to read (which runs exist, how far they are) is read whenever somebody looks. Scores
are read by one background thread, once for each change of their files; nothing is written.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from gta_bench.errors import GtaError
from gta_bench.metrics import table
from gta_bench.metrics.failures import count_failures
from gta_bench.metrics.workflow_scores import Thresholds
from gta_bench.records.cost import make_cost, sum_costs
from gta_bench.records.failures import Failure, FailureCount
from gta_bench.records.run import RunManifest, RunMode
from gta_bench.records.scores import RunScores, ToolUse
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.reports.estimates import (
    Estimate,
    estimates,
    make_atomic_parts,
    make_judged_parts,
)
from gta_bench.reports.summary import RunSummary, is_foreign, system_name
from gta_bench.reports.workflow_summary import WorkflowSummary
from gta_bench.runs.directory import (
    FAILURES,
    LOGS,
    MANIFEST,
    PROGRESS,
    RESULTS,
    ROUNDS,
    SCORES,
    read_manifest,
    read_scores,
    read_workflow_scores,
)
from gta_bench.runs.status import RunStatus, find_newest_command, read_status
from gta_bench.runs.store import LOCK
from gta_bench.web.components import Badge, list_badges

# How deep below the folder a run may be.
DEPTH: Final = 4
# Seconds for which what is cheap to read is not read again, and how long a page waits for the rest.
FRESH: Final = 0.5
PATIENCE: Final = 0.15
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Stamp = tuple[tuple[str, int, int], ...]
ResultT = TypeVar("ResultT")


class RunHeadline(NamedTuple):
    """The primary metric of a run with its interval; `judge` is empty for GTA-Atomic."""

    label: str
    judge: str
    estimate: Estimate


@dataclass(frozen=True, eq=False)
class ScoreView:
    """What the app keeps of a run's scores; causes are those by the first judge."""

    n: int
    n_units: int
    headline: RunHeadline | None
    badges: tuple[Badge, ...]
    causes: tuple[FailureCount, ...]
    tools: tuple[ToolUse, ...]
    judges: tuple[str, ...] = ()
    thresholds: Thresholds | None = None
    leaves: int = 0
    n_leaves: int = 0
    cost_usd: float | None = None
    seconds: float | None = None

    @property
    def failed(self) -> int:
        """How many steps, tasks or leaves failed."""
        return sum(count.failures for count in self.causes)


@dataclass(frozen=True)
class RunEntry:
    """A run of the folder; `problem` says why it cannot be read."""

    id: str
    name: str
    folder: Path
    manifest: RunManifest | None
    status: RunStatus | None = None
    scored: ScoreView | None = None
    problem: str = ""
    reading: bool = False

    @property
    def system(self) -> str:
        """A short name of its system."""
        return "" if self.manifest is None else system_name(self.manifest)

    @property
    def live(self) -> bool:
        """Whether a command works on it now."""
        return self.status is not None and self.status.state == "running"

    @property
    def mode(self) -> RunMode | None:
        """Its mode."""
        return None if self.manifest is None else self.manifest.spec.mode


def find_runs(folder: Path, depth: int = DEPTH) -> Iterator[Path]:
    """Yield the runs in a folder, and rounds inside runs; links are not followed."""
    if (folder / MANIFEST).is_file() and not (folder / MANIFEST).is_symlink():
        yield folder
        inside = [folder / ROUNDS] if (folder / ROUNDS).is_dir() else []
    else:
        inside = _list_folders(folder)
    if depth:
        for below in inside:
            if not below.is_symlink():
                yield from find_runs(below, depth - 1)


def _list_folders(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if one.is_dir() and one.name[0] != ".")
    except OSError:  # somebody else's, or it was just removed
        return []


def read_scored(run: Path, manifest: RunManifest) -> tuple[ScoreView, Sequence[Failure]]:
    """Read the scores of a run, and its failures by the first judge."""
    if manifest.spec.mode == "workflow":
        judged = read_workflow_scores(run)
        failures = judged.judges[0].failures if judged.judges else ()
        return _view_judged(manifest, judged), failures
    scores = read_scores(run)
    return _view_scores(run.name, manifest, scores), scores.failures


def _view_scores(name: str, manifest: RunManifest, scores: RunScores) -> ScoreView:
    spec = manifest.spec
    row = table.primary(spec.mode)
    found = estimates(make_atomic_parts(scores.units, [row.name]), spec.tasks, epochs=spec.epochs)
    summary = RunSummary(name, manifest, scores)
    return ScoreView(
        n=scores.n,
        n_units=scores.n_units,
        headline=RunHeadline(row.label, "", found[row.name]) if row.name in found else None,
        badges=tuple(list_badges(summary.badges, n=scores.n, n_units=scores.n_units)),
        causes=count_failures(scores.failures),
        tools=scores.tools,
        cost_usd=scores.usage.cost_usd,
        seconds=_seconds(scores, manifest),
    )


def _view_judged(manifest: RunManifest, scores: WorkflowScores) -> ScoreView:
    spec, row = manifest.spec, table.primary("workflow")
    headline, judge = None, next(iter(scores.judges), None)
    texts = WorkflowSummary("", manifest, scores).badges(None if judge is None else judge.judge)
    badges = list_badges(texts, n=scores.n, n_units=scores.n_units)
    if judge is not None:
        parts = {row.name: make_judged_parts(judge.tasks, scores)[row.name]}
        found = estimates(parts, spec.tasks, epochs=spec.epochs)
        headline = RunHeadline(row.label, judge.judge, found[row.name]) if found else None
        given = judge.strict
        missing = given.n_leaves - given.leaves
        badges = list_badges(texts, n=given.n, n_units=given.n_units, missing=missing)
    costs = (scores.usage.cost_usd, *(one.usage.cost_usd for one in scores.judges))
    return ScoreView(
        n=scores.n,
        n_units=scores.n_units,
        headline=headline,
        badges=tuple(badges),
        causes=() if judge is None else count_failures(judge.failures),
        tools=scores.tools,
        judges=tuple(one.judge for one in scores.judges),
        thresholds=Thresholds(scores.leaf_threshold, scores.root_threshold),
        leaves=0 if judge is None else judge.strict.leaves,
        n_leaves=0 if judge is None else judge.strict.n_leaves,
        cost_usd=sum_costs(map(make_cost, costs)).total,
        seconds=_seconds(scores, manifest),
    )


def _seconds(scores: RunScores | WorkflowScores, manifest: RunManifest) -> float | None:
    """Return how long the tasks took; a system that was not run here may not say."""
    unknown = is_foreign(manifest.spec.system) and not scores.usage.seconds
    return None if unknown else scores.usage.seconds


def stamp_files(files: Iterable[Path]) -> Stamp:
    """Return names, times and sizes of files; those that are missing are left out."""
    found = []
    for file in files:
        try:
            known = file.stat()
        except OSError:
            continue
        found.append((str(file), known.st_mtime_ns, known.st_size))
    return tuple(sorted(found))


class Readings:
    """Results of slow reading, one for each stamp of what is read, made by one thread.

    At most `most` results are kept, those that were asked for last; all of them if it is None.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="gta-view")
        self._found: dict[object, tuple[object, Future[object]]] = {}
        self._lock = threading.Lock()

    def start(self, key: object, stamp: object, read: Callable[[], ResultT]) -> Future[ResultT]:
        """Return the reading of a key; it begins again if its stamp has changed."""
        with self._lock:
            known = self._found.pop(key, None)
            if known is None or known[0] != stamp:
                future: Future[object] = self._worker.submit(read)
                known = stamp, future
            self._found[key] = known  # the newest one is the last
            self._drop()
        return known[1]  # type: ignore[return-value]

    def _drop(self) -> None:
        """Forget the oldest results; somebody waits for what is not done."""
        if self._most is not None and len(self._found) > self._most:
            done = [key for key, (_, future) in self._found.items() if future.done()]
            for key in done[: len(self._found) - self._most]:
                del self._found[key]

    def close(self) -> None:
        """Stop; what has not begun is not read."""
        self._worker.shutdown(wait=False, cancel_futures=True)


class RunLibrary:
    """All runs of a folder; `entries` are as fresh as `refresh` made them."""

    def __init__(
        self,
        folder: Path,
        *,
        on_failures: Callable[[str, Path, Sequence[Failure] | None], None] = lambda *_: None,
    ) -> None:
        self.folder = folder.resolve()
        self.readings = Readings()
        self.entries: Mapping[str, RunEntry] = {}
        self.version = 0
        self._on_failures = on_failures
        self._manifests: dict[Path, tuple[Stamp, RunManifest]] = {}
        self._checked = 0.0
        self._lock = threading.Lock()

    def refresh(self, *, patience: float = PATIENCE) -> Mapping[str, RunEntry]:
        """Look for changes, unless somebody does or just did; wait a moment for what is read."""
        fresh = time.monotonic() - self._checked < FRESH
        # Whoever comes while somebody looks gets what was seen last, if there is anything.
        if fresh or not self._lock.acquire(blocking=not self._checked):
            return self.entries
        try:
            self._look(patience)
        finally:
            self._lock.release()
        return self.entries

    def _look(self, patience: float) -> None:
        # A name that is not UTF-8 cannot be sent as it is.
        found = [
            (entry_id(name), os.fsencode(name).decode(errors="replace"), run)
            for name, run in self._list()
        ]
        live = {id: find_newest_command(run).live for id, _, run in found}
        scores = {id: self._scores(id, run) for id, _, run in found}
        idle = {id: self._idle_status(id, run) for id, _, run in found if not live[id]}
        wait((*scores.values(), *idle.values()), timeout=patience)
        entries = {
            id: self._entry(id, name, run, scores[id], idle.get(id)) for id, name, run in found
        }
        if entries != self.entries:
            self.entries, self.version = entries, self.version + 1
        self._checked = time.monotonic()

    def close(self) -> None:
        """Stop reading."""
        self.readings.close()

    def _list(self) -> Iterator[tuple[str, Path]]:
        for run in find_runs(self.folder):
            below = run.relative_to(self.folder).as_posix()
            yield (self.folder.name or "run" if below == "." else below), run

    def _scores(self, id: str, run: Path) -> Future[object]:
        rows = sorted((run / RESULTS / FAILURES).glob("*.parquet"))
        stamp = stamp_files((run / MANIFEST, run / SCORES, *rows))

        def read() -> ScoreView | None:
            if not (run / SCORES).is_file():  # not scored yet, or its rows are being written
                self._on_failures(id, run, None)
                return None
            scored, failures = read_scored(run, read_manifest(run))
            self._on_failures(id, run, failures)
            return scored

        return self.readings.start(("scores", id), stamp, read)

    def _idle_status(self, id: str, run: Path) -> Future[object]:
        progress = (run / PROGRESS).rglob("*.json")
        stamp = stamp_files((run / MANIFEST, run / LOGS, run / LOCK, *progress))
        return self.readings.start(("status", id), stamp, lambda: read_status(run))

    def _manifest(self, run: Path) -> RunManifest:
        stamp = stamp_files([run / MANIFEST])
        known = self._manifests.get(run)
        if known is None or known[0] != stamp:
            known = self._manifests[run] = stamp, read_manifest(run)
        return known[1]

    def _entry(
        self, id: str, name: str, run: Path, scores: Future[Any], idle: Future[Any] | None
    ) -> RunEntry:
        """Return a run as it is now; `idle` is the status of one that nobody works on."""
        try:
            return RunEntry(
                id=id,
                name=name,
                folder=run,
                manifest=self._manifest(run),
                status=read_status(run) if idle is None else _result(idle),
                scored=_result(scores),
                reading=not scores.done(),
            )
        except (GtaError, OSError) as exc:
            return RunEntry(id, name, run, None, problem=" ".join(str(exc).split()))


def _result(future: Future[Any]) -> Any:
    """Return the result if it is there; raises what reading raised."""
    return future.result() if future.done() else None


def entry_id(name: str) -> str:
    """Return the name of a run in addresses: its path, or if that has other letters, a digest too.

    >>> entry_id("gem"), entry_id("gem/rounds/2")
    ('gem', 'gem-rounds-2-54cd75')
    """
    if _ID.fullmatch(name):
        return name
    clean = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
    return f"{clean}-{sha256(os.fsencode(name)).hexdigest()[:6]}"
