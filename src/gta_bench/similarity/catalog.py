"""The similarity models by name; importing this imports none of them."""

from importlib import import_module
from pathlib import Path

from gta_bench.errors import UsageError
from gta_bench.metrics.similarity import exact_or_half
from gta_bench.similarity.model import Similarity

DEFAULT = "wordllama"
MODELS = {
    "all-mpnet-base-v2": "upstream's model, by sentence-transformers (extra `similarity`)",
    "wordllama": "small static vectors, no download (extra `similarity-light`)",
    "exact-or-half": "1 if equal, else 0.5: for tests of the method",
}


def load_similarity(name: str) -> Similarity:
    """The model of that name, or the sentence-transformers model in that folder."""
    if name == "exact-or-half":
        return Similarity(name, comparable=False, measure=exact_or_half)
    if name == "wordllama":
        loaded = import_module("gta_bench.similarity.static_vectors").load()
    elif name in MODELS or Path(name).is_dir():
        loaded = import_module("gta_bench.similarity.transformer").load(name)
    else:
        known = ", ".join(MODELS)
        raise UsageError(
            f"Unknown similarity {name!r}: neither a folder nor one of the known models: {known}."
        )
    assert isinstance(loaded, Similarity)
    return loaded
