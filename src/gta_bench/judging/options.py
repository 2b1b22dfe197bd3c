"""How a judge is asked; every choice that can move a verdict is part of the judge's name."""

from typing import Annotated, Literal

from pydantic import Field

from gta_bench.records.base import Record

Visibility = Literal["full", "upstream"]


class JudgeOptions(Record):
    """What the judge sees, and how many leaves share a call.

    `context_tokens` is what a call may take with its reply. `pictures` is off for models that
    cannot see. `batch` uses the provider's batch mode where it has one: half the price at many
    providers, after minutes or hours.
    """

    visibility: Visibility = "full"
    leaves_per_call: Annotated[int, Field(ge=1)] = 1
    inputs: bool = True
    pictures: bool = True
    context_tokens: Annotated[int, Field(ge=2048)] = 128_000
    batch: bool = False


# What cannot move a verdict is not named; what has its default is not either.
_NAMED = ("visibility", "leaves_per_call", "inputs", "pictures", "context_tokens")


def judge_name(
    model: str, options: JudgeOptions, *, temperature: float | None = None, seed: int | None = None
) -> str:
    """The name under which a judge's verdicts are kept: `openai/gpt-5 [leaves_per_call=4]`."""
    usual = JudgeOptions()
    chosen: dict[str, object] = {
        name: getattr(options, name)
        for name in _NAMED
        if getattr(options, name) != getattr(usual, name)
    }
    chosen |= {"temperature": temperature, "seed": seed}
    named = [f"{name}={_written(value)}" for name, value in chosen.items() if value is not None]
    return f"{model} [{', '.join(named)}]" if named else model


def _written(value: object) -> str:
    return "off" if value is False else str(value)
