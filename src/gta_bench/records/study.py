"""A study: the file that describes it, what has been spent on it, and its answers."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import product
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AwareDatetime, Field, model_validator

from gta_bench.records.base import Record
from gta_bench.records.run import DatasetName
from gta_bench.records.statistics import Interval, VarianceComponent

QuestionKind = Literal["difference", "interaction"]
# `first` or `second`: that side is higher, by more than the margin if there is one. `same`: the
# difference is smaller than the margin.
StudyDecision = Literal["first", "second", "same", "not decided"]
OptionValue = str | int | float | bool | tuple[str | int | float, ...]
# The options of `gta run`, by name without the dashes.
OptionTable = Mapping[str, OptionValue]
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
# Of a file that people write: neither true nor "2" is a number.
_Count = Annotated[int, Field(ge=1, le=10**9, strict=True)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
_Limit = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
_Pair = tuple[str, str]


class StudySystem(NamedTuple):
    """One system of a study: a model and an agent or a harness, by their names in the file.

    >>> StudySystem("small", "react").name
    'small+react'
    """

    model: str
    agent: str

    @property
    def name(self) -> str:
        """How questions and reports name it."""
        return f"{self.model}+{self.agent}"


class StudyCell(NamedTuple):
    """One system on one dataset: a run of its own."""

    dataset: str
    system: StudySystem

    @property
    def folder(self) -> str:
        """The folder of its run below that of the study."""
        return f"{self.dataset}/{self.system.model}/{self.system.agent}"


class StudyQuestion(Record):
    """A question that is asked before the data are seen.

    A `difference` is between two `systems`, or between two `models` or two `agents` as a mean over
    everything that they are combined with. An `interaction` is the difference of the two `models`
    with the first agent minus their difference with the second one. `margin` is in points of the
    metric: with 0, the question is which side is higher. `dataset` may be left out if there is
    only one, `metric` for the primary one, and `judge` if only one scored the runs.
    """

    name: _Name
    ask: str = ""
    kind: QuestionKind = "difference"
    systems: _Pair | None = None
    models: _Pair | None = None
    agents: _Pair | None = None
    dataset: str | None = None
    metric: str | None = None
    judge: str | None = None
    margin: _Amount = 0.0

    @model_validator(mode="after")
    def _check_sides(self) -> Self:
        given = [name for name in ("systems", "models", "agents") if getattr(self, name)]
        if self.kind == "difference" and len(given) != 1:
            raise ValueError(
                f"question {self.name!r}: a difference has exactly one of `systems`, `models` and "
                "`agents`"
            )
        if self.kind == "interaction" and given != ["models", "agents"]:
            raise ValueError(f"question {self.name!r}: an interaction has `models` and `agents`")
        if any(one == two for one, two in map(self._pair, given)):
            raise ValueError(f"question {self.name!r}: both sides are the same")
        return self

    def _pair(self, name: str) -> _Pair:
        pair: _Pair = getattr(self, name)
        return pair


class StudyBudget(Record):
    """The limits of a whole study, over all commands; at least one is needed."""

    hours: _Limit | None = None
    cost_usd: _Limit | None = None
    calls: _Count | None = None

    @model_validator(mode="after")
    def _check_limited(self) -> Self:
        if self.hours is None and self.cost_usd is None and self.calls is None:
            raise ValueError("[budget] has no limit; add `hours`, `cost_usd` or `calls`")
        return self


class AssumedSpread(Record):
    """Standard deviations of a task's score, in percent of the metric's scale.

    `task_model`, `task_agent` and `task_system`: how differently the models, the agents and the
    single systems find the same task. `run`: how much the epochs of one task vary. The default is
    that of systems that pass half of the tasks, each one independently of the others.
    """

    task_model: _Amount = 0.0
    task_agent: _Amount = 0.0
    task_system: _Amount = 50.0
    run: _Amount = 0.0


class StudyAssumptions(Record):
    """What a plan is computed from, until there are data.

    `seconds`, `cost_usd` and `calls` are of one unit, or a table of them by system, model, agent or
    dataset. `at_once` is how many units run at the same time. `pilot` are folders of two or more
    earlier runs, from which whatever is not given is estimated.
    """

    seconds: _Amount | Mapping[str, _Amount] | None = None
    cost_usd: _Amount | Mapping[str, _Amount] | None = None
    calls: _Amount | Mapping[str, _Amount] | None = None
    at_once: _Count = 1
    sd: AssumedSpread | None = None
    pilot: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_pilot(self) -> Self:
        if len(self.pilot) == 1:
            raise ValueError("[assume] `pilot` needs two runs on the same tasks")
        return self


class StudyFile(Record):
    """The file of a study: every model with every agent, on every dataset, in every epoch.

    The tables of `datasets`, `models` and `agents` have options of `gta run`, and `options` those
    of all runs. Tasks are run in blocks of `block` tasks, in a stratified random order from `seed`:
    every system finishes a block before the next one begins.

    >>> StudyFile(
    ...     name="size",
    ...     out="runs/size",
    ...     datasets={"step": {"run": "atomic", "mode": "step"}},
    ...     models={"small": {"model": "x/small"}, "large": {"model": "x/large"}},
    ...     agents={"react": {"agent": "react"}},
    ...     budget=StudyBudget(hours=1),
    ...     questions=(StudyQuestion(name="size", models=("large", "small")),),
    ... ).systems[1].name
    'large+react'
    """

    name: str
    out: Annotated[str, Field(min_length=1)]
    seed: int = 0
    epochs: _Count = 1
    block: _Count = 10
    options: Mapping[str, OptionValue] = {}
    datasets: Mapping[_Name, OptionTable] = Field(min_length=1)
    models: Mapping[_Name, OptionTable] = Field(min_length=1)
    agents: Mapping[_Name, OptionTable] = Field(min_length=1)
    budget: StudyBudget
    assume: StudyAssumptions = StudyAssumptions()
    questions: tuple[StudyQuestion, ...] = Field(min_length=1)

    @property
    def systems(self) -> tuple[StudySystem, ...]:
        """Every model with every agent."""
        return tuple(StudySystem(*pair) for pair in product(self.models, self.agents))

    @property
    def cells(self) -> tuple[StudyCell, ...]:
        """Every system on every dataset."""
        return tuple(StudyCell(*pair) for pair in product(self.datasets, self.systems))

    def kind_of(self, dataset: str) -> DatasetName:
        """Which `gta run` a dataset needs."""
        return "workflow" if self.datasets[dataset].get("run") == "workflow" else "atomic"

    def dataset_of(self, question: StudyQuestion) -> str:
        """The dataset that a question is about."""
        return question.dataset or next(iter(self.datasets))

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for name, table in self.datasets.items():
            if table.get("run") not in ("atomic", "workflow"):
                raise ValueError(f'[datasets.{name}] needs `run = "atomic"` or `run = "workflow"`')
            if name.startswith("study") and name.endswith((".json", ".toml")):
                raise ValueError(
                    f"[datasets.{name}] has the name of a file of the study; rename it"
                )
        names = [one.name for one in self.questions]
        if len({*names}) < len(names):
            raise ValueError("two questions have the same name")
        for question in self.questions:
            for problem in self._find_unknown(question):
                raise ValueError(f"question {question.name!r}: {problem}")
        return self

    def _find_unknown(self, question: StudyQuestion) -> Iterator[str]:
        """Yield what a question names that the study does not have."""
        known: dict[str, list[str]] = {
            "systems": [one.name for one in self.systems],
            "models": [*self.models],
            "agents": [*self.agents],
        }
        for field, names in known.items():
            for name in getattr(question, field) or ():
                if name not in names:
                    yield f"no {field[:-1]} {name!r}; the study has: {', '.join(names)}"
        if question.dataset is None and len(self.datasets) > 1:
            yield f"name its `dataset`, one of: {', '.join(self.datasets)}"
        if question.dataset is not None and question.dataset not in self.datasets:
            yield f"no dataset {question.dataset!r}; the study has: {', '.join(self.datasets)}"


class StudyVersion(Record):
    """The file of a study from some moment on: its digest, and how many units were scored then.

    `changed` are the keys in which it differs from the file before it, with both values.
    """

    when: AwareDatetime
    digest: str
    scored: int = 0
    changed: tuple[str, ...] = ()


class StudySession(Record):
    """One command that worked on a study; `until` is written whenever a unit ends."""

    began: AwareDatetime
    until: AwareDatetime


class StudyLog(Record):
    """`study.json` in the folder of a study: the versions of its file, and the time spent.

    >>> from datetime import UTC, datetime, timedelta
    >>> began = datetime(2026, 11, 18, 8, tzinfo=UTC)
    >>> one = StudySession(began=began, until=began + timedelta(minutes=90))
    >>> StudyLog(versions=(), sessions=(one,)).hours
    1.5
    """

    format: Literal[1] = 1
    versions: tuple[StudyVersion, ...]
    sessions: tuple[StudySession, ...] = ()

    @property
    def hours(self) -> float:
        """The time that all commands have spent."""
        spent = sum((one.until - one.began for one in self.sessions), timedelta())
        return spent / timedelta(hours=1)

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests of all versions of the file, the first one first."""
        return tuple(one.digest for one in self.versions)

    def at_work(self, began: datetime, now: datetime) -> "StudyLog":
        """The log with the session that began then extended until now."""
        own = StudySession(began=began, until=now)
        others = tuple(one for one in self.sessions if one.began != began)
        return self.model_copy(update={"sessions": (*others, own)})


class StudySpent(Record):
    """What a study has used so far.

    `cost_usd` is the known part of the cost; `unpriced` says that there is more at an unknown
    price.
    """

    hours: float = 0.0
    cost_usd: float = 0.0
    unpriced: bool = False
    calls: int = 0

    def find_reached(self, budget: StudyBudget) -> str | None:
        """Describe the limit that is reached; None if none is."""
        if budget.hours is not None and self.hours >= budget.hours:
            return f"the budget of {budget.hours:g} hours is spent"
        if budget.cost_usd is not None and self.cost_usd >= budget.cost_usd:
            return f"the budget of ${budget.cost_usd:g} is spent"
        if budget.calls is not None and self.calls >= budget.calls:
            return f"the budget of {budget.calls:,} model calls is spent"
        return None

    def find_exceeded(self, budget: StudyBudget) -> str | None:
        """Describe the limit that is exceeded by more than rounding; None if none is.

        >>> StudySpent(calls=8).find_exceeded(StudyBudget(calls=8))
        >>> StudySpent(calls=9).find_exceeded(StudyBudget(calls=8))
        'the budget of 8 model calls is spent'
        """
        less = {"hours": self.hours * 0.999, "cost_usd": self.cost_usd * 0.999}
        return self.model_copy(update=less | {"calls": self.calls - 1}).find_reached(budget)


class ErrorBudget(Record):
    """The standard error of an answer, in points, and which share of its variance is what.

    `tasks`: another sample of tasks would differ. `runs`: another run of the same tasks would.
    `judge`: another reading by the judge would. None if the design cannot separate it; it is then
    part of the one before it.
    """

    standard_error: float
    tasks: float
    runs: float | None
    judge: float | None


class StudyAnswer(Record):
    """The answer to one question, in points of its metric: the first side minus the second.

    `p_value` is the smallest error rate at which it would be decided, and `p_holm` is corrected for
    all questions; it is decided if that is below 5 %. Tasks without a score on some side are left
    out of `difference` (`n` of `n_tasks` tasks), and an answer that they could change is not
    decided. `detectable` is the smallest difference that these tasks show with 80 % power.
    """

    question: str
    ask: str
    metric: str
    sides: _Pair
    values: tuple[float, float]
    difference: Interval
    margin: float
    p_value: float
    p_holm: float
    answer: StudyDecision
    n: int
    n_tasks: int
    detectable: float
    error: ErrorBudget


class StudyComponents(Record):
    """Where the variance of one unit's score comes from, on one dataset and by one metric."""

    dataset: str
    metric: str
    judge: str | None
    n: int
    n_tasks: int
    parts: tuple[VarianceComponent, ...]


class SystemFacts(Record):
    """One run of a study in its complete blocks: its mean over tasks, and what went wrong.

    `n` of `n_units` units have a score. `malformed` are replies that are neither a call nor an
    answer (None for GTA-Workflow), `stops` counts replies that did not end normally; both are of
    the whole run.
    """

    dataset: str
    system: str
    folder: str
    metric: str
    value: float | None
    n: int
    n_units: int
    unscored: Mapping[str, int]
    malformed: int | None
    stops: Mapping[str, int]


class StudyResult(Record):
    """What `gta study report` found.

    `blocks` of `n_blocks` blocks are complete by dataset; `outside` are units with a score in
    blocks that are not.
    """

    name: str
    versions: tuple[StudyVersion, ...]
    spent: StudySpent
    blocks: Mapping[str, tuple[int, int]]
    outside: int
    answers: tuple[StudyAnswer, ...]
    components: tuple[StudyComponents, ...]
    systems: tuple[SystemFacts, ...]
    remarks: tuple[str, ...] = ()


class PlannedCell(Record):
    """One run of a study that is planned; what is not known is None."""

    dataset: str
    system: str
    units: int
    hours: float | None
    cost_usd: float | None
    calls: float | None


class PlannedQuestion(Record):
    """What a question can show, in points of its metric: the smallest difference with 80 % power.

    `detectable` is for the `tasks` that the budget affords, `detectable_all` for all `n_tasks`;
    None if that is fewer than two. `assumed` says what the variances are from.
    """

    question: str
    ask: str
    metric: str
    tasks: int
    n_tasks: int
    detectable: float | None
    detectable_all: float | None
    assumed: str


class StudyPlan(Record):
    """What `gta study plan` prints: `blocks` of `n_blocks` blocks by dataset fit in the budget.

    `unknown` are the limits of the budget for which it is not known how much a unit takes.
    """

    name: str
    digest: str
    units: int
    blocks: Mapping[str, tuple[int, int]]
    cells: tuple[PlannedCell, ...]
    questions: tuple[PlannedQuestion, ...]
    unknown: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
