"""Checkpoint-guided feedback: a system gets a round's failed leaves, and continues its work.

The first round is an ordinary run; round k is an ordinary run in `rounds/<k>` of its folder. All
rounds share one copy of files and evidence.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from inspect_ai.model import Model

from gta_bench.agents.prompts import render
from gta_bench.errors import RunError, UsageError
from gta_bench.judging.evidence_store import EVIDENCE
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.records.run import Feedback, FeedbackLevel, RunManifest
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.running.backends.backend import INLINE, Backend
from gta_bench.running.shards import Listener
from gta_bench.running.system_run import Resources, execute
from gta_bench.runs.artefacts import ARTEFACTS
from gta_bench.runs.directory import (
    files_folder,
    log_folder,
    open_run,
    read_manifest,
    round_folder,
)
from gta_bench.runs.logs import read_finished, read_units
from gta_bench.runs.store import StorePath
from gta_bench.runs.verdicts import append_verdicts, read_verdicts
from gta_bench.tasks.context import Earlier

SHARED = (ARTEFACTS, EVIDENCE)


class Judged(NamedTuple):
    """A judge's scores of a round; `stopped` by a limit of the budget, or not."""

    judge: str
    scores: WorkflowScores
    stopped: bool = False


JudgeRound = Callable[[StorePath], Judged]
_Watching = Callable[[StorePath], AbstractContextManager[Listener]]


def run_rounds(
    planned: RunManifest,
    resources: Resources,
    out: StorePath,
    watching: _Watching,
    judging: JudgeRound,
    *,
    rounds: int,
    level: FeedbackLevel,
    model: Model | None = None,
    backend: Backend = INLINE,
) -> Iterator[tuple[StorePath, Judged]]:
    """Run and judge the first round and `rounds` more; stop after one with units without a root."""
    if rounds and not isinstance(out, Path):
        raise UsageError(
            "--feedback-rounds continues in the workspaces of the previous round, which a store "
            "does not keep: use a local folder as --out."
        )
    earlier = None
    for number in range(1, rounds + 2):
        folder = round_folder(out, number)
        with watching(folder) as listener:
            execute(
                planned,
                resources,
                folder,
                listener,
                model=model,
                earlier=earlier,
                backend=backend,
            )
        judged = judging(folder)
        yield folder, judged
        table = judged.scores.table(judged.judge)
        complete = table is None or table.strict.n == table.strict.n_units
        if number > rounds or not complete:
            return
        assert isinstance(out, Path) and isinstance(folder, Path)
        earlier = collect_feedback(folder, judged, level)
        back = Feedback(round=number + 1, level=level, judge=judged.judge)
        planned = planned.with_spec(feedback=back)
        after = round_folder(out, number + 1)
        open_run(after, planned)
        for name in SHARED:
            (out / name).mkdir(exist_ok=True)
            if not (after / name).is_symlink():
                (after / name).symlink_to(Path("..") / ".." / name)
        # Units without feedback are not judged again: they keep their verdicts.
        known = read_verdicts(after)
        carried = [
            row
            for key, row in read_verdicts(folder).items()
            if (key.task, key.epoch) not in earlier.words
            and key.judge == judged.judge
            and key not in known
        ]
        append_verdicts(after, carried)


def collect_feedback(folder: Path, judged: Judged, level: FeedbackLevel) -> Earlier:
    """Collect what the next round needs from a finished one, with the feedback for each unit.

    The level `pass-fail` names failed leaves only by number, `score` adds the score, and `reason`
    adds the requirement and why the judge found it unmet.
    """
    spec = read_manifest(folder).spec
    table = judged.scores.table(judged.judge)
    if table is None:
        raise RunError(f"{folder} has no verdict of {judged.judge!r} to use as feedback.")
    reasons: dict[tuple[str, int, str], list[str]] = {}
    for verdict, row in sorted(read_verdicts(folder).items(), key=lambda item: item[0].repeat):
        if verdict.judge == judged.judge and isinstance(row.verdict, Scored):
            own = reasons.setdefault((verdict.task, verdict.epoch, verdict.leaf), [])
            own.append(" ".join(row.verdict.reason.split()))
    units = read_units(log_folder(folder), spec.tasks, spec.epochs, WorkflowUnit).units
    scores = {(one.task, one.epoch): one for one in table.tasks}
    texts = {}
    for unit in units:
        key = (unit.task.id, unit.epoch)
        lines = []
        leaves = zip(unit.task.leaves(), scores[key].leaves, strict=True)
        for number, (leaf, outcome) in enumerate(leaves, start=1):
            # A leaf without a score did not fail.
            if outcome.value is None or succeeds(outcome.value, judged.scores.leaf_threshold):
                continue
            line = f"- checkpoint {number}: failed"
            if level != "pass-fail":
                line += f", {outcome.value:g} of 10"
            if level == "reason":
                review = " / ".join(reasons.get((*key, leaf.id), ()))
                line += f". Required: {leaf.requirements} Review: {review}"
            lines.append(line)
        if lines:
            total = str(len(scores[key].leaves))
            texts[key] = render("feedback.md", total=total, failed="\n".join(lines))
    return Earlier(files_folder(folder), read_finished(log_folder(folder)), texts)
