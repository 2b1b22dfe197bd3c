"""Badges: short notes next to a run's score, so that it is not mistaken for more than it is.

Badges mark subsets of the dataset, scripted models and judges, and the similarity that compared
free text.
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
# Our agents that ask no model.
SCRIPTED_AGENTS: Final = ("gold", "silent")
# The agent with the published protocol.
UPSTREAM_AGENT: Final = "react-upstream"


def run_badges(manifest: RunManifest) -> tuple[str, ...]:
    """Return why a run's score is not one of the whole dataset, or of a real model."""
    spec = manifest.spec
    chosen, released = len(spec.tasks), RELEASED_TASKS[spec.dataset]
    every = released if manifest.dataset_tasks is None else manifest.dataset_tasks
    badges = []
    if chosen < every:
        badges.append(f"subset: {chosen:,} of {counted(every, 'task')}")
    if every != released:
        badges.append(f"dataset of {counted(every, 'task')}, not the released {released}")
    if manifest.edited_from is not None:
        badges.append("edited requirements")
    if spec.system.agent in SCRIPTED_AGENTS:
        badges.append(f"scripted agent ({spec.system.agent})")
    elif is_scripted(spec.system.model):
        badges.append("scripted model")
    if spec.system.agent == UPSTREAM_AGENT:
        # The first manifests do not say whose prompts were used: they were ours.
        own = "published prompts" if spec.wording == "published" else "prompts in our own words"
        badges.append(own)
    return tuple(badges)


def score_badges(scores: RunScores) -> tuple[str, ...]:
    """Return how many tasks have a prediction, if not all, and which model compared free text."""
    found = f"predictions for {scores.n - scores.missing} of {counted(scores.n, 'task')}"
    return (*((found,) if scores.missing else ()), f"similarity {scores.similarity}")


def judge_badges(judge: str) -> tuple[str, ...]:
    """Return whether a judge is not a real model."""
    return ("scripted judge",) if is_scripted(judge) else ()


def is_scripted(model: str) -> bool:
    """Whether a model's answers come from a script."""
    return model.partition("/")[0] in SCRIPTED
