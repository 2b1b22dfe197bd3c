"""Estimates what the rest of a run takes, from its prompts or from its finished units.

Prompts are built and counted; nothing is sent and nothing is written.
"""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model

from gta_bench.agents.catalog import WITHOUT_MODEL, load_agent
from gta_bench.agents.contract import History, Setup, list_dataset_files, make_step_histories
from gta_bench.agents.models import NO_MODEL
from gta_bench.datasets.model import AtomicDataset, Dataset
from gta_bench.errors import format_count
from gta_bench.metrics.reference import reference_steps
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.attempts import UnitKey
from gta_bench.records.dialogue import UserTurn
from gta_bench.records.run import RunManifest, RunMode, RunSpec
from gta_bench.running.system_run import Resources, read_dataset
from gta_bench.runs.directory import MANIFEST, read_manifest
from gta_bench.runs.logs import read_run_units, unit_keys
from gta_bench.runs.store import StorePath
from gta_bench.settings import ModelSettings
from gta_bench.tasks.scorers import format_step
from gta_bench.tasks.units import list_step_tools
from gta_bench.tools.offering import list_own_tools

# With this many finished units, their usage is a better basis than any guess.
ENOUGH_UNITS: Final = 5
# The least and greatest half-width of a range, as a share of its middle.
_NARROWEST, _WIDEST = 0.05, 0.5


class ModelUse(NamedTuple):
    """Calls and tokens of a model."""

    calls: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0

    def scale(self, factor: float) -> "ModelUse":
        """Multiply by a factor."""
        return ModelUse(*(part * factor for part in self))


class Guess(NamedTuple):
    """The least and most that a unit takes, judged by its prompts."""

    low: ModelUse
    high: ModelUse


class UsageRange(NamedTuple):
    """What `units` units of a run take of one model, and what the estimate is based on."""

    who: str
    units: int
    low: ModelUse
    high: ModelUse
    basis: str
    settings: ModelSettings

    @property
    def middle(self) -> ModelUse:
        """Halfway between low and high."""
        return ModelUse(*((a + b) / 2 for a, b in zip(self.low, self.high, strict=True)))

    def __str__(self) -> str:
        """Describe the estimate in one line."""
        low, high = self.low, self.high
        calls = _range(low.calls, high.calls)
        return (
            f"{self.who}: {format_count(self.units, 'unit')} left, "
            f"{calls} {'call' if calls == '1' else 'calls'}, "
            f"{_range(low.input_tokens, high.input_tokens)} input and "
            f"{_range(low.output_tokens, high.output_tokens)} output tokens, {self._cost()} "
            f"({self.basis})."
        )

    def _cost(self) -> str:
        prices = self.settings.input_price, self.settings.output_price
        if prices[0] is None or prices[1] is None:
            return "cost unknown: set input_price and output_price of the model in gta.toml"
        ends = [
            f"${(one.input_tokens * prices[0] + one.output_tokens * prices[1]) / 1e6:.2f}"
            for one in (self.low, self.high)
        ]
        return " to ".join(dict.fromkeys(ends))


def sum_amounts(amounts: Iterable[ModelUse]) -> ModelUse:
    """Add up amounts."""
    found = [ModelUse(), *amounts]
    return ModelUse(*map(math.fsum, zip(*found, strict=True)))


def scale_measured(
    finished: Sequence[tuple[ModelUse, ModelUse]], left: Sequence[ModelUse]
) -> tuple[ModelUse, ModelUse]:
    """Estimate the least and most that units of the sizes `left` take.

    `finished` has the size of each finished unit, judged by its prompts, and what it took. Their
    ratio is applied to `left`, so a task with longer prompts is expected to take more.
    """
    lows, highs = [], []
    for part in range(len(ModelUse._fields)):
        pairs = [(size[part], took[part]) for size, took in finished]
        sizes = [one[part] for one in left]
        guessed, took = math.fsum(x for x, _ in pairs), math.fsum(y for _, y in pairs)
        middle = error = 0.0
        if guessed and sizes:
            # The ratio estimate of a total, with two standard errors, and more if units are few.
            ratio, share = took / guessed, math.fsum(sizes) / guessed
            middle = ratio * math.fsum(sizes)
            variance = math.fsum((y - ratio * x) ** 2 for x, y in pairs) / (len(pairs) - 1)
            few = 1 + 2 / len(pairs)
            error = 2 * few * math.sqrt(variance * (len(sizes) + share**2 * len(pairs)))
        if error > 1e-6 * middle:  # what is exactly proportional, such as calls per step, is exact
            error = min(max(error, _NARROWEST * middle), _WIDEST * middle)
        lows.append(middle - error)
        highs.append(middle + error)
    return ModelUse(*lows), ModelUse(*highs)


def _range(low: float, high: float) -> str:
    ends = (_rounded(low), _rounded(high))
    return f"{ends[0]:,}" if ends[0] == ends[1] else f"{ends[0]:,} to {ends[1]:,}"


def _rounded(value: float) -> int:
    """Round to three digits: no estimate is more precise."""
    whole = round(value)
    return whole if whole < 1000 else round(whole, 3 - len(str(whole)))


# Characters per token in English and JSON, roughly.
_CHARACTERS: Final = 4
# How much tokenizers differ, in both directions.
LESS, MORE = 0.8, 1.25
# Tokens that a reasoning model writes per turn in addition to the reference's.
_THINKING: Final = 500
# Tokens that a turn adds to the history, with the tool's reply.
_GROWTH: Final = 300
# GTA-Workflow has no reference dialogue: least turns, and least and most tokens written in each.
_TURNS, _WRITES, _WRITES_MOST = 3, 150, 1_500
# Least and most tokens of an attached image.
_IMAGE, _IMAGE_MOST = 250, 1_500


class _Task(NamedTuple):
    """The lengths of a task's prompts and of the reference's replies, in tokens."""

    prompts: Sequence[int]
    replies: Sequence[int]
    images: int


def estimate_run(
    manifest: RunManifest, resources: Resources, out: StorePath, *, rounds: int = 0
) -> list[UsageRange]:
    """Estimate what the rest of the run in `out` takes of its model; empty if nothing is known.

    `rounds` are those of feedback. A harness builds its own prompts, so only finished units tell
    what it takes.
    """
    if resources.model == NO_MODEL:
        return []
    spec, units = manifest.spec, unit_keys(manifest.spec.tasks, manifest.spec.epochs)
    took = _finished_usage(manifest, out)
    finished = {key: took[key] for key in units if key in took}
    if len(finished) == len(units):
        return []
    guesses = _agent_guesses(spec, resources)
    who = f"{spec.system.model} · {spec.system.harness or spec.system.agent}"
    follows = spec.mode == "step"
    known = KnownUse(who, resources.model.settings, guesses, finished, _basis(spec), follows)
    return known.estimate(units, rounds)


def is_continued(manifest: RunManifest, out: StorePath) -> bool:
    """Whether the folder contains this run, perhaps with other tasks."""
    if not (out / MANIFEST).is_file():
        return False
    asked = {"tasks": manifest.spec.tasks, "epochs": manifest.spec.epochs}
    return read_manifest(out).with_spec(**asked).difference(manifest) is None


class KnownUse(NamedTuple):
    """What is known of a model's usage in a run: guesses by task, and what finished units took.

    It `follows` the guesses if it makes exactly their calls. Otherwise a task with many reference
    turns takes a model more than others, but less than proportionally.
    """

    who: str
    settings: ModelSettings
    guesses: Mapping[str, Guess] | None
    finished: Mapping[UnitKey, ModelUse]
    basis: str
    follows: bool = True

    def estimate(self, units: Sequence[UnitKey], rounds: int) -> list[UsageRange]:
        """Estimate the unfinished units, from the finished ones if there are enough."""
        left = [key for key in units if key not in self.finished]
        basis = self.basis
        if not left:
            return []
        if len(self.finished) >= ENOUGH_UNITS:
            sizes = self._sizes(units)
            pairs = [(sizes[key], took) for key, took in self.finished.items()]
            low, high = scale_measured(pairs, [sizes[key] for key in left])
            basis = f"from the usage of {len(self.finished)} finished units"
        elif self.guesses is None:
            return []
        else:
            low = sum_amounts(self.guesses[task].low for task, _ in left)
            high = sum_amounts(self.guesses[task].high for task, _ in left)
        high = high.scale(1 + rounds)
        return [UsageRange(self.who, len(left), low, high, basis, self.settings)]

    def _sizes(self, units: Sequence[UnitKey]) -> dict[UnitKey, ModelUse]:
        """Return what usage is expected to be proportional to; for replies, the calls."""
        if self.guesses is None:
            return dict.fromkeys(units, ModelUse(1, 1, 1))
        guesses = {key: self.guesses[key[0]].low for key in units}
        if not self.follows:
            mean = sum_amounts(guesses.values()).scale(1 / len(units))
            guesses = {key: sum_amounts([one, mean]).scale(1 / 2) for key, one in guesses.items()}
        return {key: one._replace(output_tokens=one.calls) for key, one in guesses.items()}


def _finished_usage(manifest: RunManifest, out: StorePath) -> dict[UnitKey, ModelUse]:
    if not is_continued(manifest, out):
        return {}
    return {
        (unit.task.id, unit.epoch): ModelUse(
            unit.usage.model_calls, unit.usage.input_tokens, unit.usage.output_tokens
        )
        for unit in read_run_units(out, read_manifest(out).spec)
        if unit.failure is None
    }


def _basis(spec: RunSpec) -> str:
    guess = f"a guess of {_CHARACTERS} characters a token"
    if spec.mode == "step":
        return f"{guess}, replies as long as the reference's or {_THINKING} tokens longer"
    most = spec.loop.max_turns if spec.loop is not None else 1
    least = "the reference's turns" if spec.mode == "end-to-end" else f"{_TURNS} turns a task"
    return f"{guess}, from {least} to all {most}"


def _agent_guesses(spec: RunSpec, resources: Resources) -> dict[str, Guess] | None:
    """Guess what a unit of each task takes; None for systems that build their own prompts."""
    if resources.is_foreign or spec.system.agent in WITHOUT_MODEL:
        return None
    dataset = read_dataset(spec.dataset, resources.data)
    tasks = asyncio.run(_measure_prompts(spec, dataset))
    attached = spec.system.images == "attached"
    most = spec.loop.max_turns if spec.loop is not None else 0
    cap = resources.model.settings.max_tokens
    return {
        name: _bounded(_guess(spec.mode, task, most), task.images if attached else 0, cap)
        for name, task in tasks.items()
    }


def _guess(mode: RunMode, task: _Task, most: int) -> Guess:
    if not task.prompts:  # a custom agent that asked nothing
        return Guess(ModelUse(), ModelUse())
    if mode == "workflow":
        return _workflow_guess(task, most)
    calls, sent, written = len(task.prompts), sum(task.prompts), sum(task.replies)
    low = ModelUse(calls, LESS * sent, LESS * written)
    if mode == "step":
        return Guess(low, ModelUse(calls, MORE * sent, MORE * written + _THINKING * calls))
    # At least the reference's own turns; at most every turn, with a growing history.
    turns = max(most, 1)
    growth = max([_GROWTH, *(b - a for a, b in pairwise(task.prompts))])
    sent = sum(task.prompts[0] + turn * growth for turn in range(turns))
    written = turns * (max(task.replies) + _THINKING)
    # A reference may have more turns than the run allows.
    fewer = min(1.0, turns / low.calls)
    return Guess(low.scale(fewer), ModelUse(turns, MORE * sent, MORE * written))


def _workflow_guess(task: _Task, most: int) -> Guess:
    ends = []
    for turns, writes, factor in (
        (min(_TURNS, most), _WRITES, LESS),
        (most, _WRITES_MOST, MORE),
    ):
        sent = sum(task.prompts[0] + turn * (_GROWTH + writes) for turn in range(turns))
        ends.append(ModelUse(turns, factor * sent, turns * writes))
    return Guess(*ends)


def _bounded(guess: Guess, images: int, cap: int | None) -> Guess:
    """Add the attached images to every call, and limit replies to `max_tokens`."""
    ends = []
    for end, tokens in zip(guess, (_IMAGE, _IMAGE_MOST), strict=True):
        written = end.output_tokens if cap is None else min(end.output_tokens, cap * end.calls)
        sent = end.input_tokens + end.calls * images * tokens
        ends.append(end._replace(input_tokens=sent, output_tokens=written))
    return Guess(*ends)


async def _measure_prompts(spec: RunSpec, dataset: Dataset) -> dict[str, _Task]:
    """Count the tokens of every prompt of a reference, or of a Workflow task's first one."""
    lengths: list[int] = []

    def count(messages: list[ChatMessage], tools: list[Any], *_: object) -> ModelOutput:
        texts = [message.text for message in messages]
        calls = [str(getattr(message, "tool_calls", None) or "") for message in messages]
        offered = [tool.model_dump_json(exclude_none=True) for tool in tools]
        lengths.append(count_tokens((*texts, *calls, *offered)))
        output = ModelOutput.from_content("mockllm", "counted")
        output.usage = ModelUsage()
        return output

    model = get_model("mockllm/model", custom_outputs=count, memoize=False)
    agent = spec.system.agent
    atomic = dataset if isinstance(dataset, AtomicDataset) else None
    files = frozenset() if atomic is None else list_dataset_files(atomic.tasks.values())
    decide = load_agent(agent)(Setup(model=model, known_files=files))
    found = {}
    for name in spec.tasks:
        lengths.clear()
        task = dataset.tasks[name]
        replies: list[int] = []
        if isinstance(task, AtomicTask):
            assert atomic is not None
            histories = list(make_step_histories(task))
            offered = list_step_tools(atomic, task, agent)
            replies = [count_tokens([format_step(step)]) for step in reference_steps(task)]
        else:
            turns = (UserTurn(content=task.request),)
            histories = [
                History(task=task.id, attachments=task.attachments, turns=turns, mode="end-to-end")
            ]
            offered = [tool for tool in list_own_tools(dataset, task).values() if tool is not None]
        for history in histories:
            await decide(history, offered)
        images = sum(item.type == "image" for item in task.attachments)
        found[name] = _Task(tuple(lengths), replies, images)
    return found


def count_tokens(texts: Iterable[str]) -> int:
    """Estimate how many tokens texts have."""
    return sum(map(len, texts)) // _CHARACTERS
