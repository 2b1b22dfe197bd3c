"""A real small LLM behind the OpenAI protocol, as the demo has it; its weights are fetched."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gta_bench.demo.local_model import MODEL, SMOLLM2, serving_model
from gta_bench.weights import fetch

CACHE = Path.home() / ".cache" / "gta-bench" / "weights"
__all__ = ["MODEL", "llm_server"]


# Where repetition is penalized, a JSON text goes on in nonsense and does not end.
PLAIN = "params.sampling.penalty_repeat, params.sampling.temp = 1.0, 0.4"


@contextmanager
def llm_server(threads: int = 2, longest_reply: int = -1, plain: bool = False) -> Iterator[str]:
    """The server's base address."""
    weights = fetch(SMOLLM2, CACHE, lambda _: None) / SMOLLM2.files[0].name
    settings = f"params.n_predict = {longest_reply}\n{PLAIN if plain else ''}"
    with serving_model(weights, threads=threads, settings=settings) as url:
        yield url
