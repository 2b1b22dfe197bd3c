"""GTA-Workflow's reward: a judge scores the checkpoint leaves at the end of an episode."""

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
from gta_bench.rl.rewards import Moment, Reward, Rewards
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.settings import Settings
from gta_bench.tasks.judging import open_judge
from gta_bench.tasks.workflow import store_workspace_file

MOST = 10.0
NOTHING_YET = Reward(0.0)


def leaf_rewards(
    model: Model, settings: Settings, *, folder: Path, options: JudgeOptions | None = None
) -> Rewards:
    """Return a reward that is 0 until the end, then the root score of the deliverables, 0 to 1.

    `folder` stores files and evidence by content, so that nothing is rendered twice. If a leaf has
    no score, the reward of the episode is None, not 0.
    """
    judge = open_judge(model, options or JudgeOptions())
    store = ArtefactStore(folder / ARTEFACTS)
    source = RunEvidence(folder, settings)

    async def reward(moment: Moment) -> Reward:
        if not moment.done:
            return NOTHING_YET
        unit = _make_unit(moment, store)
        rows = await _judge(unit, judge, source)
        scored = ((row.key.leaf, row.verdict) for row in rows)
        leaves = {leaf: one.value for leaf, one in scored if isinstance(one, Scored)}
        root = root_score(unit.task.checkpoints, leaves)
        parts = {leaf: value / MOST for leaf, value in leaves.items()}
        if root is None:
            return Reward(None, parts, f"{len(leaves)} of {len(rows)} leaves have a score.")
        return Reward(root / MOST, parts)

    return reward


def _make_unit(moment: Moment, store: ArtefactStore) -> WorkflowUnit:
    assert isinstance(moment.task, WorkflowTask), "GTA-Atomic has no checkpoints"
    written = [file.path for file in moment.workspace.outputs().files]
    given = [item.path for item in moment.task.attachments]
    return WorkflowUnit(
        task=moment.task,
        trace=moment.work.trace,
        deliverables=tuple(store_workspace_file(moment.workspace, store, path) for path in written),
        inputs=tuple(store_workspace_file(moment.workspace, store, path) for path in given),
    )


async def _judge(unit: WorkflowUnit, judge: Judge, source: RunEvidence) -> Sequence[VerdictRow]:
    async def keep(rows: Sequence[VerdictRow]) -> None:
        """Only the reward is needed, so verdicts are not stored."""

    try:
        evidence = await source.evidence(unit)
    except GtaError:
        return ()
    return await judge_unit(unit.task, evidence, judge, pictures=source.picture, keep=keep)
