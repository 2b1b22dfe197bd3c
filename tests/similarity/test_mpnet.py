"""MPNet in numpy, against embeddings that sentence-transformers made of the same small model."""

import json
from pathlib import Path

import numpy as np
import pytest

from gta_bench.similarity.mpnet import Encoder, distance_buckets, gelu

FOLDER = Path(__file__).parent / "tiny_mpnet"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(FOLDER)


@pytest.mark.parametrize("text", EXPECTED["embeddings"], ids=lambda text: text[:20] or "empty")
def test_an_embedding_equals_that_of_sentence_transformers(encoder: Encoder, text: str) -> None:
    expected = np.array(EXPECTED["embeddings"][text])
    assert np.abs(encoder.encode(text) - expected).max() < 1e-6


def test_distances_have_the_buckets_of_the_original() -> None:
    """In double precision, distances that are powers of two would fall into other buckets."""
    found = distance_buckets(384, 32)
    assert found[0].tolist() == EXPECTED["buckets_after"]
    assert found[:, 0].tolist() == EXPECTED["buckets_before"]


def test_gelu_is_that_of_the_original() -> None:
    given = np.array([*EXPECTED["gelu"]], dtype=np.float32)
    expected = np.array([*EXPECTED["gelu"].values()])
    assert np.abs(gelu(given) - expected).max() < 1e-6
