"""GTA-Workflow scored inside an evaluation, where Inspect is given a model for the role `judge`.

`gta run workflow` judges afterwards instead, from what the run keeps.
"""

from typing import Any

from inspect_ai.model import get_model, model_roles
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from gta_bench.judging.options import judge_options
from gta_bench.judging.run_evidence import RunEvidence
from gta_bench.metrics.strict.workflow import pool
from gta_bench.metrics.table import JUDGED
from gta_bench.metrics.workflow_scores import task_score
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import VerdictRow
from gta_bench.records.workflow import WorkflowTask
from gta_bench.records.workflow_scores import TaskScore
from gta_bench.runs.samples import read_task, read_unit_data
from gta_bench.settings import JudgeSettings
from gta_bench.tasks.context import artefact_store, current_settings, current_spending
from gta_bench.tasks.judging import ROLE, judged, open_judge

UNIT = "unit"


@metric
def workflow_rates() -> Metric:
    """Root Score, Root SR and Leaf SR over the tasks that have a root."""

    def pool_scores(scores: list[SampleScore]) -> Value:
        tasks = [TaskScore.model_validate((one.score.metadata or {})[UNIT]) for one in scores]
        settings = current_settings().judge
        pooled = pool(
            "all",
            tasks,
            leaf_threshold=settings.leaf_threshold,
            root_threshold=settings.root_threshold,
        )
        rates = {name: getattr(pooled, name) for name in JUDGED}
        return {name: float("nan") if rate is None else rate for name, rate in rates.items()}

    return pool_scores


@scorer(metrics=[workflow_rates()])
def judged_root() -> Scorer:
    """The root score by the model of the role `judge`; no score at all without that role."""

    async def score(state: TaskState, target: Target) -> Score | None:
        if ROLE not in model_roles():
            return None
        unit = _unit(state)
        rows = await _judged(unit, current_settings().judge)
        by_repeat: dict[int, dict[str, VerdictRow]] = {}
        for row in rows:
            by_repeat.setdefault(row.key.repeat, {})[row.key.leaf] = row
        found = task_score(unit, by_repeat, repeats=max(by_repeat, default=1))
        about: dict[str, Any] = {
            UNIT: found.model_dump(mode="json"),
            "verdicts": [row.model_dump(mode="json") for row in rows],
        }
        if found.root is None:
            return Score.unscored(reason="scoring_failed", metadata=about)
        return Score(value=found.root, metadata=about)

    return score


async def _judged(unit: WorkflowUnit, settings: JudgeSettings) -> list[VerdictRow]:
    options = judge_options(settings)
    judge = open_judge(get_model(role=ROLE), options, repeats=settings.repeats)
    folder = artefact_store().folder.parent
    source = RunEvidence(folder, current_settings())
    return list(await judged(folder, unit, judge, source, {}, current_spending()))


def _unit(state: TaskState) -> WorkflowUnit:
    data = read_unit_data(state.store.items())
    return WorkflowUnit(
        task=read_task(state.metadata, WorkflowTask),
        epoch=state.epoch,
        trace=data.steps or (),
        calls=data.calls,
        deliverables=data.deliverables,
        inputs=data.inputs,
    )
