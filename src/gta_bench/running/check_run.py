"""Decides the leaves of a stored run that have checks; no model is called."""

import json
from collections.abc import Collection, Mapping
from functools import partial
from hashlib import sha256
from typing import NamedTuple

from gta_bench.checks.decide import checks_digest, decide_leaf
from gta_bench.checks.delivery import CheckedState, CheckedWork
from gta_bench.errors import ToolUnavailable
from gta_bench.metrics.checked import check_key
from gta_bench.records.checks import PythonCheck
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, Unscored, VerdictKey, VerdictRow
from gta_bench.records.workflow import Checkpoint
from gta_bench.running.stopping import run_apart
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.store import StorePath
from gta_bench.runs.verdicts import append_verdicts, read_verdicts
from gta_bench.settings import Settings
from gta_bench.tasks.judging import read_judgeable_units
from gta_bench.tools.contract import Equipment
from gta_bench.tools.equipment import use_equipment
from gta_bench.tools.recognition import make_recognition


class CheckedRun(NamedTuple):
    """How many leaves with checks were open, how many of them got a score, and one that did not."""

    wanted: int
    scored: int
    problem: str = ""


def check_run(
    run: StorePath, settings: Settings, tasks: Collection[str] | None = None
) -> CheckedRun:
    """Decide every leaf with checks that has no current verdict of them, and store the verdicts."""
    units = [
        unit
        for unit in read_judgeable_units(run, tasks)
        if any(leaf.checks for leaf in unit.task.leaves())
    ]
    known = read_verdicts(run) if units else {}
    rows = _decide(run, [(unit, _pending(unit, known)) for unit in units], settings)
    failed = [
        f"task {row.key.task}, {row.key.leaf}: {row.verdict.detail}"
        for row in rows
        if isinstance(row.verdict, Unscored)
    ]
    return CheckedRun(len(rows), len(rows) - len(failed), failed[0] if failed else "")


def find_unstable(run: StorePath, settings: Settings) -> dict[str, tuple[str, ...]]:
    """Run Python checks once more; return the leaves by task whose stored score they contradict."""
    known = read_verdicts(run)
    wanted = [
        (unit, [leaf for leaf in unit.task.leaves() if _has_own_code(leaf)])
        for unit in read_judgeable_units(run)
    ]
    found: dict[str, tuple[str, ...]] = {}
    for row in _decide(run, wanted, settings, keep=False):
        if read_score(row) != read_score(known.get(row.key)):
            found[row.key.task] = (*found.get(row.key.task, ()), row.key.leaf)
    return found


def read_score(row: VerdictRow | None) -> float | None:
    """Return the score of a verdict, if there is one."""
    verdict = None if row is None else row.verdict
    return verdict.value if isinstance(verdict, Scored) else None


def _has_own_code(leaf: Checkpoint) -> bool:
    return any(isinstance(check, PythonCheck) for check in leaf.checks)


OpenLeaves = list[tuple[WorkflowUnit, list[Checkpoint]]]


def _decide(
    run: StorePath, open_leaves: OpenLeaves, settings: Settings, *, keep: bool = True
) -> list[VerdictRow]:
    if not any(leaves for _, leaves in open_leaves):
        return []
    return run_apart(_check_units(run, open_leaves, settings, keep=keep))


async def _check_units(
    run: StorePath, open_leaves: OpenLeaves, settings: Settings, *, keep: bool
) -> list[VerdictRow]:
    store = ArtefactStore(run / ARTEFACTS)
    rows: list[VerdictRow] = []
    async with use_equipment(settings) as equipment:
        for unit, leaves in open_leaves:
            try:
                work = open_work(unit, store, equipment)
            except ToolUnavailable as exc:
                lacking = Unscored(cause="check_failed", detail=str(exc))
                made = [_make_row(unit, leaf, lacking) for leaf in leaves]
            else:
                made = [_make_row(unit, leaf, await decide_leaf(leaf, work)) for leaf in leaves]
            if keep:
                append_verdicts(run, made)
            rows += made
    return rows


def open_work(unit: WorkflowUnit, store: ArtefactStore, equipment: Equipment) -> CheckedWork:
    """Return what a unit delivered, for its checks."""
    return CheckedWork(
        unit.answer,
        {file.path: partial(store.read, file.digest) for file in unit.deliverables},
        equipment.need_jail(),
        inputs=[file.digest for file in unit.inputs],
        recognition=make_recognition(equipment),
        states=[CheckedState(state, store.read) for state in unit.states],
    )


def _pending(unit: WorkflowUnit, known: Mapping[VerdictKey, VerdictRow]) -> list[Checkpoint]:
    evidence = _digest_delivery(unit)
    found = []
    for leaf in unit.task.leaves():
        row = known.get(check_key(unit, leaf))
        current = (
            row is not None
            and isinstance(row.verdict, Scored)
            and (row.evidence, row.prompts) == (evidence, checks_digest(leaf))
        )
        if leaf.checks and not current:
            found.append(leaf)
    return found


def _make_row(unit: WorkflowUnit, leaf: Checkpoint, verdict: Scored | Unscored) -> VerdictRow:
    return VerdictRow(
        key=check_key(unit, leaf),
        verdict=verdict,
        evidence=_digest_delivery(unit),
        prompts=checks_digest(leaf),
        cost_usd=0.0,
    )


def _digest_delivery(unit: WorkflowUnit) -> str:
    """Return a digest of everything that checks see."""
    files = sorted((file.path, file.digest) for file in unit.deliverables)
    given = sorted(file.digest for file in unit.inputs)
    seen: list[object] = [unit.answer, files, given]
    if unit.states:  # others keep the digests that they had before there were states
        seen.append([state.model_dump(mode="json") for state in unit.states])
    return sha256(json.dumps(seen).encode()).hexdigest()
