"""The leaf judge: asks a model for every leaf of a unit that has no score yet."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, Final

from inspect_ai.model import (
    ChatMessage,
    ContentText,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.util import LimitExceededError, collect
from pydantic import JsonValue

from gta_bench.errors import describe_fault, find_status, iter_causes
from gta_bench.judging import prompts
from gta_bench.judging.messages import PictureSource, UnitPrompt
from gta_bench.judging.options import CONTROL, MOST_CONTROL, JudgeOptions
from gta_bench.judging.own import OwnJudge
from gta_bench.judging.reply import read_published, read_reply, reply_schema
from gta_bench.judging.visibility import select_visible
from gta_bench.metrics.checked import is_open_to_judge
from gta_bench.records.base import is_json
from gta_bench.records.checks import CHECK
from gta_bench.records.evidence import Evidence
from gta_bench.records.judges import JudgeEntry
from gta_bench.records.verdicts import Cause, Scored, Unscored, VerdictKey, VerdictRow
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from gta_bench.runs.logs import count_sent

logger = logging.getLogger(__name__)


async def ask_model(
    model: Model, messages: list[ChatMessage], config: GenerateConfig
) -> ModelOutput | Unscored:
    """Return the model's output, or after the engine's retries the reason why there is none.

    Every provider has its own exceptions, so all of them count. A limit of the evaluation is not a
    fault of the call and ends the sample.
    """
    try:
        return await model.generate(messages, config=config)
    except LimitExceededError:
        raise
    except Exception as exc:
        logger.debug("the judge's call failed", exc_info=True)
        where = model.api.base_url or model.name
        return Unscored(cause=classify_fault(exc), detail=f"{describe_fault(exc)} ({where})")


def classify_fault(raised: BaseException) -> Cause:
    """Return the kind of fault, from the status, type and text of an exception and its causes."""
    causes = list(iter_causes(raised))
    text = str(causes[0]).lower()
    names = " ".join(type(exc).__name__ for exc in causes)
    status = find_status(raised)
    if "context" in text and any(word in text for word in ("exceed", "length", "too long")):
        return "context_too_long"
    if status == 429:
        return "rate_limited"
    if status in (408, 504) or "Timeout" in names:
        return "timeout"
    if status is not None or "Connect" in names:
        return "http_error"
    return "model_error"


Known = Mapping[VerdictKey, VerdictRow]
Keep = Callable[[Sequence[VerdictRow]], Awaitable[None]]
# Returns something true if no further call may be made; leaves that were not asked stay open.
StopAsking = Callable[[], object]
# Waits until a call may be made, and lets the next one follow when the block ends.
AskingTurn = Callable[[], AbstractAsyncContextManager[object]]

# Causes after which a second try makes sense; what a provider refuses stays refused.
_ASK_AGAIN: frozenset[Cause] = frozenset({
    "reply_not_json", "reply_two_objects", "reply_other_shape", "score_missing",
    "score_not_a_number", "score_out_of_range", "other_leaf", "truncated", "empty",
})  # fmt: skip
# After these in the first call of a unit, its other calls would fail the same way.
_HOPELESS: frozenset[Cause] = frozenset(
    {"timeout", "rate_limited", "http_error", "context_too_long"}
)


@dataclass(frozen=True)
class Judge:
    """A model, the name under which its verdicts are stored, and how it is asked."""

    model: Model
    name: str
    options: JudgeOptions
    repeats: int = 1

    @property
    def prompts(self) -> str:
        """The digest of the prompts that it is asked with; empty for a function."""
        return "" if isinstance(self.model.api, OwnJudge) else prompts.digest()


@dataclass(frozen=True)
class _Call:
    repeat: int
    leaves: tuple[Checkpoint, ...]


class _Answered(dict[str, Scored | Unscored]):
    """The verdicts of one call by leaf, and its usage.

    `published` has the scores that the published evaluator reads in the reply, in the first one if
    the judge was asked again.
    """

    usage = ModelUsage()
    model = ""
    published: Mapping[str, float] = {}


async def judge_unit(
    task: WorkflowTask,
    evidence: Evidence,
    judge: Judge,
    *,
    epoch: int = 1,
    known: Known | None = None,
    pictures: PictureSource,
    keep: Keep,
    stop: StopAsking = lambda: None,
    turn: AskingTurn = nullcontext,
) -> tuple[VerdictRow, ...]:
    """Ask for what `known` has no score of; `keep` gets the rows of each call when it ends."""
    unit = _Unit(task, select_visible(evidence, judge.options), judge, epoch)
    calls = list(unit.pending(known or {}))
    if not calls:
        return ()
    prompt = UnitPrompt(task, unit.evidence, judge.options, pictures)

    async def make(call: _Call) -> tuple[VerdictRow, ...]:
        async with turn():
            # Not before its turn: what calls before it cost counts.
            if stop():
                return ()
            rows = await unit.make_call(call, prompt)
            await keep(rows)
            return rows

    async def give_up(calls: Sequence[_Call], failed: Unscored) -> tuple[VerdictRow, ...]:
        rows = tuple(row for call in calls for row in unit.give_up(call, failed))
        await keep(rows)
        return rows

    if judge.options.control and not stop():
        failed = await unit.ask_control(prompt)
        if failed is not None:
            return await give_up(calls, failed)
    if judge.options.batch:
        # A batch takes as long for one call as for all.
        return tuple(chain.from_iterable(await collect(*map(make, calls))))
    # The first call alone puts the evidence into the provider's prefix cache for the others.
    first, others = await make(calls[0]), calls[1:]
    for row in first:
        if isinstance(row.verdict, Unscored) and row.verdict.cause in _HOPELESS:
            return (*first, *await give_up(others, row.verdict))
    return (*first, *chain.from_iterable(await collect(*map(make, others))))


def pending_leaves(
    task: WorkflowTask, evidence: Evidence | None, judge: Judge, *, epoch: int = 1, known: Known
) -> int:
    """Count the verdicts that are still open; without evidence, those that have no score."""
    if evidence is None:
        return len(mark_without_evidence(task, judge, "", epoch=epoch, known=known))
    unit = _Unit(task, select_visible(evidence, judge.options), judge, epoch)
    return sum(len(call.leaves) for call in unit.pending(known))


def mark_without_evidence(
    task: WorkflowTask, judge: Judge, detail: str, *, epoch: int = 1, known: Known
) -> tuple[VerdictRow, ...]:
    """Return an unscored row for every leaf without a score, if there is no evidence to show."""
    verdict = Unscored(cause="evidence_failed", detail=detail)
    keys = (
        VerdictKey(task=task.id, epoch=epoch, leaf=leaf.id, judge=judge.name, repeat=repeat)
        for repeat in range(1, judge.repeats + 1)
        for leaf in find_judge_leaves(task, epoch, known)
    )
    return tuple(
        VerdictRow(key=key, verdict=verdict, prompts=judge.prompts)
        for key in keys
        if key not in known or not isinstance(known[key].verdict, Scored)
    )


def find_judge_leaves(task: WorkflowTask, epoch: int, known: Known) -> list[Checkpoint]:
    """Return the leaves that a judge decides: not those that a check has decided or will."""
    return [
        leaf
        for leaf in task.leaves()
        if is_open_to_judge(
            leaf, known.get(VerdictKey(task=task.id, epoch=epoch, leaf=leaf.id, judge=CHECK))
        )
    ]


class _Unit:
    """One unit and one judge."""

    def __init__(self, task: WorkflowTask, evidence: Evidence, judge: Judge, epoch: int) -> None:
        self.task = task
        self.evidence = evidence
        self.judge = judge
        self.epoch = epoch
        self.leaves = tuple(task.leaves())
        self.evidence_digest = evidence.digest
        self.prompts_digest = judge.prompts
        self._control_usage = ModelUsage()

    def pending(self, known: Known) -> Iterator[_Call]:
        """Yield the calls to make, in the order of the leaves."""
        size = self.judge.options.leaves_per_call
        for repeat in range(1, self.judge.repeats + 1):
            open_ = [
                leaf
                for leaf in find_judge_leaves(self.task, self.epoch, known)
                if not self._is_scored(leaf, repeat, known)
            ]
            for start in range(0, len(open_), size):
                yield _Call(repeat, tuple(open_[start : start + size]))

    async def make_call(self, call: _Call, prompt: UnitPrompt) -> tuple[VerdictRow, ...]:
        """Make a call and return its rows; ask once more for what is broken in its reply."""
        if isinstance(own := self.judge.model.api, OwnJudge):
            return self._rows(call, await self._ask_function(own, call.leaves))
        answered = await self._ask(call, prompt, call.leaves)
        broken = [
            (leaf, verdict.cause)
            for leaf in call.leaves
            if isinstance(verdict := answered[leaf.id], Unscored) and verdict.cause in _ASK_AGAIN
        ]
        if broken:
            # Only our own words: a reply may repeat text from the evidence.
            problem = broken[0][1].replace("_", " ")
            again = await self._ask(call, prompt, [leaf for leaf, _ in broken], problem)
            answered.update(again)
            answered.usage += again.usage
            answered.model = again.model or answered.model
        return self._rows(call, answered)

    async def _ask_function(self, own: OwnJudge, leaves: Sequence[Checkpoint]) -> _Answered:
        asked = self.task.request, self.evidence
        answered = _Answered(
            {leaf.id: await own.judge(asked[0], leaf, asked[1]) for leaf in leaves}
        )
        answered.model = str(self.judge.model)
        return answered

    async def ask_control(self, prompt: UnitPrompt) -> Unscored | None:
        """Ask the control question; return why this judge's scores do not count, None if passed."""
        name = prompt.marks.name(CONTROL)
        output = await ask_model(
            self.judge.model, prompt.ask_control(), self._config(1, prompt, self.leaves)
        )
        if isinstance(output, Unscored):
            return output
        self._control_usage = output.usage or ModelUsage()
        found = _read_output(output, [name], several=prompt.several)[name]
        if isinstance(found, Unscored):
            return Unscored(cause="control_failed", detail=f"No score: {found.cause}.")
        if found.value > MOST_CONTROL:
            detail = f"It gave {found.value:g} to a requirement that cannot be met."
            return Unscored(cause="control_failed", detail=detail)
        return None

    def give_up(self, call: _Call, verdict: Unscored) -> tuple[VerdictRow, ...]:
        """Return unscored rows for a call that is not made."""
        detail = f"Not asked, as the first call of the unit failed: {verdict.detail}"
        missing = Unscored(cause=verdict.cause, detail=detail)
        return self._rows(call, _Answered({leaf.id: missing for leaf in call.leaves}))

    def _is_scored(self, leaf: Checkpoint, repeat: int, known: Known) -> bool:
        row = known.get(self._key(leaf, repeat))
        return (
            row is not None
            and isinstance(row.verdict, Scored)
            and row.evidence == self.evidence_digest
            and row.prompts == self.prompts_digest
        )

    def _key(self, leaf: Checkpoint, repeat: int) -> VerdictKey:
        return VerdictKey(
            task=self.task.id, epoch=self.epoch, leaf=leaf.id, judge=self.judge.name, repeat=repeat
        )

    async def _ask(
        self,
        call: _Call,
        prompt: UnitPrompt,
        leaves: Sequence[Checkpoint],
        problem: str | None = None,
    ) -> _Answered:
        # A schema with all ids keeps the prefix of a unit's calls the same. A second try is rare,
        # and a schema with only the asked ids keeps the model from replying about other leaves.
        named = self.leaves if problem is None else leaves
        config = self._config(call.repeat, prompt, named)
        output = await ask_model(self.judge.model, prompt.ask(leaves, problem), config)
        names = {prompt.marks.name(leaf.id): leaf.id for leaf in leaves}
        if isinstance(output, Unscored):
            return _Answered(dict.fromkeys(names.values(), output))
        bound = "reply" not in self.judge.options.without
        found = _read_output(output, list(names), several=prompt.several, bound=bound)
        answered = _Answered({names[name]: verdict for name, verdict in found.items()})
        answered.usage = (output.usage or ModelUsage()) + self._control_usage
        self._control_usage = ModelUsage()
        answered.model = output.model
        if output.error is None:
            scores = read_published(output.completion, list(names), several=prompt.several)
            answered.published = {names[name]: score for name, score in scores.items()}
        return answered

    def _config(
        self, repeat: int, prompt: UnitPrompt, named: Sequence[Checkpoint]
    ) -> GenerateConfig:
        names = prompt.marks.names(leaf.id for leaf in named)
        schema = reply_schema(names, several=prompt.several)
        config = GenerateConfig(response_schema=schema)
        if self.judge.options.batch:
            config.batch = True
        if self.judge.model.config.seed is not None:
            # The same seed would only repeat the first reply.
            config.seed = self.judge.model.config.seed + repeat - 1
        return config

    def _rows(self, call: _Call, answered: _Answered) -> tuple[VerdictRow, ...]:
        return tuple(
            VerdictRow(
                key=self._key(leaf, call.repeat),
                verdict=answered[leaf.id],
                compat=answered.published.get(leaf.id),
                evidence=self.evidence_digest,
                prompts=self.prompts_digest,
                model=answered.model,
                **_usage_part(answered.usage, number, len(call.leaves)),
            )
            for number, leaf in enumerate(call.leaves)
        )


def _read_output(
    output: ModelOutput, leaves: Sequence[str], *, several: bool, bound: bool = True
) -> Mapping[str, Scored | Unscored]:
    if (failed := _no_reply(output)) is not None:
        return dict.fromkeys(leaves, failed)
    return read_reply(output.completion, leaves, several=several, bound=bound)


def _no_reply(output: ModelOutput) -> Unscored | None:
    """Return why an output is not a complete reply; None if it is."""
    if output.empty:
        return Unscored(cause="empty", detail=output.error or "The output has no reply.")
    seen = output.completion.strip()[:200]
    content = output.message.content
    refused = not isinstance(content, str) and any(
        isinstance(part, ContentText) and part.refusal for part in content
    )
    if refused or output.stop_reason == "content_filter":
        return Unscored(cause="refused", detail=seen)
    if output.stop_reason == "model_length":
        return Unscored(cause="context_too_long", detail=seen)
    if output.stop_reason == "max_tokens":
        return Unscored(cause="truncated", detail=seen)
    if output.error is not None:
        return Unscored(cause="model_error", detail=output.error)
    return None


def _usage_part(usage: ModelUsage, number: int, count: int) -> dict[str, int | float | None]:
    """Return one leaf's part of the usage of its call; the parts add up to the total."""

    def share(total: int) -> int:
        return total // count + (number < total % count)

    return {
        "input_tokens": share(count_sent(usage)),
        "cached_tokens": share(usage.input_tokens_cache_read or 0),
        "output_tokens": share(usage.output_tokens),
        "cost_usd": None if usage.total_cost is None else usage.total_cost / count,
    }


# Limits of a judge, and options that every call sets itself, cannot change a verdict.
_BOUNDS: Final = frozenset(
    {
        *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections"),
        *("adaptive_connections", "max_tokens", "response_schema", "batch", "cache"),
        *("extra_headers", "cache_prompt"),
    }
)


def verdict_settings(config: GenerateConfig, args: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Return the options and arguments of a model that can change a verdict, in a fixed order."""
    given = config.model_dump(mode="json", exclude_none=True, exclude={*_BOUNDS})
    first: dict[str, JsonValue] = {
        name: given.pop(name) for name in ("temperature", "seed") if name in given
    }
    plain = {name: value for name, value in args.items() if is_json(value)}
    return {**first, **dict(sorted(given.items())), **dict(sorted(plain.items()))}


def judge_entry(judge: Judge, at: datetime) -> JudgeEntry:
    """Return the judge's entry, with a digest of everything that can change its verdicts."""
    asked = verdict_settings(judge.model.config, judge.model.model_args)
    entry = JudgeEntry.model_validate(
        {
            "name": judge.name,
            "digest": "",
            "model": str(judge.model),
            "options": judge.options.model_dump(mode="json", exclude={"batch"}),
            "temperature": asked.pop("temperature", None),
            "seed": asked.pop("seed", None),
            "generation": asked,
            "prompts": judge.prompts,
            "first": at,
            "last": at,
        }
    )
    return entry.model_copy(update={"digest": entry.compute_digest()})
