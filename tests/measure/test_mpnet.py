"""The published similarity model with its real weights, fetched as a user fetches them."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.run_scores import score_run
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.units import AtomicUnit
from gta_bench.similarity.catalog import load_mpnet
from gta_bench.similarity.mpnet import Encoder
from gta_bench.weights import MPNET, fetch
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.measure
# Made by tests/similarity/tiny_mpnet/make.py.
EXPECTED = REPOSITORY / "tests" / "similarity" / "tiny_mpnet" / "published.json"


@pytest.fixture(scope="module")
def mpnet() -> Path:
    """Not in the folder where commands look: there it would be the default of all other tests."""
    return fetch(MPNET, Path.home() / ".cache" / "gta-bench" / "measured", print)


def test_embeddings_equal_those_of_sentence_transformers(mpnet: Path) -> None:
    encoder = Encoder(mpnet)
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))["embeddings"]
    off = [np.abs(encoder.encode(text) - np.array(row)).max() for text, row in expected.items()]
    print(f"largest difference in {len(off)} embeddings: {max(off):.1e}")
    assert max(off) < 1e-5


def test_upstreams_model_is_recognized_and_its_scores_are_comparable(
    mpnet: Path, atomic_tasks: Mapping[str, AtomicTask]
) -> None:
    similarity = load_mpnet(mpnet)
    assert similarity.comparable
    same = "The beer costs 12."
    assert similarity.measure(same, same) == pytest.approx(1, abs=1e-5)
    near = similarity.measure("A man rides a bicycle.", "A person is cycling.")
    far = similarity.measure("A man rides a bicycle.", "Mix flour and sugar.")
    assert near > far + 0.3
    units = [AtomicUnit(task=task, trace=reference_steps(task)) for task in atomic_tasks.values()]
    scores = score_run(
        units,
        "step",
        similarity=similarity.measure,
        similarity_name=similarity.name,
        comparable=similarity.comparable,
    )
    print(f"reference, {similarity.name}: {scores.compat}")
    found = scores.compat.model_dump()
    assert found["inst_acc"] == 105.6241426611797
    assert found["summ_acc"] == pytest.approx(90.85, abs=0.005)  # as by sentence-transformers
