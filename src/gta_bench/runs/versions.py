"""Lets a stored run follow its dataset to another version, without its system.

The trees of the new version replace those in the logs. A verdict belongs to what its leaf says:
leaves with the same content keep theirs, even under another id, and other verdicts wait in
`verdicts.replaced.jsonl` until a version has their leaf again. Results of tasks that now ask
something else stay in the logs, but do not count: `gta run` does those tasks again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from gta_bench.errors import RunError, UsageError
from gta_bench.metrics.versions import DoneUnit, JudgeLoad, TaskVersion, plan_run
from gta_bench.records.attempts import UnitKey
from gta_bench.records.base import Record
from gta_bench.records.checks import CHECK
from gta_bench.records.digests import digest_leaf
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Unscored, VerdictKey, VerdictRow
from gta_bench.records.versions import RunNeeds
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from gta_bench.runs.directory import (
    list_progress,
    log_folder,
    read_manifest,
    write_manifest,
)
from gta_bench.runs.logs import (
    find_kept_units,
    read_run_units,
    read_sample_digests,
    read_units,
    unit_keys,
)
from gta_bench.runs.requirements import EditedTrees, read_edited, write_edited
from gta_bench.runs.store import StorePath, is_locked, lock_folder, write_bytes_atomically
from gta_bench.runs.verdicts import VERDICTS, dump_rows, read_judges, read_verdicts

REPLACED: Final = "verdicts.replaced.jsonl"
CHANGED: Final = Unscored(
    cause="leaf_changed", detail="The leaf is new or changed since the unit was judged; judge it."
)


class NewVersion(NamedTuple):
    """A version of a dataset that a run follows to: its digest, its tasks and its canaries."""

    digest: str
    tasks: Mapping[str, TaskVersion]
    canaries: tuple[str, ...] = ()


def read_needs(run: StorePath, new: NewVersion, before: Collection[str] | None = None) -> RunNeeds:
    """Read what a run needs for the new version; `before` are the tasks of the old version.

    A run that has all of those is expected to have all of the new version, too.
    """
    manifest = read_manifest(run)
    spec = manifest.spec
    known = not (spec.system.harness or manifest.imported_from)
    done = [
        DoneUnit(
            (unit.task.id, unit.epoch), unit.digests, unit.usage.model_calls if known else None
        )
        for unit in read_run_units(run, spec)
        if unit.failure is None and unit.digests is not None
    ]
    named = {*spec.tasks}
    added = [] if before is None or not named.issuperset(before) else [*new.tasks]
    return plan_run(
        str(run),
        unit_keys(spec.tasks, spec.epochs),
        done,
        new.tasks,
        list(_read_loads(run)),
        added=unit_keys([task for task in added if task not in named], spec.epochs),
    )


def _read_loads(run: StorePath) -> Iterator[JudgeLoad]:
    """Yield how every judge of the run asks."""
    repeats: dict[str, int] = {}
    for key in read_verdicts(run):
        if key.judge != CHECK:
            repeats[key.judge] = max(repeats.get(key.judge, 1), key.repeat)
    registry = read_judges(run)
    for judge, times in sorted(repeats.items()):
        options = registry.of(judge)[-1].options if registry.of(judge) else {}
        size = options.get("leaves_per_call")
        yield JudgeLoad(size if isinstance(size, int) else 1, times, bool(options.get("control")))


def adopt_version(run: StorePath, new: NewVersion) -> int:
    """Make the run one of the new version, and return how many verdicts hold."""
    if not isinstance(run, Path):
        raise UsageError("--data needs a run in a local folder: copy the run here first.")
    if any(is_locked(folder) for folder in list_progress(run)):
        raise RunError(
            f"Another command is asking a judge about {run}, by the requirements until now; `gta "
            "status` shows its progress. Run this command again after it."
        )
    with lock_folder(run):
        manifest, edited = read_manifest(run), read_edited(run)
        every = tuple(dict.fromkeys((*manifest.spec.tasks, *edited.removed)))
        trees = {
            name: task.checkpoints
            for name in every
            if name in new.tasks and isinstance(task := new.tasks[name].task, WorkflowTask)
        }
        superseded = tuple(_find_superseded(run, new.tasks))
        archive = _read_archive(run, every, edited)
        found = [
            row
            for key, sample in _name_samples(run, superseded).items()
            if key[0] in trees
            for row in archive.take(key, sample, trees[key[0]])
        ]
        archive.write(run, found)
        write_edited(
            run,
            EditedTrees(
                dataset_digest=new.digest,
                trees={**edited.trees, **trees},
                superseded=superseded,
                removed=tuple(task for task in every if task not in trees),
            ),
        )
        first = manifest.edited_from or manifest.dataset_digest
        changes = {
            "dataset_digest": new.digest,
            "dataset_tasks": len(new.tasks),
            "edited_from": None if first == new.digest else first,
            "canaries": new.canaries,
        }
        write_manifest(run, manifest.with_spec(tasks=tuple(trees)).model_copy(update=changes))
    return sum(row.verdict != CHANGED for row in found)


def _find_superseded(run: StorePath, tasks: Mapping[str, TaskVersion]) -> Iterator[str]:
    for sample, task, digests in read_sample_digests(log_folder(run)):
        if task not in tasks or tasks[task].digests.changes(digests).asks:
            yield sample


def _name_samples(run: StorePath, superseded: Collection[str]) -> dict[UnitKey, str]:
    """Return the sample of every finished unit."""
    kept = find_kept_units(log_folder(run), superseded)
    return {key: one.sample for key, one in kept.items() if one.finished}


class ReplacedVerdict(Record):
    """A line of `verdicts.replaced.jsonl`: a verdict, what its leaf says, and on which sample."""

    row: VerdictRow
    leaf: str
    sample: str


class _Archive:
    """The verdicts of all versions of a run; those of the current one are taken out."""

    def __init__(self, known: Iterable[ReplacedVerdict], others: Sequence[bytes]) -> None:
        self._units: dict[tuple[str, int, str], list[ReplacedVerdict]] = {}
        self._others = others
        for one in known:
            place = (one.row.key.task, one.row.key.epoch, one.sample)
            self._units.setdefault(place, []).append(one)

    def take(self, unit: UnitKey, sample: str, tree: Sequence[Checkpoint]) -> Iterator[VerdictRow]:
        """Yield the verdicts on a unit; unscored ones for leaves that are new to its judges."""
        own = self._units.pop((*unit, sample), [])
        askers = dict.fromkeys((one.row.key.judge, one.row.key.repeat) for one in own)
        for leaf in (leaf for node in tree for leaf in node.leaves()):
            says = digest_leaf(leaf)
            for judge, repeat in askers:
                key = VerdictKey(
                    task=unit[0], epoch=unit[1], leaf=leaf.id, judge=judge, repeat=repeat
                )
                found = _find_verdict(own, key, says)
                if found is not None:
                    own.remove(found)
                    yield found.row.model_copy(update={"key": key})
                elif judge != CHECK and leaf.by != "check":
                    yield VerdictRow(key=key, verdict=CHANGED)
        self._units[(*unit, sample)] = own

    def write(self, run: Path, current: Sequence[VerdictRow]) -> None:
        """Write the current verdicts, and those that were not taken to a file of their own."""
        left = [one.model_dump_json().encode() for own in self._units.values() for one in own]
        if current or left:
            write_bytes_atomically(run / VERDICTS, dump_rows(current))
            lines = (line + b"\n" for line in (*self._others, *left))
            write_bytes_atomically(run / REPLACED, b"".join(lines))


def _find_verdict(
    known: Sequence[ReplacedVerdict], key: VerdictKey, says: str
) -> ReplacedVerdict | None:
    """Find the judge's verdict on what the leaf says, first under its own id."""
    asker = key.judge, key.repeat
    alike = [
        one
        for one in known
        if one.leaf == says and (one.row.key.judge, one.row.key.repeat) == asker
    ]
    return next((one for one in alike if one.row.key == key), alike[0] if alike else None)


def _read_archive(run: Path, tasks: Sequence[str], edited: EditedTrees) -> _Archive:
    spec, samples = read_manifest(run).spec, _name_samples(run, edited.superseded)
    leaves = {
        (unit.task.id, leaf.id): digest_leaf(leaf)
        for unit in read_units(log_folder(run), tasks, spec.epochs, WorkflowUnit).units
        for leaf in unit.task.leaves()
    }
    current = [
        ReplacedVerdict(
            row=row,
            leaf=leaves.get((key.task, key.leaf), ""),
            sample=samples.get((key.task, key.epoch), ""),
        )
        for key, row in read_verdicts(run).items()
        if row.verdict != CHANGED
    ]
    file = run / REPLACED
    others: list[bytes] = []
    for line in file.read_bytes().splitlines() if file.is_file() else ():
        try:
            current.append(ReplacedVerdict.model_validate_json(line))
        except ValidationError:  # earlier versions did not write what the leaf says
            others.append(line)
    return _Archive(current, others)
