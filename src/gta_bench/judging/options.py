"""How a judge is asked; every choice that can move a verdict is part of the judge's name."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from gta_bench.records.base import Record
from gta_bench.settings import JudgeSettings

Visibility = Literal["full", "upstream"]
# What keeps a work from talking the judge into a score; each can be switched off to measure it.
# frame: a mark around the evidence that no file can contain. roles: instructions stand in the
# system message alone. reply: a verdict counts only under a name that no file can contain.
# findings: the list tells of hidden text and of text that speaks to a judge.
Defence = Literal["frame", "roles", "reply", "findings"]
DEFENCES: tuple[Defence, ...] = ("frame", "roles", "reply", "findings")


class JudgeOptions(Record):
    """What the judge sees, and how many leaves share a call.

    `context_tokens` is what a call may take with its reply. `pictures` is off for models that
    cannot see. `batch` uses the provider's batch mode where it has one: half the price at many
    providers, after minutes or hours. `control` asks first about a requirement that cannot be met,
    and takes no score from a judge that says it is. `without` switches defences off.
    """

    visibility: Visibility = "full"
    leaves_per_call: Annotated[int, Field(ge=1)] = 1
    inputs: bool = True
    pictures: bool = True
    context_tokens: Annotated[int, Field(ge=2048)] = 128_000
    batch: bool = False
    control: bool = False
    without: tuple[Defence, ...] = ()


def judge_options(settings: JudgeSettings) -> JudgeOptions:
    """The settings as the judge knows them."""
    return JudgeOptions(
        visibility=settings.visibility,
        leaves_per_call=settings.leaves_per_call,
        inputs=settings.inputs,
        pictures=settings.pictures,
        context_tokens=settings.context_tokens,
        batch=settings.batch,
        control=settings.control,
    )


# What cannot move a verdict is not named; what has its default is not either.
_NAMED = (
    *("visibility", "leaves_per_call", "inputs", "pictures", "context_tokens"),
    *("control", "without"),
)


def judge_name(
    model: str, options: JudgeOptions, asked: Mapping[str, JsonValue] | None = None
) -> str:
    """The name under which a judge's verdicts are kept: `openai/gpt-5 [leaves_per_call=4]`.

    `asked` has the options of its model that can move a verdict (`registry.asked_settings`).
    """
    usual = JudgeOptions()
    chosen: dict[str, object] = {
        name: getattr(options, name)
        for name in _NAMED
        if getattr(options, name) != getattr(usual, name)
    }
    chosen |= asked or {}
    named = [f"{name}={_written(value)}" for name, value in chosen.items() if value is not None]
    return f"{model} [{', '.join(named)}]" if named else model


def _written(value: object) -> str:
    if isinstance(value, tuple):
        return "+".join(map(str, value))
    if isinstance(value, dict | list):
        return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]
    return {False: "off", True: "on"}[value] if isinstance(value, bool) else str(value)
