"""`pilot.json` in a task folder: what known work got when the task was tried."""

import hashlib
from collections.abc import Mapping
from typing import Literal

from pydantic import AwareDatetime, JsonValue

from gta_bench.records.base import Record
from gta_bench.records.digests import TaskDigests, canonical_json
from gta_bench.records.finding import Finding

# `unchecked`: not piloted, or a rule is broken or a score is missing. `draft`: the same for a task
# that was made from a trace. `checked`: no rule is broken, but no judge was asked about its leaves.
# `piloted`: every leaf was tried, and something is below the thresholds. `stale`: the task changed
# since.
ReadinessState = Literal["draft", "unchecked", "checked", "piloted", "ready", "stale"]
# The pilot of such a task does not pass.
FAILING: frozenset[ReadinessState] = frozenset({"draft", "unchecked"})


class LeafTrial(Record):
    """What a leaf of one work got, and who decided it.

    `scores` has a score for each repeat, None for one without a score; it is empty if a judge
    decides the leaf and none was asked. `check` is the score of the leaf's checks, if a judge was
    asked as well. `reason` belongs to the lowest score, or says why there is none.
    """

    by: Literal["check", "judge"]
    scores: tuple[float | None, ...] = ()
    check: float | None = None
    reason: str = ""


class Pilot(Record):
    """The outcome of a pilot, bound to the task, its examples, the judge and the readers.

    `trials` has every work by its name (`gold/a`, `null/empty`, `wrong/b`, `cheat/c`), with a trial
    for each leaf. `unstable` names the works and leaves whose Python checks gave another score when
    they ran again. `rows` is the digest of both. No state is stored: it is computed when read.
    """

    format: Literal[1] = 1
    created: AwareDatetime
    task: TaskDigests
    readers: Mapping[str, str]
    judge: str | None = None
    prompts: str = ""
    repeats: int = 1
    cost_usd: float | None = None
    trials: Mapping[str, Mapping[str, LeafTrial]]
    unstable: Mapping[str, tuple[str, ...]] = {}
    rows: str = ""

    def compute_rows(self) -> str:
        """The SHA-256 of the trials, to notice a file that was edited."""
        rows: JsonValue = self.model_dump(mode="json", include={"trials", "unstable"})
        return hashlib.sha256(canonical_json(rows).encode(errors="surrogatepass")).hexdigest()


class LeafReadiness(Record):
    """A leaf in a pilot.

    `gold` is its lowest score on right work and `floor` its highest on work that does nothing.
    `hits` are wrong works that fail it as they should, of `wrongs`; `alarms` are wrong works that
    fail it though it is intact in them, of `intact`. Works that were judged several times count in
    parts. `spread` is the largest difference between repeats, `flips` are the works of `repeated`
    that passed in one repeat and failed in another, and `agreed` of `compared` are those on which
    judge and checks agree.
    """

    leaf: str
    share: float
    by: str
    gold: float | None = None
    floor: float | None = None
    hits: float = 0.0
    wrongs: int = 0
    alarms: float = 0.0
    intact: int = 0
    spread: float | None = None
    flips: int = 0
    repeated: int = 0
    agreed: int = 0
    compared: int = 0


class Readiness(Record):
    """Whether a task is ready to measure systems with; `reasons` say what it lacks."""

    task: str
    state: ReadinessState
    reasons: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    leaves: tuple[LeafReadiness, ...] = ()
    judge: str | None = None
    cost_usd: float | None = None
