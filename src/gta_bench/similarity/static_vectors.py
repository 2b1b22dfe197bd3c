"""WordLlama: static word vectors that ship inside their package, no torch, no download."""

from functools import cache
from pathlib import Path

import wordllama

from gta_bench.similarity.catalog import Similarity


def load() -> Similarity:
    """WordLlama's 256-dimensional vectors."""
    # Its weights lie beside its code; without the folder it would ask a hub for the tokenizer.
    folder = Path(str(wordllama.__file__)).parent
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)

    @cache
    def measure(first: str, second: str) -> float:
        return min(max(float(model.similarity(first, second)), 0.0), 1.0)

    return Similarity(f"wordllama-{wordllama.__version__}", comparable=False, measure=measure)
