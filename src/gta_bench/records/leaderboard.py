"""Leaderboard entries, the bundles behind them, and their verification."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from gta_bench.records.base import Record
from gta_bench.records.files import Deliverable, Digest
from gta_bench.records.run import DatasetName, RunMode
from gta_bench.records.visible import SystemName, VisibleText

Board = Literal["atomic", "workflow", "workflow-30"]
# How far someone other than the submitter repeated a row: checks show that a bundle is consistent,
# and only a repetition shows that it is honest (docs/leaderboard.md).
Tier = Literal["published", "self-reported", "re-judged", "reproduced"]
Mark = Literal[
    "imported",
    "open network",
    "unconfined",
    "own agent",
    "own tools",
    "taped",
    "scripted model",
    "scripted judge",
    "other similarity",
    "name differs",
    "attempts unknown",
    "retried",
    "no bundle",
]
EntryCheck = Literal["no-count", "other-count", "out-of-range", "arg-above-tool", "ans-acc-i-bound"]
BundleCheck = Literal[
    "archive",
    "signature",
    "digest",
    "dataset",
    "tasks",
    "scores",
    "entry",
    "logs",
    "attempts",
    "judge",
    "leaked-answer",
    "canary",
]
MetricName = Literal[
    "inst_acc",
    "tool_acc",
    "arg_acc",
    "summ_acc",
    "p_f1",
    "o_f1",
    "l_f1",
    "c_f1",
    "ans_acc",
    "ans_acc_i",
    "tool_sr",
    "p_sr",
    "o_sr",
    "l_sr",
    "c_sr",
    "root_score",
    "leaf_sr",
    "root_sr",
]

Share = Annotated[float, Field(ge=0, le=1)]


class Score(Record):
    """A value as stated, rounded to `decimals`; `k` of `n` is the count behind it, if known.

    Values are percentages, except the root score (0 to 10).
    """

    value: Annotated[float, Field(allow_inf_nan=False)]
    decimals: Annotated[int, Field(ge=0, le=12)] = 2
    k: Annotated[int, Field(ge=0)] | None = None
    n: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _require_both_counts(self) -> Self:
        if (self.k is None) != (self.n is None):
            raise ValueError("`k` and `n` must be given together")
        return self


class Costs(Record):
    """Cost and duration of the whole run; None if not stated."""

    usd: Annotated[float, Field(ge=0)] | None = None
    minutes: Annotated[float, Field(ge=0)] | None = None


class Entry(Record):
    """One system on one board. `id` is unique, `release` is the month of its board.

    `scoring` and `scoring_version` name the rules of the scores; published rows use those of the
    published evaluator (`compat`). The digests are None for rows without a run. `costs` are those
    of all `attempts` at all units. `marks` list conditions that differ from other systems'.
    `by_task` has the primary metric of each task, 0 to 1, so that two systems can be compared on
    the same tasks; None for published rows, of which only totals are known. Texts must not contain
    characters that cannot be seen, and a word of `system` must not mix scripts that look alike.
    """

    format: Literal[1] = 1
    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._/-]*$", max_length=200)]
    board: Board
    release: Annotated[str, Field(pattern=r"^\d{4}-(0[1-9]|1[0-2])$")]
    group: VisibleText = ""
    system: Annotated[SystemName, Field(min_length=1, max_length=200)]
    model: VisibleText | None = None
    harness: VisibleText | None = None
    dataset_digest: str | None = None
    scoring: Literal["compat", "strict"]
    scoring_version: int | None = None
    judge: VisibleText | None = None
    costs: Costs = Costs()
    attempts: Annotated[int, Field(ge=0)] | None = None
    marks: tuple[Mark, ...] = ()
    run_digest: str | None = None
    status: Tier
    source: VisibleText
    notes: tuple[VisibleText, ...] = ()
    scores: Mapping[MetricName, Score]
    by_task: Mapping[VisibleText, Share] | None = None


class EntryFinding(Record):
    """An impossible value in an entry; `message` states the fact without naming the entry."""

    entry: str
    check: EntryCheck
    metric: MetricName
    message: str


# The released datasets have no canary. Bundles and reports, which repeat their texts, contain this
# one: a model that knows it was trained on them.
CANARY = "gta-bench canary 5e0b7c3a-94d1-4f6e-8b7d-2c61f0a9d3e8"


class BundleFile(Record):
    """A file of a bundle, with its digest and size."""

    path: str
    sha256: Digest
    size: Annotated[int, Field(ge=0)]


class BundleManifest(Record):
    """`bundle.json`: the file that is signed.

    `files` are all other files of the bundle. `artefacts` are the digests of deliverables, which
    stay with the submitter; `run_digest` covers all files except the entry.
    """

    format: Literal[1] = 1
    canary: str = CANARY
    dataset: DatasetName
    dataset_digest: str
    run_digest: Digest
    files: tuple[BundleFile, ...]
    artefacts: tuple[Deliverable, ...] = ()


class Signature(Record):
    """`signature.json`: the signature of `bundle.json`; key and signature in hexadecimal."""

    algorithm: Literal["ed25519"] = "ed25519"
    public_key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]


class BundleFinding(Record):
    """A reason why a bundle is refused."""

    check: BundleCheck
    message: str


class InflationTest(Record):
    """A one-sided test of whether stated outcomes are better than repeated ones.

    Of `n` outcomes in `tasks` tasks, `better` passed as stated but not when repeated, `worse` the
    other way round. `difference` is the share by which the stated outcomes are better. `power` is
    the probability to detect it if a share `effect` of all outcomes were changed into passes.
    """

    n: int
    tasks: int
    better: int
    worse: int
    agreement: Share
    kappa: float | None
    difference: float
    p_value: Share
    effect: Share
    power: Share

    @property
    def disagrees(self) -> bool:
        """Whether the stated outcomes are significantly better than the repeated ones."""
        return self.p_value < LEVEL

    @property
    def supports(self) -> bool:
        """Whether the test found no inflation and had enough power to find it."""
        return not self.disagrees and self.power >= ENOUGH_POWER


LEVEL = 0.05
ENOUGH_POWER = 0.8


class Repetition(Record):
    """The tasks that were sampled, and the test of their repetition against the stated outcomes.

    `mode` is that of the run that was repeated; older records do not have it.
    """

    kind: Literal["re-judged", "re-run"]
    mode: RunMode | None = None
    drawn: tuple[str, ...]
    test: InflationTest


class Verification(Record):
    """The result of `gta leaderboard verify`; the seed was drawn after the bundle was made.

    `tier` is what the repetitions support. A repetition that disagrees, or that could not detect
    outcomes 10 % better (re-run: 20 %), supports nothing above `self-reported`.
    """

    format: Literal[1] = 1
    entry: str
    run_digest: str
    when: AwareDatetime
    seed: str
    repetitions: tuple[Repetition, ...]
    tier: Tier

    @property
    def disagrees(self) -> bool:
        """Whether a repetition shows that the bundle's scores are too high."""
        return any(one.test.disagrees for one in self.repetitions)
