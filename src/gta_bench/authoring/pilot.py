"""Try a task with work whose value is known: gold, nothing, cheats and wrong work.

The works of a task are units of an ordinary run, so evidence, checks and judges treat them like the
work of a system, and a pilot that was interrupted continues with the same command.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from inspect_ai.model import Model

from gta_bench.authoring.proofs import STATE_FILE, AuthoredTask, Proof
from gta_bench.authoring.readiness import NULL
from gta_bench.authoring.staleness import reader_versions
from gta_bench.datasets.digest import task_digests
from gta_bench.errors import DatasetError, RunError
from gta_bench.harnesses.collecting import keep_files, open_below
from gta_bench.harnesses.delivery import store_task_inputs
from gta_bench.judge_quality.attacks.corpus import build_manifest, build_unit
from gta_bench.judge_quality.judge_runs import NULLS
from gta_bench.judging import prompts
from gta_bench.metrics.checked import check_key, is_open_to_judge
from gta_bench.records.cost import read_cost, sum_costs
from gta_bench.records.digests import content_digest, digest_leaf
from gta_bench.records.files import Deliverable
from gta_bench.records.pilot import LeafTrial, Pilot
from gta_bench.records.run import RunManifest
from gta_bench.records.tool_servers import ServerState, StateSnapshot
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.records.workflow import Checkpoint
from gta_bench.running.check_run import check_run, find_unstable, read_score
from gta_bench.running.judge_run import JudgedBy, Judging, Watching, judge_run
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import MANIFEST, log_folder, read_manifest, write_manifest
from gta_bench.runs.imported import write_imported
from gta_bench.runs.logs import read_units
from gta_bench.runs.scoring import score_workflow_run
from gta_bench.runs.store import StorePath, lock_folder, write_bytes_atomically
from gta_bench.runs.verdicts import VERDICTS, dump_rows, has_verdicts, read_verdicts
from gta_bench.settings import Settings

AGENT: Final = "pilot"
MOST_REASON: Final = 400
_Known = Mapping[VerdictKey, VerdictRow]


def pilot_task(
    authored: AuthoredTask,
    run: Path,
    settings: Settings,
    judging: Judging | None,
    watching: Watching,
    judged: Callable[[JudgedBy], None] = lambda found: None,
    models: Sequence[Model] | None = None,
) -> Pilot:
    """Try a task in the folder `run`, and return the outcome; without a judge, by checks alone.

    `judged` is called with what the judge did, and `models` replace the one that `judging` names.
    Scores that the folder has are kept if nothing that they depend on has changed.
    """
    units = store_works(authored, run)
    check_run(run, settings)
    judge = None
    if judging is not None:
        for found in judge_run(run, judging, watching, models=models):
            judge = found.judge
            judged(found)
    known = read_verdicts(run)
    repeats = 1 if judging is None else judging.repeats
    trials = {
        unit.task.id: {
            leaf.id: _try_leaf(unit, leaf, known, judge, repeats) for leaf in unit.task.leaves()
        }
        for unit in units
    }
    asked = [row for key, row in known.items() if key.judge == judge]
    score_workflow_run(run, settings)
    pilot = Pilot(
        created=datetime.now(UTC),
        task=task_digests(authored.dataset, authored.task.id),
        readers=reader_versions(),
        judge=judge,
        prompts="" if judge is None else prompts.digest(),
        repeats=repeats,
        cost_usd=0.0 if judge is None else sum_costs(map(read_cost, asked)).total,
        trials=trials,
        unstable=find_unstable(run, settings),
    )
    return pilot.model_copy(update={"rows": pilot.compute_rows()})


def store_works(authored: AuthoredTask, run: Path) -> list[WorkflowUnit]:
    """Write all works of a task as a run, and drop verdicts on what has changed since."""
    manifest = build_manifest(
        AGENT,
        [],
        digest=content_digest(authored.task.id),
        note="Works whose value is known: a pilot of the task.",
    )
    return store_units(run, manifest, partial(build_works, authored))


def store_units(
    run: Path, manifest: RunManifest, build: Callable[[ArtefactStore], Iterator[WorkflowUnit]]
) -> list[WorkflowUnit]:
    """Write works that no system made as a run, and drop verdicts on what has changed since."""
    _check_folder(run, manifest)
    run.mkdir(parents=True, exist_ok=True)
    with lock_folder(run):
        before = _read_works(run)
        units = list(build(ArtefactStore(run / ARTEFACTS)))
        if [_content(unit) for unit in units] == [_content(unit) for unit in before.values()]:
            return units
        if has_verdicts(run):
            now = {unit.task.id: unit for unit in units}
            kept = [row for row in read_verdicts(run).values() if _still_holds(row, before, now)]
            write_bytes_atomically(run / VERDICTS, dump_rows(kept))
        manifest = manifest.with_spec(tasks=tuple(unit.task.id for unit in units))
        old = sorted(log_folder(run).glob("*.eval"))
        write_imported(run, manifest, units)
        write_manifest(run, manifest)
        for log in old:
            log.unlink()
    return units


def build_works(authored: AuthoredTask, store: ArtefactStore) -> Iterator[WorkflowUnit]:
    """Yield every work as a unit whose task has the name of the work."""
    task = authored.task
    inputs = store_task_inputs(authored.dataset, task, store)
    digests = task_digests(authored.dataset, task.id)
    given = {"inputs": inputs, "digests": digests, "states": _build_idle_states(authored, store)}
    for proof in authored.proofs:
        yield build_work(authored, proof, inputs, store)
    for name, make in NULLS.items():
        own = task.model_copy(update={"id": f"{NULL}/{name}"})
        work = make(WorkflowUnit(task=own, inputs=inputs), store)
        yield build_unit(own, work, store).model_copy(update=given)


def build_work(
    authored: AuthoredTask, proof: Proof, inputs: tuple[Deliverable, ...], store: ArtefactStore
) -> WorkflowUnit:
    """Return a work of the task folder as a unit."""
    kept = keep_files(store, proof.delivery.files)
    for file, reason in kept.left_out:
        place = f"{authored.task.id}/{proof.name}/{file}"
        raise DatasetError(f"{reason}.", file=place)
    return WorkflowUnit(
        task=authored.task.model_copy(update={"id": proof.name}),
        trace=proof.delivery.trace,
        deliverables=kept.deliverables,
        inputs=inputs,
        states=_build_states(proof, store) or _build_idle_states(authored, store),
        digests=task_digests(authored.dataset, authored.task.id),
    )


def _build_idle_states(authored: AuthoredTask, store: ArtefactStore) -> tuple[ServerState, ...]:
    """Return the states that work without any call leaves: those before the first gold."""
    first = next((proof for proof in authored.of("gold") if proof.states), None)
    return () if first is None else tuple(one.untouched() for one in _build_states(first, store))


def _build_states(proof: Proof, store: ArtefactStore) -> tuple[ServerState, ...]:
    """Return the states of tool servers that a work comes with."""
    found: dict[str, dict[str, list[Deliverable]]] = {}
    for file in proof.states:
        about = STATE_FILE.fullmatch(file.name)
        assert about is not None
        with open_below(file.root, file.parts) as stream:
            kept = store.keep_file(about["path"], stream.read())
        found.setdefault(about["server"], {}).setdefault(about["when"], []).append(kept)
    return tuple(
        ServerState(
            server=server,
            before=StateSnapshot(files=tuple(times.get("before", ()))),
            after=StateSnapshot(files=tuple(times.get("after", ()))),
        )
        for server, times in sorted(found.items())
    )


def _check_folder(run: StorePath, manifest: RunManifest) -> None:
    """Raise for a folder with anything else than works like these."""
    agent = manifest.spec.system.agent
    if (run / MANIFEST).is_file():
        found = read_manifest(run)
        if (found.spec.system.agent, found.dataset_digest) == (agent, manifest.dataset_digest):
            return
        raise RunError(f"{run} has another run. Choose another --out.")
    if run.exists() and any(run.iterdir()):
        raise RunError(f"{run} is not empty and is not a {agent}. Choose another --out.")


def _read_works(run: Path) -> dict[str, WorkflowUnit]:
    """Return the works that the folder has."""
    if not (run / MANIFEST).is_file():
        return {}
    tasks = read_manifest(run).spec.tasks
    found = read_units(log_folder(run), tasks, 1, WorkflowUnit).units
    return {unit.task.id: unit for unit in found}


def _content(unit: WorkflowUnit) -> tuple[object, ...]:
    return unit.task, unit.answer, unit.deliverables, unit.inputs, unit.states


def _still_holds(
    row: VerdictRow, before: Mapping[str, WorkflowUnit], now: Mapping[str, WorkflowUnit]
) -> bool:
    """Whether a verdict is about the same work and the same leaf as now."""
    old, new = before.get(row.key.task), now.get(row.key.task)
    if old is None or new is None or _content(old)[1:] != _content(new)[1:]:
        return False
    leaves = [
        digest_leaf(leaf)
        for unit in (old, new)
        for leaf in unit.task.leaves()
        if leaf.id == row.key.leaf
    ]
    same_request = old.task.request == new.task.request
    return same_request and len(leaves) == 2 and len({*leaves}) == 1


def _try_leaf(
    unit: WorkflowUnit, leaf: Checkpoint, known: _Known, judge: str | None, repeats: int
) -> LeafTrial:
    """Return what a leaf got: from its checks if they decide it, else from the judge."""
    checked = known.get(check_key(unit, leaf))
    if not is_open_to_judge(leaf, checked):
        return LeafTrial(by="check", scores=(read_score(checked),), reason=find_reason([checked]))
    own = read_score(checked)
    if judge is None:
        return LeafTrial(by="judge", check=own)
    rows = [
        known.get(VerdictKey(task=unit.task.id, leaf=leaf.id, judge=judge, repeat=repeat))
        for repeat in range(1, repeats + 1)
    ]
    return LeafTrial(
        by="judge", scores=tuple(map(read_score, rows)), check=own, reason=find_reason(rows)
    )


def find_reason(rows: Sequence[VerdictRow | None]) -> str:
    """Return the reason of the lowest score, or why there is none."""
    lowest = min(rows, key=lambda row: -1.0 if (score := read_score(row)) is None else score)
    if lowest is None:
        return "not asked"
    verdict = lowest.verdict
    said = verdict.reason if isinstance(verdict, Scored) else f"{verdict.cause}: {verdict.detail}"
    return said if len(said) <= MOST_REASON else f"{said[:MOST_REASON]}…"
