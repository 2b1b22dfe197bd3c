"""What stands beside a run's number, because the number alone would be taken for more than it is.

A badge is a few words: fewer tasks than the dataset has, a scripted model or judge, and which
similarity compared free text.
"""

from collections.abc import Mapping
from typing import Final

from gta_bench.errors import counted
from gta_bench.records.run import DatasetName, RunManifest
from gta_bench.records.scores import RunScores

# Tasks of the datasets as released.
RELEASED_TASKS: Final[Mapping[DatasetName, int]] = {"atomic": 229, "workflow": 132}
# Providers that answer from a script, as in the demo and in tests.
SCRIPTED: Final = ("mockllm", "scripted")
# Agents of ours that ask no model.
SCRIPTED_AGENTS: Final = ("gold", "silent")
# The agent that speaks the published protocol.
UPSTREAM_AGENT: Final = "react-upstream"


def run_badges(manifest: RunManifest) -> tuple[str, ...]:
    """What a run's number is not: one of the whole dataset, or one of a real model."""
    edited = () if manifest.edited_from is None else ("edited requirements",)
    return (
        *_task_badges(manifest),
        *edited,
        *_model_badges(manifest),
        *_wording_badges(manifest),
    )


def score_badges(scores: RunScores) -> tuple[str, ...]:
    """How many tasks have a prediction where some have none, and which model compared free text."""
    found = f"predictions for {scores.n - scores.missing} of {counted(scores.n, 'task')}"
    return (*((found,) if scores.missing else ()), f"similarity {scores.similarity}")


def judge_badges(judge: str) -> tuple[str, ...]:
    """What a judge's number is not: one of a real model."""
    return ("scripted judge",) if is_scripted(judge) else ()


def _task_badges(manifest: RunManifest) -> list[str]:
    chosen, released = len(manifest.spec.tasks), RELEASED_TASKS[manifest.spec.dataset]
    every = released if manifest.dataset_tasks is None else manifest.dataset_tasks
    badges = []
    if chosen < every:
        badges.append(f"subset: {chosen:,} of {counted(every, 'task')}")
    if every != released:
        badges.append(f"dataset of {counted(every, 'task')}, not the released {released}")
    return badges


def _model_badges(manifest: RunManifest) -> list[str]:
    system = manifest.spec.system
    if system.agent in SCRIPTED_AGENTS:
        return [f"scripted agent ({system.agent})"]
    return ["scripted model"] if is_scripted(system.model) else []


def _wording_badges(manifest: RunManifest) -> list[str]:
    """Whose words the published protocol was spoken in; the first manifests do not say: ours."""
    if manifest.spec.system.agent != UPSTREAM_AGENT:
        return []
    published = manifest.spec.wording == "published"
    return ["published prompts" if published else "prompts in our own words"]


def is_scripted(model: str) -> bool:
    """Whether its answers come from a script."""
    return model.partition("/")[0] in SCRIPTED
