"""A new kind of check: its parameters, when it holds, and the decision itself."""

import re

from pydantic import Field

from gta_bench.checks.delivery import CheckedWork
from gta_bench.checks.outcome import Outcome
from gta_bench.records.base import Record

METERS = {"m": 1.0, "km": 1000.0, "mile": 1609.344, "miles": 1609.344, "foot": 0.3048}
LENGTH = re.compile(r"(\d+(?:\.\d+)?) ?(km|miles?|m|foot)\b")


class Length(Record):
    """Holds if the file's text gives that length, in any unit."""

    file: str
    meters: float
    within: float = Field(0.0, ge=0, description="Allowed difference, in meters.")

    async def decide(self, work: CheckedWork) -> Outcome:
        """Read the file as our own checks do; a missing or broken file fails the check."""
        file = work.find(self.file)
        found = [float(number) * METERS[unit] for number, unit in
                 LENGTH.findall(await work.text(file))]  # fmt: skip
        holds = any(abs(one - self.meters) <= self.within for one in found)
        seen = ", ".join(f"{one:g} m" for one in found) or "no length"
        return Outcome(holds, file.path, seen, f"{self.meters:g} m ± {self.within:g}")
