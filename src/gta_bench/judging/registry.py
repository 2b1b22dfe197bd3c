"""A judge as an entry of a run's registry."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from inspect_ai.model import GenerateConfig
from pydantic import JsonValue

from gta_bench.judging import prompts
from gta_bench.judging.judge import Judge
from gta_bench.records.base import is_json
from gta_bench.records.judges import JudgeEntry

# What bounds a judge, and what every call sets anew, moves no verdict.
_BOUNDS: Final = frozenset(
    {
        *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections"),
        *("adaptive_connections", "max_tokens", "response_schema", "batch", "cache"),
        *("extra_headers", "cache_prompt"),
    }
)


def asked_settings(config: GenerateConfig, args: Mapping[str, Any]) -> dict[str, JsonValue]:
    """The options and arguments of a judge's model that can move a verdict, in a fixed order."""
    given = config.model_dump(mode="json", exclude_none=True, exclude={*_BOUNDS})
    first: dict[str, JsonValue] = {
        name: given.pop(name) for name in ("temperature", "seed") if name in given
    }
    plain = {name: value for name, value in args.items() if is_json(value)}
    return {**first, **dict(sorted(given.items())), **dict(sorted(plain.items()))}


def judge_entry(judge: Judge, at: datetime) -> JudgeEntry:
    """The judge with a digest of all that can move its verdicts."""
    asked = asked_settings(judge.model.config, judge.model.model_args)
    entry = JudgeEntry.model_validate(
        {
            "name": judge.name,
            "digest": "",
            "model": str(judge.model),
            "options": judge.options.model_dump(mode="json", exclude={"batch"}),
            "temperature": asked.pop("temperature", None),
            "seed": asked.pop("seed", None),
            "generation": asked,
            "prompts": prompts.digest(),
            "first": at,
            "last": at,
        }
    )
    return entry.model_copy(update={"digest": entry.compute_digest()})
