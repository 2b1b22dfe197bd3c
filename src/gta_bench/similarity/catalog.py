"""The similarity models by name; importing this imports none of them."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from gta_bench.errors import EnvironmentProblem, UsageError
from gta_bench.metrics.similarity import exact_or_half
from gta_bench.settings import ScoringSettings
from gta_bench.weights import MPNET, present, weights_folder


class Similarity(NamedTuple):
    """`comparable` says whether its scores may stand beside published ones."""

    name: str
    comparable: bool
    measure: Callable[[str, str], float]


PUBLISHED = MPNET.name
SMALL = "wordllama"
MODELS = {
    PUBLISHED: f"upstream's model (`gta tools fetch {PUBLISHED}`)",
    SMALL: "small static vectors, always installed",
    "exact-or-half": "1 if equal, else 0.5: for tests of the method",
}


def default_similarity() -> str:
    """The published model where it was fetched, else the small one."""
    return SMALL if present(MPNET, weights_folder()) is None else PUBLISHED


def chosen_similarity(settings: ScoringSettings) -> str:
    """The model that the settings name, or the default."""
    return settings.similarity or default_similarity()


@cache
def load_similarity(name: str) -> Similarity:
    """The model of that name, or the sentence-transformers model in that folder."""
    if name == "exact-or-half":
        return Similarity(name, comparable=False, measure=exact_or_half)
    if name == SMALL:
        loaded = import_module("gta_bench.similarity.static_vectors").load()
    elif name == PUBLISHED:
        loaded = import_module("gta_bench.similarity.mpnet").load(_published_folder())
    elif Path(name).is_dir():
        loaded = import_module("gta_bench.similarity.transformer").load(Path(name))
    else:
        known = ", ".join(MODELS)
        raise UsageError(
            f"Unknown similarity {name!r}: neither a folder nor one of the known models: {known}."
        )
    assert isinstance(loaded, Similarity)
    return loaded


def _published_folder() -> Path:
    kept = present(MPNET, weights_folder())
    if kept is None:
        raise EnvironmentProblem(
            f"The weights of {PUBLISHED} are not here: gta tools fetch {PUBLISHED}"
        )
    return kept
