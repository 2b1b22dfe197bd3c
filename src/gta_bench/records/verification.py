"""What repeating a part of a submitted bundle came to, and the tier that this supports."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from gta_bench.records.base import Record
from gta_bench.records.leaderboard import Tier

Share = Annotated[float, Field(ge=0, le=1)]


class InflationTest(Record):
    """Whether stated outcomes are better than repeated ones, one-sided.

    Of `n` outcomes in `tasks` tasks, `better` passed as stated and not when repeated, `worse` the
    other way round. `difference` is the share by which the stated ones are better. `power` is the
    chance to find it where `effect` of all outcomes were turned into passes.
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
        """Whether the stated outcomes are better than chance lets repeated ones be."""
        return self.p_value < LEVEL

    @property
    def supports(self) -> bool:
        """Whether it found nothing and would have."""
        return not self.disagrees and self.power >= ENOUGH_POWER


LEVEL = 0.05
ENOUGH_POWER = 0.8


class Repetition(Record):
    """The tasks that were drawn, and how their repetition compares with what was stated."""

    kind: Literal["re-judged", "re-run"]
    drawn: tuple[str, ...]
    test: InflationTest


class Verification(Record):
    """`gta leaderboard verify`: the seed was drawn after the bundle was made.

    `tier` is what the repetitions support; a repetition that disagrees, or that would not have
    found 10 % (re-run: 20 %) better outcomes, supports nothing above `self-reported`.
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
        """Whether a repetition shows that the bundle states too much."""
        return any(one.test.disagrees for one in self.repetitions)
