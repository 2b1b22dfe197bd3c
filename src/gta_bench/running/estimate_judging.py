"""Estimates what judges take for the rest of a run, from judged units or from a guess."""

from collections.abc import Mapping, Sequence
from typing import Final

from gta_bench.datasets.workflow import load_workflow
from gta_bench.judging import prompts
from gta_bench.judging.messages import UnitPrompt
from gta_bench.metrics.checked import is_open_to_judge
from gta_bench.records.attempts import UnitKey
from gta_bench.records.checks import CHECK
from gta_bench.records.evidence import Evidence
from gta_bench.records.run import RunManifest
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from gta_bench.running.estimate import (
    LESS,
    MORE,
    Guess,
    KnownUse,
    ModelUse,
    UsageRange,
    count_tokens,
    is_continued,
)
from gta_bench.running.judge_run import Judging, judge_names, name_judge
from gta_bench.running.system_run import Resources
from gta_bench.runs.logs import unit_keys
from gta_bench.runs.store import StorePath
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.tasks.judging import find_judgeable_units

# Least and most tokens of evidence in a call besides the prompt, and of one verdict.
_EVIDENCE, _EVIDENCE_MOST = 1_000, 10_000
_VERDICT, _VERDICT_MOST = 60, 400
_BASIS: Final = (
    f"a guess of {_EVIDENCE:,} to {_EVIDENCE_MOST:,} tokens of evidence per call and "
    f"{_VERDICT} to {_VERDICT_MOST} tokens per verdict"
)


def estimate_judging(
    manifest: RunManifest,
    resources: Resources,
    out: StorePath,
    judging: Judging,
    *,
    rounds: int = 0,
) -> list[UsageRange]:
    """Estimate what each judge takes for the units that it has not judged, run or not."""
    tasks = load_workflow(resources.data).tasks
    verdicts = read_verdicts(out) if is_continued(manifest, out) else {}
    return _estimate(
        unit_keys(manifest.spec.tasks, manifest.spec.epochs), tasks, verdicts, judging, rounds
    )


def estimate_stored(run: StorePath, judging: Judging) -> list[UsageRange]:
    """Estimate what each judge takes for the units of a stored run that it has not judged."""
    units = find_judgeable_units(run).values()
    keys = [(unit.task.id, unit.epoch) for unit in units]
    tasks = {unit.task.id: unit.task for unit in units}
    return _estimate(keys, tasks, read_verdicts(run), judging)


def _estimate(
    units: Sequence[UnitKey],
    tasks: Mapping[str, WorkflowTask],
    verdicts: Mapping[VerdictKey, VerdictRow],
    judging: Judging,
    rounds: int = 0,
) -> list[UsageRange]:
    units = [key for key in units if _judged_leaves(tasks[key[0]])]
    guesses = {name: _guess(tasks[name], judging) for name, _ in units}
    rows: dict[tuple[str, UnitKey], list[VerdictRow]] = {}
    for key, row in verdicts.items():
        rows.setdefault((key.judge, (key.task, key.epoch)), []).append(row)
    found = []
    names = [name_judge(model, judging.options) for model in judging.models]
    for name, model in zip(judge_names(judging, names), judging.models, strict=True):
        judged = {key: rows.get((name, key), []) for key in units}
        finished = {
            key: _measured(own, guesses[key[0]])
            for key, own in judged.items()
            if _is_judged(own, _open_leaves(tasks[key[0]], key, verdicts), judging)
        }
        known = KnownUse(f"{name} as judge", model.settings, guesses, finished, _BASIS)
        ranges = known.estimate(units, rounds)
        if judging.cascade is not None and model is judging.models[-1]:
            # The second judge is asked only if the first is in doubt, so perhaps never.
            ranges = [one._replace(low=ModelUse()) for one in ranges]
        found += ranges
    return found


def _judged_leaves(task: WorkflowTask) -> list[Checkpoint]:
    """Return the leaves that a judge may decide."""
    return [leaf for leaf in task.leaves() if leaf.by != "check"]


def _open_leaves(
    task: WorkflowTask, unit: UnitKey, verdicts: Mapping[VerdictKey, VerdictRow]
) -> list[Checkpoint]:
    """Return the leaves that a judge may decide, without those that failed their checks."""
    found = []
    for leaf in _judged_leaves(task):
        key = VerdictKey(task=unit[0], epoch=unit[1], leaf=leaf.id, judge=CHECK)
        row = verdicts.get(key)
        decided = row is not None and isinstance(row.verdict, Scored)
        if not decided or is_open_to_judge(leaf, row):
            found.append(leaf)
    return found


def _guess(task: WorkflowTask, judging: Judging) -> Guess:
    """Guess a unit's calls from its prompt, without the evidence, which does not exist yet."""
    options, leaves = judging.options, _judged_leaves(task)
    prompt = UnitPrompt(task, Evidence(answer=""), options, lambda _: b"")
    size = options.leaves_per_call
    asked = [
        count_tokens(message.text for message in prompt.ask(leaves[start : start + size]))
        for start in range(0, len(leaves), size)
    ]
    calls = judging.repeats * len(asked)
    ends = []
    for less, evidence, verdict in (
        (LESS, _EVIDENCE, _VERDICT),
        (MORE, _EVIDENCE_MOST, _VERDICT_MOST),
    ):
        sent = sum(min(less * one + evidence, options.context_tokens) for one in asked)
        written = judging.repeats * len(leaves) * verdict
        ends.append(ModelUse(calls + options.control, judging.repeats * sent, written))
    return Guess(*ends)


def _is_judged(rows: Sequence[VerdictRow], leaves: Sequence[Checkpoint], judging: Judging) -> bool:
    """Whether every leaf has a score by the current prompts; others are judged again."""
    names, asked = {leaf.id for leaf in leaves}, prompts.digest()
    own = [row for row in rows if row.key.leaf in names]
    scored = (isinstance(row.verdict, Scored) and row.prompts == asked for row in own)
    return len(own) >= judging.repeats * len(names) and all(scored)


def _measured(rows: Sequence[VerdictRow], guess: Guess) -> ModelUse:
    """Sum what a unit's verdicts took; the number of calls follows from the options."""
    return ModelUse(
        guess.low.calls,
        sum(row.input_tokens for row in rows),
        sum(row.output_tokens for row in rows),
    )
