"""A cheap judge before a strong one: what is far from the threshold is not asked again."""

from gta_bench.records.verdicts import Scored
from gta_bench.runs.store import StorePath
from gta_bench.runs.verdicts import append_verdicts, read_verdicts


def cascade_name(cheap: str, strong: str, band: float) -> str:
    """The cascade is a judge of its own, with a name of its own."""
    return f"{strong} after {cheap} within {band:g}"


def take_over(run: StorePath, cheap: str, cascade: str, *, threshold: float, band: float) -> None:
    """Keep the cheap judge's scores that are not near the threshold as the cascade's own.

    They cost nothing more; every other leaf is open, and so the strong judge is asked for it.
    """
    known = read_verdicts(run)
    taken = []
    for key, row in known.items():
        if key.judge != cheap or not isinstance(row.verdict, Scored):
            continue
        own = key.model_copy(update={"judge": cascade})
        near = abs(row.verdict.value - threshold) <= band
        held = known.get(own)
        if near or (
            held is not None and held.evidence == row.evidence and held.prompts == row.prompts
        ):
            continue
        free = {"input_tokens": 0, "cached_tokens": 0, "output_tokens": 0, "cost_usd": 0.0}
        taken.append(row.model_copy(update={"key": own, **free}))
    append_verdicts(run, taken)
