"""What an action is worth in GTA-Atomic: three kinds of reward, all pure functions of a trace.

`step` compares each action with the reference's step at the same position. `outcome` pays at the
end, for the answer or the images. `tool_use` pays for the reference's calls in any order and for
the outcome. In each kind the reference's own actions add up to 1 and silence gets 0.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol

from gta_bench.agents.calling import TaskWork
from gta_bench.agents.contract import DecidedStep
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import UsageError
from gta_bench.metrics.counts import total
from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.similarity import SimilarityFunction, clip_similarity
from gta_bench.metrics.strict.end_to_end import count_task, match_calls
from gta_bench.metrics.strict.outcome import classify_step, count_numbers, matches, score_answer
from gta_bench.metrics.strict.steps import compute_step_reward
from gta_bench.records.atomic import Answer, AtomicTask, WhitelistAnswer
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.records.workflow import WorkflowTask
from gta_bench.similarity.catalog import SMALL, load_similarity

# What a call costs that matches no call of the reference, in `tool_use`.
USELESS_CALL: Final = 0.02
# The most words of an answer's last line; the references need 13.
MOST_WORDS: Final = 30

Kind = Literal["step", "outcome", "tool-use"]


class Moment(NamedTuple):
    """What a reward is computed from: every action so far, and what they did.

    The last action is the one to reward. A call that was not made, or that the tape has no reply
    to, has an error. `done` is True for the last action of an episode.
    """

    task: AtomicTask | WorkflowTask
    actions: tuple[DecidedStep, ...]
    work: TaskWork
    workspace: Workspace
    done: bool


class Reward(NamedTuple):
    """The reward of an action, and the scores that it consists of, 0 to 1.

    `value` is None if a judge gave no score, which `message` explains; drop such an episode.
    """

    value: float | None
    parts: Mapping[str, float] = {}
    message: str = ""


class Rewards(Protocol):
    """Computes the reward of an action; the rewards of an episode add up to 0 to 1."""

    async def __call__(self, moment: Moment) -> Reward: ...


_Compute = Callable[[AtomicTask, Sequence[DecidedStep], bool, SimilarityFunction], Reward]


def step_rewards(similarity: str | SimilarityFunction = SMALL) -> Rewards:
    """Return the dense reward: each action against the reference's step at the same position."""
    return _AtomicRewards("step", similarity)


def outcome_rewards(similarity: str | SimilarityFunction = SMALL) -> Rewards:
    """Return the reward that is 0 until the end, then 0 to 1 for the answer or the images."""
    return _AtomicRewards("outcome", similarity)


def tool_use_rewards(similarity: str | SimilarityFunction = SMALL) -> Rewards:
    """Return the reward for the reference's calls, in any order, and for the outcome; half each."""
    return _AtomicRewards("tool-use", similarity)


def score_actions(
    kind: Kind, task: AtomicTask, actions: Sequence[DecidedStep], similarity: SimilarityFunction
) -> float:
    """Return the sum of the rewards of an episode that consists of these actions."""
    similar = clip_similarity(similarity)
    ends = range(1, len(actions) + 1)
    rewards = (COMPUTE[kind](task, actions[:end], end == ends[-1], similar) for end in ends)
    return total(reward.value for reward in rewards if reward.value is not None)


@dataclass(frozen=True)
class _AtomicRewards:
    """A kind of reward. It can be pickled if `similarity` is a name or a function of a module."""

    kind: Kind
    similarity: str | SimilarityFunction

    async def __call__(self, moment: Moment) -> Reward:
        if not isinstance(moment.task, AtomicTask):
            raise UsageError(
                "GTA-Workflow has no reference steps; use `gta_bench.rl.leaves.leaf_rewards`."
            )
        measure = self.similarity
        if isinstance(measure, str):
            measure = load_similarity(measure).measure
        return COMPUTE[self.kind](
            moment.task, moment.actions, moment.done, clip_similarity(measure)
        )


def _reward_step(
    task: AtomicTask, actions: Sequence[DecidedStep], done: bool, similarity: SimilarityFunction
) -> Reward:
    return Reward(compute_step_reward(task, len(actions) - 1, actions[-1], similarity=similarity))


def _reward_outcome(
    task: AtomicTask, actions: Sequence[DecidedStep], done: bool, similarity: SimilarityFunction
) -> Reward:
    if not done:
        return Reward(0.0)
    parts = _score_outcome(task, actions, similarity)
    return Reward(max(parts.values()), parts)


def _reward_tool_use(
    task: AtomicTask, actions: Sequence[DecidedStep], done: bool, similarity: SimilarityFunction
) -> Reward:
    """Return what the action adds to the value of the episode, which may be negative."""
    calls, useless = _score_calls(task, actions, similarity)
    outcome = max(_score_outcome(task, actions, similarity).values()) if done else 0.0
    value = _tool_use_value(calls, useless) + outcome / 2
    before = _tool_use_value(*_score_calls(task, actions[:-1], similarity))
    return Reward(value - before, {"calls": calls, "outcome": outcome, "useless": float(useless)})


def _tool_use_value(calls: float, useless: int) -> float:
    return max(0.0, calls / 2 - USELESS_CALL * useless)


def _score_calls(
    task: AtomicTask, actions: Sequence[DecidedStep], similarity: SimilarityFunction
) -> tuple[float, int]:
    """Return the score of the reference's calls, and how many calls match none of them."""
    calls = [step for step in actions if isinstance(step, CallStep)]
    made = [step for step in calls if classify_step(step) == "call"]
    wanted = [step for step in reference_steps(task) if isinstance(step, CallStep)]
    matched = match_calls(task, made, wanted, similarity=similarity)
    hits = [score for score in matched.values() if score > 0]
    return total(hits) / len(wanted), len(calls) - len(hits)


def _score_outcome(
    task: AtomicTask, actions: Sequence[DecidedStep], similarity: SimilarityFunction
) -> dict[str, float]:
    """Return the score of the answer, or of the images if the reference gives no answer.

    Task 115 has accepted answers and a reference that only draws: either is a solution.
    """
    wanted = reference_steps(task)[-1]
    parts: dict[str, float] = {}
    if task.answer is not None:
        parts["answer"] = _score_answer(task, task.answer, actions[-1], wanted, similarity)
    if task.answer is None or not isinstance(wanted, AnswerStep):
        pictured = task.model_copy(update={"answer": None})
        counts = count_task(pictured, tuple(actions), similarity=similarity)
        parts["images"] = counts.image_sum
    return parts


def _score_answer(
    task: AtomicTask,
    answer: Answer,
    last: DecidedStep,
    wanted: CallStep | AnswerStep,
    similarity: SimilarityFunction,
) -> float:
    """Score an answer; a free text counts by how much closer it is than the request itself."""
    if not isinstance(last, AnswerStep):
        return 0.0
    # The text of the reference is right even if it does not match the accepted answers.
    if last == wanted:
        return 1.0
    if isinstance(answer, WhitelistAnswer):
        # A request may contain its answer, and repeating it earns nothing.
        return _score_last_line(answer, last.content.replace(task.request, ""))
    score = score_answer(last, answer, similarity=similarity)
    request = score_answer(AnswerStep(content=task.request), answer, similarity=similarity)
    return max(0.0, score - request) / (1 - request) if request < 1 else 0.0


def _score_last_line(answer: WhitelistAnswer, content: str) -> float:
    """Score the last line of an answer: a right one is worth its share of the numbers in it.

    Each group of accepted answers may have one number.
    """
    line = content.rstrip().rpartition("\n")[2]
    if len(line.split()) > MOST_WORDS or not matches(line, answer):
        return 0.0
    return 1 / max(1, 1 + count_numbers(line) - len(answer.whitelist))


COMPUTE: Final[Mapping[Kind, _Compute]] = {
    "step": _reward_step,
    "outcome": _reward_outcome,
    "tool-use": _reward_tool_use,
}
