"""Write the reward of an exported Harbor task from its scored run.

The verifier of the task runs it: `python3 -m gta_bench.exports.harbor_reward RUN LOGS`.
"""

import json
import sys
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from gta_bench.errors import GtaError, RunError
from gta_bench.exports.unit_scores import OneScore, UnitScores, choose_judge
from gta_bench.metrics.strict.workflow import leaf_shares
from gta_bench.records.units import WorkflowUnit
from gta_bench.runs.directory import read_manifest
from gta_bench.runs.logs import read_run_units

TOTAL: Final = "reward"
REWARDS: Final = "reward.json"
# Rewardkit's file beside it, which Harbor's viewer shows.
DETAILS: Final = "reward-details.json"


def write_reward(run: Path, logs: Path) -> None:
    """Write `reward.json` with the total and each leaf from 0 to 1, and why in rewardkit's layout.

    A task without a delivery gets 0. Raises RunError, and writes nothing, if the task or a leaf has
    no score: Harbor reports a missing file as an error, but would report a 0 as the agent's.
    """
    (unit,) = read_run_units(run, read_manifest(run).spec)
    leaves = leaf_shares(unit.task) if isinstance(unit, WorkflowUnit) else {}
    scores = _read_scores(run, unit.task.id) if unit.delivered else {}
    values = {name: (one.value or 0.0) / one.top for name, one in scores.items()}
    rewards = {TOTAL: values.get(None, 0.0)}
    rewards |= {f"leaf/{name}": values.get(name, 0.0) for name in leaves}
    criteria = [
        _describe(name, weight, rewards[f"leaf/{name}"], scores.get(name))
        for name, weight in leaves.items()
    ]
    about = {"kind": "programmatic", "score": rewards[TOTAL], "criteria": criteria}
    logs.mkdir(parents=True, exist_ok=True)
    for file, content in ((DETAILS, {TOTAL: about}), (REWARDS, rewards)):
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (logs / file).write_text(f"{text}\n", encoding="utf-8", newline="\n")


def _read_scores(run: Path, task: str) -> dict[str | None, OneScore]:
    """Return the score of the task, under None, and those of its leaves."""
    scores = UnitScores(run)
    choose_judge(scores, "a reward")
    total, *others = scores.of((task, 1))
    if total.value is None:
        raise RunError(f"Task {task} has no score. {total.reason or total.cause}")
    return {None: total, **{one.leaf: one for one in others}}


def _describe(name: str, weight: float, value: float, score: OneScore | None) -> JsonValue:
    if score is None:
        by, reason = "not delivered", ""
    else:
        by = "decided by checks" if score.by_check else f"decided by {score.judge}"
        reason = score.reason
    return {
        "name": name,
        "value": value,
        "raw": value,
        "weight": weight,
        "description": by,
        "reasoning": reason,
    }


if __name__ == "__main__":
    try:
        write_reward(Path(sys.argv[1]), Path(sys.argv[2]))
    except GtaError as exc:
        sys.exit(f"No reward: {exc}")
