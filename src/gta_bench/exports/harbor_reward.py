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

TOTAL: Final = "reward"
REWARDS: Final = "reward.json"
# Rewardkit's file beside it, which Harbor's viewer shows.
DETAILS: Final = "reward-details.json"


def write_reward(run: Path, logs: Path) -> None:
    """Write `reward.json` with the total and each leaf from 0 to 1, and why in rewardkit's layout.

    Raises RunError, and writes nothing, if the task or a leaf has no score: Harbor reports a
    missing file as an error, but would report a 0 as the agent's.
    """
    scores = UnitScores(run)
    choose_judge(scores, "a reward")
    (task,) = scores.manifest.spec.tasks
    total, *others = scores.of((task, 1))
    if total.value is None:
        raise RunError(f"Task {task} has no score. {total.reason or total.cause}")
    leaves = [one for one in others if one.leaf is not None]
    rewards = {TOTAL: _scale(total), **{f"leaf/{one.leaf}": _scale(one) for one in leaves}}
    details: dict[str, JsonValue] = {
        TOTAL: {
            "kind": "programmatic",
            "score": _scale(total),
            "criteria": [_describe(one) for one in leaves],
        }
    }
    logs.mkdir(parents=True, exist_ok=True)
    for name, content in ((DETAILS, details), (REWARDS, rewards)):
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (logs / name).write_text(f"{text}\n", encoding="utf-8")


def _scale(one: OneScore) -> float:
    return (one.value or 0.0) / one.top


def _describe(one: OneScore) -> JsonValue:
    return {
        "name": one.leaf,
        "value": _scale(one),
        "raw": one.value,
        "description": "decided by checks" if one.by_check else f"decided by {one.judge}",
        "reasoning": one.reason,
    }


if __name__ == "__main__":
    try:
        write_reward(Path(sys.argv[1]), Path(sys.argv[2]))
    except GtaError as exc:
        sys.exit(f"No reward: {exc}")
