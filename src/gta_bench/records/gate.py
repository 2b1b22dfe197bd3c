"""The gate: outcomes of a run by task and repeat, and the decision whether a system got worse."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from gta_bench.records.base import Record
from gta_bench.records.digests import ContentDigest
from gta_bench.records.run import RunSpec
from gta_bench.records.views import Displayed

GateDecision = Literal["not worse", "worse", "undecided"]
# Whether a task or leaf has both outcomes in the repeats of a run; one repeat cannot tell.
Steadiness = Literal["steady", "flaky", "unknown"]
Repeats = tuple[float | None, ...]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_LeafValue = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]

# What `gta gate` ends with; no error of any command has the codes 10 and 11.
EXIT_CODES: Final[Mapping[GateDecision | None, int]] = {
    "not worse": 0,
    "worse": 10,
    "undecided": 11,
    None: 3,
}


class TaskOutcomes(Record):
    """The outcomes of one task in every repeat, as shares of the best value; None if unscored.

    `leaves` are the scores of its leaves, 0 to 10. `digest` identifies what the task asks and how
    it is scored; None if no unit of the task has recorded it.
    """

    task: str
    values: tuple[_Share | None, ...]
    leaves: Mapping[str, tuple[_LeafValue | None, ...]] = {}
    digest: ContentDigest | None = None


class RunOutcomes(Displayed, Record):
    """What the gate needs of a run, for one metric; in a file, a baseline.

    `thresholds` are those of leaves and roots, and `judge_prompts` the digests of the prompts of
    `judge`; both are for GTA-Workflow only.
    """

    format: Literal[1] = 1
    name: str
    metric: str
    judge: str | None = None
    created: AwareDatetime
    spec: RunSpec
    dataset_digest: str
    scoring_version: int
    similarity: str | None = None
    thresholds: tuple[float, float] | None = None
    judge_prompts: tuple[str, ...] = ()
    prompts: Mapping[str, str] = {}
    packages: Mapping[str, str] = {}
    tasks: tuple[TaskOutcomes, ...]

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        """Refuse a file in which tasks or repeats were added or removed by hand."""
        if tuple(own.task for own in self.tasks) != self.spec.tasks:
            raise ValueError("the outcomes are not of the tasks that were run")
        if any(len(own.values) not in (0, self.spec.epochs) for own in self.tasks):
            raise ValueError("a task has another number of repeats than the run")
        return self

    def describe(self) -> str:
        """Its metric, and what was run."""
        return f"{self.name}, {self.metric}: {self.spec.describe()}"


# Stands in the manifest of every run that `gta gate --run` began.
GATE_NOTE: Final = (
    "The tasks were run by `gta gate`, in random order until it was decided. A mean over a part of "
    "them is biased."
)


class GatePlan(Record):
    """`gate.json` of a run: what a gate decides about it, and the order in which it runs tasks.

    It is written before the first task runs. `base` is a digest of the outcomes of BASE, `margin`
    is in points, and `tasks` are in the random order that `seed` gives them.
    """

    format: Literal[1] = 1
    created: AwareDatetime
    base: ContentDigest
    metric: str
    judge: str | None = None
    margin: float
    epochs: int
    seed: str
    tasks: tuple[str, ...]


class GateFlip(Record):
    """A task or leaf whose outcome differs between the runs, both as means over repeats.

    Values of a task are on the scale of the metric, values of a leaf the percentage of repeats in
    which it passes. `base_repeats` says whether the repeats of BASE agree. `epoch` is the repeat of
    NEW to look at first: the worst one of what got worse, the best one of what got better.
    """

    task: str
    leaf: str | None = None
    base: float
    new: float
    base_repeats: Steadiness
    epoch: int

    @property
    def worse(self) -> bool:
        """Whether it got worse."""
        return self.new < self.base


class GateResult(Record):
    """The decision whether NEW is worse than BASE in one metric, and everything it is based on.

    Values are means over tasks, of tasks with a score in both runs. `low` and `high` are one-sided
    95 % limits of the drop, which is BASE minus NEW; None for a sequential test, which has a `seed`
    for the order of its tasks. `most` is the highest value of the metric. `p_worse` and `p_margin`
    are the p-values of "no drop" and of "a drop of the margin or more", the larger ones that tasks
    without a score (`missing`) allow. `decision` is None if those could change it. `used` is the
    number of tasks that were needed. `unused` are tasks that a planned test did not look at: it was
    decided or stopped before. `left_out` are tasks that only one run was given, or that ask or
    score something else now. `flaky` are leaves of BASE whose repeats differ.
    """

    base: str
    new: str
    metric: str
    label: str
    judge: str | None = None
    margin: float
    most: float
    alpha: float
    seed: str | None = None
    tasks: tuple[str, ...]
    repeats: tuple[int, int]
    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    base_value: float | None
    new_value: float | None
    low: float | None
    high: float | None
    p_worse: float
    p_margin: float
    used: int
    decision: GateDecision | None
    flips: tuple[GateFlip, ...] = ()
    flaky: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return EXIT_CODES[self.decision]
