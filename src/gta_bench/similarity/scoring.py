"""Units scored by a similarity model, as every command does it."""

from collections.abc import Sequence

from gta_bench.metrics.run_scores import score_run
from gta_bench.records.run import Mode
from gta_bench.records.scores import RunScores
from gta_bench.records.units import AtomicUnit
from gta_bench.similarity.catalog import Similarity


def scored(
    units: Sequence[AtomicUnit],
    mode: Mode,
    similarity: Similarity,
    not_run: Sequence[tuple[str, int]] = (),
) -> RunScores:
    """Both scorings, with the similarity's name and whether it is upstream's."""
    return score_run(
        units,
        mode,
        similarity=similarity.measure,
        similarity_name=similarity.name,
        comparable=similarity.comparable,
        not_run=not_run,
    )
