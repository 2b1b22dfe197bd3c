"""GTA-Workflow's reward: the checkpoint leaves, scored by the judge when the episode ends."""

from collections.abc import Sequence
from pathlib import Path

from inspect_ai.model import Model

from gta_bench.errors import GtaError
from gta_bench.judging.judge import Judge, judge_unit
from gta_bench.judging.options import JudgeOptions
from gta_bench.judging.run_evidence import RunEvidence
from gta_bench.metrics.strict.workflow import root_score
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictRow
from gta_bench.records.workflow import WorkflowTask
from gta_bench.rl.environment import Moment, Reward, Rewards
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.settings import Settings
from gta_bench.tasks.judging import open_judge
from gta_bench.tasks.workflow import kept_file

MOST = 10.0
NOTHING_YET = Reward(0.0)


def leaf_rewards(
    model: Model, settings: Settings, *, folder: Path, options: JudgeOptions | None = None
) -> Rewards:
    """The root score of what was delivered, 0 to 1, with its leaves; before the end nothing.

    `folder` keeps files and evidence by content, so that what was rendered once is not again.
    A leaf without a score leaves the episode without a reward, never with 0.
    """
    judge = open_judge(model, options or JudgeOptions())
    store = ArtefactStore(folder / ARTEFACTS)
    source = RunEvidence(folder, settings)

    async def reward(moment: Moment) -> Reward:
        if not moment.done:
            return NOTHING_YET
        unit = _unit(moment, store)
        leaves = _leaves(await _judged(unit, judge, source))
        root = root_score(unit.task.checkpoints, leaves)
        parts = {leaf: value / MOST for leaf, value in leaves.items()}
        return Reward(None if root is None else root / MOST, parts)

    return reward


def _unit(moment: Moment, store: ArtefactStore) -> WorkflowUnit:
    assert isinstance(moment.task, WorkflowTask), "GTA-Atomic has no checkpoints"
    written = [file.path for file in moment.workspace.outputs().files]
    given = [item.path for item in moment.task.attachments]
    return WorkflowUnit(
        task=moment.task,
        trace=moment.work.trace,
        deliverables=tuple(kept_file(moment.workspace, store, path) for path in written),
        inputs=tuple(kept_file(moment.workspace, store, path) for path in given),
    )


async def _judged(unit: WorkflowUnit, judge: Judge, source: RunEvidence) -> Sequence[VerdictRow]:
    async def keep(rows: Sequence[VerdictRow]) -> None:
        """The reward is all that is wanted of them."""

    try:
        evidence = await source.evidence(unit)
    except GtaError:
        return ()
    return await judge_unit(unit.task, evidence, judge, pictures=source.picture, keep=keep)


def _leaves(rows: Sequence[VerdictRow]) -> dict[str, float]:
    return {row.key.leaf: row.verdict.value for row in rows if isinstance(row.verdict, Scored)}
