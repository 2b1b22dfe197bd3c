"""How a judge is asked: its options, the name they give it, and the marks in its prompts.

Every option that can change a verdict is part of the judge's name.
"""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Annotated, Literal, get_args

from pydantic import Field, JsonValue

from gta_bench.records.base import Record
from gta_bench.records.evidence import Evidence
from gta_bench.records.workflow import WorkflowTask
from gta_bench.settings import JudgeSettings

Visibility = Literal["full", "upstream"]
# Defenses against works that try to talk the judge into a score; each can be switched off to
# measure it. frame: a mark around the evidence that no file can contain. roles: instructions are
# only in the system message. reply: a verdict counts only under a name that no file can contain.
# findings: the list of files reports hidden text and text that is addressed to a judge.
Defense = Literal["frame", "roles", "reply", "findings"]
DEFENSES: tuple[Defense, ...] = get_args(Defense)

FRAME_DIGITS = 16
NAME_DIGITS = 6
KNOWN = "EVIDENCE"  # the mark without the defense `frame`, which anybody can imitate
CONTROL = "control"
# A judge that gives more than this to a requirement that cannot be met is not judging.
MOST_CONTROL = 3.0


class JudgeOptions(Record):
    """What the judge sees, and how many leaves share a call.

    `context_tokens` is the size of a call with its reply. `pictures` is off for models that cannot
    see. `batch` uses the provider's batch mode if it has one: half the price at many providers,
    after minutes or hours. `control` asks first about a requirement that cannot be met, and
    discards the scores of a judge that says it is met. `without` switches defenses off.
    """

    visibility: Visibility = "full"
    leaves_per_call: Annotated[int, Field(ge=1)] = 1
    inputs: bool = True
    pictures: bool = True
    context_tokens: Annotated[int, Field(ge=2048)] = 128_000
    batch: bool = False
    control: bool = False
    without: tuple[Defense, ...] = ()


def judge_options(settings: JudgeSettings) -> JudgeOptions:
    """Return the judge's options from the settings."""
    return JudgeOptions(**settings.model_dump(include=set(JudgeOptions.model_fields)))


def judge_name(
    model: str, options: JudgeOptions, asked: Mapping[str, JsonValue] | None = None
) -> str:
    """Return the name under which a judge's verdicts are stored: `openai/gpt-5 [pictures=off]`.

    `asked` has the options of its model that can change a verdict (`judge.verdict_settings`). The
    name has no defaults, nor `batch`, which cannot change a verdict.
    """
    chosen = options.model_dump(exclude_defaults=True, exclude={"batch"}) | dict(asked or {})
    named = [f"{name}={_format(value)}" for name, value in chosen.items() if value is not None]
    return f"{model} [{', '.join(named)}]" if named else model


def _format(value: object) -> str:
    if isinstance(value, tuple):
        return "+".join(map(str, value))
    if isinstance(value, dict | list):
        return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]
    return {False: "off", True: "on"}[value] if isinstance(value, bool) else str(value)


class Marks:
    """The marks of one unit: around its evidence, on the names of its leaves, and a control code.

    They are digests of everything the judge is shown, so no work can contain them: a file with its
    own unit's mark would be another file, with another mark. All calls of a unit share its marks,
    so that providers find the evidence in their prefix caches.
    """

    def __init__(self, task: WorkflowTask, evidence: Evidence, options: JudgeOptions) -> None:
        self._secret = f"{task.id}\n{evidence.digest}"
        self._options = options

    @property
    def frame(self) -> str:
        """The mark of the lines around the evidence."""
        return KNOWN if "frame" in self._options.without else self._digits("", FRAME_DIGITS)

    @property
    def code(self) -> str:
        """The code that the control asks for, which no work contains."""
        return self._digits("code", FRAME_DIGITS)

    def name(self, leaf: str) -> str:
        """Return a leaf's name in the prompt: its id, and digits of this unit."""
        if "reply" in self._options.without:
            return leaf
        return f"{leaf}~{self._digits(f'leaf {leaf}', NAME_DIGITS)}"

    def names(self, leaves: Iterable[str]) -> list[str]:
        """Return the names that a reply may use."""
        asked = [*leaves, CONTROL] if self._options.control else leaves
        return [self.name(leaf) for leaf in asked]

    def _digits(self, purpose: str, count: int) -> str:
        text = f"{self._secret}\n{purpose}" if purpose else self._secret
        return sha256(text.encode()).hexdigest()[:count]
