"""Text similarity models by name, and scoring with one of them.

Importing this module loads no model; `load_similarity` does.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from gta_bench.errors import EnvironmentProblem, UsageError
from gta_bench.metrics.run_scores import UnitSink, score_run
from gta_bench.metrics.similarity import exact_or_half
from gta_bench.packages import require_packages
from gta_bench.records.run import Mode
from gta_bench.records.scores import RunScores
from gta_bench.records.units import AtomicUnit
from gta_bench.settings import ScoringSettings
from gta_bench.weights import MPNET, check_files, find_weights, weights_folder


class Similarity(NamedTuple):
    """A loaded model. `comparable` is true if its scores can be compared with published ones."""

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
    """Return the name of the published model if it was fetched, else of the small one."""
    return SMALL if find_weights(MPNET, weights_folder()) is None else PUBLISHED


def choose_similarity(settings: ScoringSettings) -> str:
    """Return the model that the settings name, or the default."""
    return settings.similarity or default_similarity()


@cache
def load_similarity(name: str) -> Similarity:
    """Load a model by name, or a sentence-transformers model from the folder `name`."""
    if name == "exact-or-half":
        return Similarity(name, comparable=False, measure=exact_or_half)
    if name == SMALL:
        return _load_wordllama()
    if name == PUBLISHED:
        folder = find_weights(MPNET, weights_folder())
        if folder is None:
            raise EnvironmentProblem(
                f"The weights of {PUBLISHED} are missing. Run `gta tools fetch {PUBLISHED}`."
            )
        return load_mpnet(folder)
    if Path(name).is_dir():
        return _load_transformer(Path(name))
    raise UsageError(
        f"Unknown similarity {name!r}: neither a folder nor a known model. "
        f"Known models: {', '.join(MODELS)}."
    )


def score_units(
    units: Iterable[AtomicUnit],
    mode: Mode,
    similarity: Similarity,
    not_run: Sequence[tuple[str, int]] = (),
    sink: UnitSink | None = None,
) -> RunScores:
    """Score units with a similarity model, whose name and comparability the scores record."""
    return score_run(
        units,
        mode,
        similarity=similarity.measure,
        similarity_name=similarity.name,
        comparable=similarity.comparable,
        not_run=not_run,
        sink=sink,
    )


def load_mpnet(folder: Path) -> Similarity:
    """Load the published model from a folder, after checking that its files are the published ones.

    Needs no torch: `gta_bench.similarity.mpnet` computes the embeddings in numpy.
    """
    from gta_bench.similarity.mpnet import Encoder

    check_files(MPNET, folder)
    encode = cache(Encoder(folder).encode)

    def measure(first: str, second: str) -> float:
        # Kept for parity: each text is encoded alone and a negative cosine counts as 0.
        return min(max(float(encode(first) @ encode(second)), 0.0), 1.0)

    name = f"{MPNET.name} (sha256 {MPNET.files[0].sha256[:12]})"
    return Similarity(name, comparable=True, measure=measure)


def _load_wordllama() -> Similarity:
    """Load WordLlama's 256-dimensional word vectors, which ship inside its package."""
    # Its import lets every package of this process write its notes to standard error.
    root = logging.getLogger()
    level, handlers = root.level, [*root.handlers]
    import wordllama

    root.setLevel(level)
    root.handlers[:] = handlers
    # The weights are next to its code; without this folder it would download the tokenizer.
    folder = Path(str(wordllama.__file__)).parent
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)

    @cache
    def measure(first: str, second: str) -> float:
        return min(max(float(model.similarity(first, second)), 0.0), 1.0)

    return Similarity(f"wordllama-{wordllama.__version__}", comparable=False, measure=measure)


def _load_transformer(folder: Path) -> Similarity:
    """Load a sentence-transformers model (extra `similarity`); comparable if it is upstream's."""
    require_packages(f"The similarity in {folder}", "sentence_transformers", extra="similarity")
    import sentence_transformers

    try:
        model = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    except (OSError, ValueError) as exc:
        raise EnvironmentProblem(
            f"The similarity in {folder} cannot be loaded ({type(exc).__name__}): it must be the "
            "folder of a sentence-transformers model."
        ) from exc

    @cache
    def encode(text: str) -> object:
        return model.encode(text, convert_to_tensor=True, show_progress_bar=False)

    def measure(first: str, second: str) -> float:
        # Kept for parity: each text is encoded alone and a negative cosine counts as 0.
        cosine = float(sentence_transformers.util.cos_sim(encode(first), encode(second)))
        return max(cosine, 0.0)

    file, digest = folder / "model.safetensors", "unknown"
    if file.is_file():
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    version = sentence_transformers.__version__
    label = f"{folder.name} (sha256 {digest[:12]}, sentence-transformers {version})"
    return Similarity(label, comparable=digest == MPNET.files[0].sha256, measure=measure)
