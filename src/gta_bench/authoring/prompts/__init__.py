"""The prompt that asks a model to propose the leaves of a draft."""

from hashlib import sha256

from gta_bench.prompting import Prompts

_PROMPTS = Prompts(__name__, ("again.md", "propose.md"))
render = _PROMPTS.render


def digest() -> str:
    """Return one digest of the prompts."""
    lines = [f"{name} {value}" for name, value in sorted(_PROMPTS.digests().items())]
    return sha256("\n".join(lines).encode()).hexdigest()
