"""A judge as an entry of a run's registry."""

import json
from datetime import datetime
from hashlib import sha256

from gta_bench.judging import prompts
from gta_bench.judging.judge import Judge
from gta_bench.records.judges import JudgeEntry


def judge_entry(judge: Judge, at: datetime) -> JudgeEntry:
    """The judge with a digest of all that can move its verdicts."""
    config = judge.model.config
    held = {
        "name": judge.name,
        "model": str(judge.model),
        "options": judge.options.model_dump(mode="json", exclude={"batch"}),
        "temperature": config.temperature,
        "seed": config.seed,
        "prompts": prompts.digest(),
    }
    digest = sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()
    return JudgeEntry.model_validate({"digest": digest, "first": at, "last": at, **held})
