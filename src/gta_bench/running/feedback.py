"""Checkpoint-guided feedback: a round's failing leaves go back to the system, which goes on.

The first round is an ordinary run; round k is an ordinary run in `rounds/<k>` of its folder. Files
and evidence are kept once for all rounds.
"""

from collections.abc import Callable, Iterator, Mapping
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
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.records.workflow import WorkflowTask
from gta_bench.records.workflow_scores import TaskScore, WorkflowScores
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
    """What a judge made of a round: the name of its verdicts, and the scores.

    It may have been `stopped` by a limit of the budget.
    """

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
    """Run and judge the first round and `rounds` more; ends where one has units without a root."""
    if rounds and not isinstance(out, Path):
        raise UsageError(
            "--feedback-rounds continues in the workspaces of the round before, which a store does "
            "not keep: name a folder of this machine as --out."
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
        if number > rounds or not _complete(judged):
            return
        assert isinstance(out, Path) and isinstance(folder, Path)
        earlier = look_back(folder, judged, level)
        back = Feedback(round=number + 1, level=level, judge=judged.judge)
        planned = planned.with_spec(feedback=back)
        _open_round(out, number + 1, planned)
        _carry_verdicts(folder, round_folder(out, number + 1), earlier, judged.judge)


def look_back(folder: Path, judged: Judged, level: FeedbackLevel) -> Earlier:
    """What a finished round leaves to the next one."""
    manifest, verdicts = read_manifest(folder), read_verdicts(folder)
    units = read_units(
        log_folder(folder), manifest.spec.tasks, manifest.spec.epochs, WorkflowUnit
    ).units
    table = judged.scores.table(judged.judge)
    if table is None:
        raise RunError(f"{folder} has no verdict of {judged.judge!r} that could go back.")
    scores = {(one.task, one.epoch): one for one in table.tasks}
    words = {}
    for unit in units:
        key = (unit.task.id, unit.epoch)
        said = feedback_words(
            unit.task, scores[key], verdicts, judged, level, repeats=table.repeats
        )
        if said is not None:
            words[key] = said
    return Earlier(files_folder(folder), read_finished(log_folder(folder)), words)


def feedback_words(
    task: WorkflowTask,
    score: TaskScore,
    verdicts: Mapping[VerdictKey, VerdictRow],
    judged: Judged,
    level: FeedbackLevel,
    *,
    repeats: int = 1,
) -> str | None:
    """What the system is told; None where no leaf failed. A leaf without a score did not fail.

    `pass-fail` names leaves by their number alone, `score` adds the score, and `reason` adds the
    requirement and why the judge found it unmet.
    """
    lines = []
    for number, (leaf, outcome) in enumerate(
        zip(task.leaves(), score.leaves, strict=True), start=1
    ):
        if outcome.value is None or succeeds(outcome.value, judged.scores.leaf_threshold):
            continue
        line = f"- checkpoint {number}: failed"
        if level != "pass-fail":
            line += f", {outcome.value:g} of 10"
        if level == "reason":
            keys = [
                VerdictKey(
                    task=task.id, epoch=score.epoch, leaf=leaf.id, judge=judged.judge, repeat=one
                )
                for one in range(1, repeats + 1)
            ]
            line += f". Required: {leaf.requirements} Review: {_reasons(keys, verdicts)}"
        lines.append(line)
    if not lines:
        return None
    return render("feedback.md", total=str(len(score.leaves)), failed="\n".join(lines))


def _complete(judged: Judged) -> bool:
    """Whether the judge whose verdicts go back gave every unit a root."""
    table = judged.scores.table(judged.judge)
    return table is None or table.strict.n == table.strict.n_units


def _reasons(keys: list[VerdictKey], verdicts: Mapping[VerdictKey, VerdictRow]) -> str:
    found = (verdicts[key].verdict for key in keys if key in verdicts)
    return " / ".join(
        " ".join(verdict.reason.split()) for verdict in found if isinstance(verdict, Scored)
    )


def _open_round(out: Path, number: int, planned: RunManifest) -> None:
    """The round's folder; what is kept by content is shared with the first round."""
    folder = round_folder(out, number)
    open_run(folder, planned)
    for name in SHARED:
        (out / name).mkdir(exist_ok=True)
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(Path("..") / ".." / name)


def _carry_verdicts(before: StorePath, after: StorePath, earlier: Earlier, judge: str) -> None:
    """Units with nothing to mend are not judged again: their verdicts hold."""
    known = read_verdicts(after)
    append_verdicts(
        after,
        [
            row
            for key, row in read_verdicts(before).items()
            if (key.task, key.epoch) not in earlier.words
            and key.judge == judge
            and key not in known
        ],
    )
