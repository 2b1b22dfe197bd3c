"""sentence-transformers: upstream's all-mpnet-base-v2, or any model in a local folder."""

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from gta_bench.errors import EnvironmentProblem
from gta_bench.similarity.model import Similarity

UPSTREAM = "all-mpnet-base-v2"
UPSTREAM_WEIGHTS = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"


def load(name: str) -> Similarity:
    """Upstream's model by its name, or the one in that folder; compared as upstream does."""
    if find_spec("sentence_transformers") is None:
        raise EnvironmentProblem(
            f"The similarity {name!r} needs sentence-transformers: "
            "pip install 'gta-bench[similarity]'."
        )
    import sentence_transformers

    folder = Path(name)
    try:
        model = sentence_transformers.SentenceTransformer(name, device="cpu")
    except (OSError, ValueError) as exc:
        raise EnvironmentProblem(
            f"The similarity {name!r} cannot be loaded ({type(exc).__name__}). "
            "Give the folder of a downloaded sentence-transformers model instead."
        ) from exc

    @cache
    def encode(text: str) -> object:
        return model.encode(text, convert_to_tensor=True, show_progress_bar=False)

    def measure(first: str, second: str) -> float:
        # Kept for parity: each text is encoded alone and a negative cosine counts as 0.
        cosine = float(sentence_transformers.util.cos_sim(encode(first), encode(second)))
        return max(cosine, 0.0)

    weights = _weights_digest(folder) if folder.is_dir() else UPSTREAM_WEIGHTS
    version = sentence_transformers.__version__
    label = f"{folder.name} (sha256 {weights[:12]}, sentence-transformers {version})"
    return Similarity(label, comparable=weights == UPSTREAM_WEIGHTS, measure=measure)


def _weights_digest(folder: Path) -> str:
    file = folder / "model.safetensors"
    if not file.is_file():
        return "unknown"
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
