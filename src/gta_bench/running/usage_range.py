"""A range of calls, tokens and dollars that units take: guessed, or scaled from finished ones."""

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from gta_bench.settings import ModelSettings

# From so many finished units on, what they took says more than any guess.
ENOUGH_UNITS: Final = 5
# A range is no narrower than this share of its middle to either side, and no wider than its half.
_NARROWEST, _WIDEST = 0.05, 0.5


class Amount(NamedTuple):
    """What a unit takes of a model."""

    calls: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0

    def scaled(self, factor: float) -> "Amount":
        """So many times as much."""
        return Amount(*(part * factor for part in self))


class Guess(NamedTuple):
    """What a unit takes at least and at most, as far as its prompts tell."""

    low: Amount
    high: Amount


class UsageRange(NamedTuple):
    """What `units` units of a run take of one model, and what that is known from."""

    who: str
    units: int
    low: Amount
    high: Amount
    basis: str
    settings: ModelSettings

    @property
    def middle(self) -> Amount:
        """Halfway between low and high."""
        return Amount(*((a + b) / 2 for a, b in zip(self.low, self.high, strict=True)))

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


def sum_amounts(amounts: Iterable[Amount]) -> Amount:
    """All of them together."""
    found = [Amount(), *amounts]
    return Amount(*map(math.fsum, zip(*found, strict=True)))


def scale_measured(
    finished: Sequence[tuple[Amount, Amount]], left: Sequence[Amount]
) -> tuple[Amount, Amount]:
    """The least and the most that units of the sizes `left` take.

    `finished` has the size of each finished unit, as far as its prompts tell, and what it took.
    Their ratio is taken over: a task with longer prompts is expected to take more.
    """
    ranges = [
        _scale([(size[part], took[part]) for size, took in finished], [one[part] for one in left])
        for part in range(len(Amount._fields))
    ]
    return Amount(*(low for low, _ in ranges)), Amount(*(high for _, high in ranges))


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
