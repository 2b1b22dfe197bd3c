"""What the rest of a run would take: by its prompts, or by the units that are finished.

Prompts are built and counted; nothing is sent and nothing is written.
"""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model

from gta_bench.agents.catalog import WITHOUT_MODEL, load_agent
from gta_bench.agents.contract import Decide, Setup
from gta_bench.agents.history import History, dataset_files, step_histories
from gta_bench.agents.models import NO_MODEL
from gta_bench.datasets.model import AtomicDataset, Dataset
from gta_bench.metrics.reference import reference_steps
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.attempts import UnitKey
from gta_bench.records.dialogue import UserTurn
from gta_bench.records.run import RunManifest, RunMode, RunSpec
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import WorkflowTask
from gta_bench.running.system_run import Resources, read_dataset
from gta_bench.runs.directory import MANIFEST, read_manifest
from gta_bench.runs.logs import read_run_units, unit_keys
from gta_bench.runs.store import StorePath
from gta_bench.settings import ModelSettings
from gta_bench.tasks.atomic_step import offered_tools
from gta_bench.tasks.show import step_text
from gta_bench.tools.offering import own_tools

# From so many finished units on, what they took says more than any guess.
ENOUGH_UNITS: Final = 5
# A range is no narrower than this share of its middle to either side, and no wider than its half.
_NARROWEST, _WIDEST = 0.05, 0.5


class ModelUse(NamedTuple):
    """What a unit takes of a model."""

    calls: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0

    def scaled(self, factor: float) -> "ModelUse":
        """So many times as much."""
        return ModelUse(*(part * factor for part in self))


class Guess(NamedTuple):
    """What a unit takes at least and at most, as far as its prompts tell."""

    low: ModelUse
    high: ModelUse


class UsageRange(NamedTuple):
    """What `units` units of a run take of one model, and what that is known from."""

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
        """One line for people."""
        low, high = self.low, self.high
        return (
            f"{self.who}: {self.units} {'unit' if self.units == 1 else 'units'} left, "
            f"{_range(low.calls, high.calls)} calls, "
            f"{_range(low.input_tokens, high.input_tokens)} input and "
            f"{_range(low.output_tokens, high.output_tokens)} output tokens, {self._cost()} "
            f"({self.basis})."
        )

    def _cost(self) -> str:
        prices = self.settings.input_price, self.settings.output_price
        if prices[0] is None or prices[1] is None:
            return "cost unknown without input_price and output_price of the model in gta.toml"
        low, high = (
            (one.input_tokens * prices[0] + one.output_tokens * prices[1]) / 1e6
            for one in (self.low, self.high)
        )
        ends = sorted({f"${low:.2f}", f"${high:.2f}"}, key=lambda text: float(text[1:]))
        return " to ".join(ends)


def sum_amounts(amounts: Iterable[ModelUse]) -> ModelUse:
    """All of them together."""
    found = [ModelUse(), *amounts]
    return ModelUse(*map(math.fsum, zip(*found, strict=True)))


def scale_measured(
    finished: Sequence[tuple[ModelUse, ModelUse]], left: Sequence[ModelUse]
) -> tuple[ModelUse, ModelUse]:
    """The least and the most that units of the sizes `left` take.

    `finished` has the size of each finished unit, as far as its prompts tell, and what it took.
    Their ratio is taken over: a task with longer prompts is expected to take more.
    """
    ranges = [
        _scale([(size[part], took[part]) for size, took in finished], [one[part] for one in left])
        for part in range(len(ModelUse._fields))
    ]
    return ModelUse(*(low for low, _ in ranges)), ModelUse(*(high for _, high in ranges))


def _scale(finished: Sequence[tuple[float, float]], left: Sequence[float]) -> tuple[float, float]:
    """The ratio estimate of a total, with two standard errors, and more where units are few."""
    guessed, took = math.fsum(x for x, _ in finished), math.fsum(y for _, y in finished)
    if not guessed or not left:
        return 0.0, 0.0
    ratio = took / guessed
    middle = ratio * math.fsum(left)
    variance = math.fsum((y - ratio * x) ** 2 for x, y in finished) / (len(finished) - 1)
    share = math.fsum(left) / guessed
    few = 1 + 2 / len(finished)
    error = 2 * few * math.sqrt(variance * (len(left) + share**2 * len(finished)))
    if error > 1e-6 * middle:  # what is exactly in proportion, as calls step by step, stays exact
        error = min(max(error, _NARROWEST * middle), _WIDEST * middle)
    return middle - error, middle + error


def _range(low: float, high: float) -> str:
    ends = (_rounded(low), _rounded(high))
    return f"{ends[0]:,}" if ends[0] == ends[1] else f"{ends[0]:,} to {ends[1]:,}"


def _rounded(value: float) -> int:
    """Three digits: no estimate knows more."""
    whole = round(value)
    return whole if whole < 1000 else round(whole, 3 - len(str(whole)))


# English and JSON take about four characters a token.
_CHARACTERS: Final = 4
# Tokenizers differ by so much to either side.
LESS, MORE = 0.8, 1.25
# Tokens that a model writes in a turn beyond the reference's words, if it thinks.
_THINKING: Final = 500
# Tokens by which a history grows in a turn, with the reply of a tool.
_GROWTH: Final = 300
# GTA-Workflow has no reference dialogue: turns at least, and the least and most that each writes.
_TURNS, _WRITES, _WRITES_MOST = 3, 150, 1_500
# Tokens of an attached image.
_IMAGE, _IMAGE_MOST = 250, 1_500


class _Task(NamedTuple):
    """A task as an estimate knows it: lengths of its prompts and of the reference's replies."""

    prompts: Sequence[int]
    replies: Sequence[int]
    images: int


def estimate_run(
    manifest: RunManifest, resources: Resources, out: StorePath, *, rounds: int = 0
) -> list[UsageRange]:
    """What the rest of the run in `out` takes of its model; empty where nothing is known of it.

    `rounds` are those of feedback. Prompts of a foreign system are its own: it is known from
    finished units alone.
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
    """Whether the folder holds this run, if perhaps of other tasks."""
    if not (out / MANIFEST).is_file():
        return False
    asked = {"tasks": manifest.spec.tasks, "epochs": manifest.spec.epochs}
    return read_manifest(out).with_spec(**asked).difference(manifest) is None


class KnownUse(NamedTuple):
    """What is known of a model's part in a run: guesses by task, and what finished units took.

    It `follows` the guesses where it makes exactly the calls that they have. Elsewhere a task that
    took the reference many turns takes a model more than others, but less than in proportion.
    """

    who: str
    settings: ModelSettings
    guesses: Mapping[str, Guess] | None
    finished: Mapping[UnitKey, ModelUse]
    basis: str
    follows: bool = True

    def estimate(self, units: Sequence[UnitKey], rounds: int) -> list[UsageRange]:
        """What the others of these units take: by the finished ones where they are enough."""
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
        high = high.scaled(1 + rounds)
        return [UsageRange(self.who, len(left), low, high, basis, self.settings)]

    def _sizes(self, units: Sequence[UnitKey]) -> dict[UnitKey, ModelUse]:
        """What units are expected to be in proportion to; their replies, to their calls."""
        if self.guesses is None:
            return dict.fromkeys(units, ModelUse(1, 1, 1))
        guesses = {key: self.guesses[key[0]].low for key in units}
        if not self.follows:
            mean = sum_amounts(guesses.values()).scaled(1 / len(units))
            guesses = {key: sum_amounts([one, mean]).scaled(1 / 2) for key, one in guesses.items()}
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
    """What a unit of each task takes; None for systems that build their own prompts."""
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
    if not task.prompts:  # an agent of the user's own that asked nothing
        return Guess(ModelUse(), ModelUse())
    if mode == "step":
        return _step_guess(task)
    return _loop_guess(task, most) if mode == "end-to-end" else _workflow_guess(task, most)


def _step_guess(task: _Task) -> Guess:
    calls, sent, written = len(task.prompts), sum(task.prompts), sum(task.replies)
    return Guess(
        ModelUse(calls, LESS * sent, LESS * written),
        ModelUse(calls, MORE * sent, MORE * written + _THINKING * calls),
    )


def _loop_guess(task: _Task, most: int) -> Guess:
    """The reference's own turns at least; every turn, with a growing history, at most."""
    low = _step_guess(task).low
    turns = max(most, 1)
    growth = max([_GROWTH, *(b - a for a, b in zip(task.prompts, task.prompts[1:], strict=False))])
    sent = sum(task.prompts[0] + turn * growth for turn in range(turns))
    written = turns * (max(task.replies) + _THINKING)
    # A reference may have more turns than the run allows.
    fewer = min(1.0, turns / low.calls)
    return Guess(low.scaled(fewer), ModelUse(turns, MORE * sent, MORE * written))


def _workflow_guess(task: _Task, most: int) -> Guess:
    first = task.prompts[0]
    ends = []
    for turns, writes in ((min(_TURNS, most), _WRITES), (most, _WRITES_MOST)):
        sent = sum(first + turn * (_GROWTH + writes) for turn in range(turns))
        ends.append(ModelUse(turns, sent, turns * writes))
    low, high = ends
    return Guess(
        low._replace(input_tokens=LESS * low.input_tokens),
        high._replace(input_tokens=MORE * high.input_tokens),
    )


def _bounded(guess: Guess, images: int, cap: int | None) -> Guess:
    """With attached images in every call, and no reply longer than `max_tokens`."""
    ends = []
    for end, tokens in zip(guess, (_IMAGE, _IMAGE_MOST), strict=True):
        written = end.output_tokens if cap is None else min(end.output_tokens, cap * end.calls)
        sent = end.input_tokens + end.calls * images * tokens
        ends.append(end._replace(input_tokens=sent, output_tokens=written))
    return Guess(*ends)


async def _measure_prompts(spec: RunSpec, dataset: Dataset) -> dict[str, _Task]:
    """Every prompt of a reference, or the first one of a Workflow task, in tokens."""
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
    files = frozenset() if atomic is None else dataset_files(atomic.tasks.values())
    decide = load_agent(agent)(Setup(model=model, known_files=files))
    found = {}
    for name in spec.tasks:
        lengths.clear()
        task = dataset.tasks[name]
        replies: list[int] = []
        if isinstance(task, AtomicTask):
            assert atomic is not None
            await _decide_all(decide, step_histories(task), offered_tools(atomic, task, agent))
            replies = [count_tokens([step_text(step)]) for step in reference_steps(task)]
        else:
            offered = [tool for tool in own_tools(dataset, task).values() if tool is not None]
            await _decide_all(decide, [_beginning(task)], offered)
        images = sum(item.type == "image" for item in task.attachments)
        found[name] = _Task(tuple(lengths), replies, images)
    return found


def _beginning(task: WorkflowTask) -> History:
    return History(
        task=task.id,
        attachments=task.attachments,
        turns=(UserTurn(content=task.request),),
        mode="end-to-end",
    )


async def _decide_all(
    decide: Decide, histories: Iterable[History], tools: Sequence[ToolSpec]
) -> None:
    for history in histories:
        await decide(history, tools)


def count_tokens(texts: Iterable[str]) -> int:
    """About how many tokens texts have."""
    return sum(map(len, texts)) // _CHARACTERS
