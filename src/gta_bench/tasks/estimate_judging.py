"""What judges would take for the rest of a run, judged units known, the others guessed."""

from collections.abc import Sequence
from typing import Final

from gta_bench.datasets.workflow import load_workflow
from gta_bench.judging.messages import UnitPrompt
from gta_bench.records.evidence import Evidence
from gta_bench.records.run import RunManifest
from gta_bench.records.verdicts import VerdictRow
from gta_bench.records.workflow import WorkflowTask
from gta_bench.runs.log_layout import Key
from gta_bench.runs.store import StorePath
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.tasks.estimate import LESS, MORE, Known, all_units, count_tokens, is_continued
from gta_bench.tasks.judge_run import Judging, name_judge
from gta_bench.tasks.system_run import Resources
from gta_bench.tasks.usage_range import Amount, Guess, UsageRange

# Tokens of evidence in a call beside the prompt, and of what a judge says of a leaf.
_EVIDENCE, _EVIDENCE_MOST = 1_000, 10_000
_VERDICT, _VERDICT_MOST = 60, 400
_BASIS: Final = (
    f"a guess of {_EVIDENCE:,} to {_EVIDENCE_MOST:,} tokens of evidence a call and "
    f"{_VERDICT} to {_VERDICT_MOST} tokens a verdict"
)


def estimate_judging(
    manifest: RunManifest,
    resources: Resources,
    out: StorePath,
    judging: Judging,
    *,
    rounds: int = 0,
) -> list[UsageRange]:
    """What each judge takes for the units that it has not judged yet, run or not."""
    units = all_units(manifest.spec)
    dataset = load_workflow(resources.data)
    tasks = {task: dataset.tasks[task] for task in manifest.spec.tasks}
    guesses = {name: _guess(task, judging) for name, task in tasks.items()}
    rows: dict[tuple[str, Key], list[VerdictRow]] = {}
    for key, row in (read_verdicts(out) if is_continued(manifest, out) else {}).items():
        rows.setdefault((key.judge, (key.task, key.epoch)), []).append(row)
    found = []
    for model in judging.models:
        name = name_judge(model, judging.options)
        judged = {key: rows.get((name, key), []) for key in units}
        finished = {
            key: _measured(own, guesses[key[0]])
            for key, own in judged.items()
            if _is_judged(own, tasks[key[0]], judging)
        }
        known = Known(f"{name} as judge", model.settings, guesses, finished, _BASIS)
        found += known.estimate(units, rounds)
    return found


def _guess(task: WorkflowTask, judging: Judging) -> Guess:
    """A unit's calls with the prompt as it is, without the evidence that nobody has yet."""
    options, leaves = judging.options, [*task.leaves()]
    prompt = UnitPrompt(task, Evidence(answer=""), options, lambda _: b"")
    size = options.leaves_per_call
    asked = [
        count_tokens(message.text for message in prompt.ask(leaves[start : start + size]))
        for start in range(0, len(leaves), size)
    ]
    calls = judging.repeats * len(asked)
    ends = []
    for less, evidence, words in (
        (LESS, _EVIDENCE, _VERDICT),
        (MORE, _EVIDENCE_MOST, _VERDICT_MOST),
    ):
        sent = sum(min(less * one + evidence, options.context_tokens) for one in asked)
        said = judging.repeats * len(leaves) * words
        ends.append(Amount(calls + options.control, judging.repeats * sent, said))
    return Guess(*ends)


def _is_judged(rows: Sequence[VerdictRow], task: WorkflowTask, judging: Judging) -> bool:
    """Whether every verdict was asked for; one that was given up took no tokens."""
    wanted = judging.repeats * len([*task.leaves()])
    return len(rows) >= wanted and all(row.input_tokens for row in rows)


def _measured(rows: Sequence[VerdictRow], guess: Guess) -> Amount:
    """What a unit's verdicts took; calls follow from the options."""
    return Amount(
        guess.low.calls,
        sum(row.input_tokens for row in rows),
        sum(row.output_tokens for row in rows),
    )
