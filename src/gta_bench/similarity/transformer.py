"""sentence-transformers: any of its models in a local folder (extra `similarity`)."""

import hashlib
from functools import cache
from pathlib import Path

from gta_bench.errors import EnvironmentProblem
from gta_bench.packages import require_packages
from gta_bench.similarity.catalog import Similarity
from gta_bench.weights import MPNET


def load(folder: Path) -> Similarity:
    """The model in that folder; it is upstream's if its weights are."""
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

    weights = _weights_digest(folder)
    version = sentence_transformers.__version__
    label = f"{folder.name} (sha256 {weights[:12]}, sentence-transformers {version})"
    return Similarity(label, comparable=weights == MPNET.files[0].sha256, measure=measure)


def _weights_digest(folder: Path) -> str:
    file = folder / "model.safetensors"
    if not file.is_file():
        return "unknown"
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
