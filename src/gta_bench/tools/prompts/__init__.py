"""What tools ask vision models: prompt files, filled by a strict template."""

from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template

PROMPTS = ("count.md", "describe.md", "ground.md", "math.md", "region.md")


def render(name: str, **fields: str) -> str:
    """The prompt with every `$field` filled; a missing or an extra field fails."""
    template = Template(_source(name).decode("utf-8").removesuffix("\n"))
    wanted = set(template.get_identifiers())
    if wanted != set(fields):
        raise ValueError(f"Prompt {name!r} takes {sorted(wanted)}, got {sorted(fields)}.")
    return template.substitute(fields)


def digests() -> dict[str, str]:
    """The sha256 of every prompt file, for the manifest of a run."""
    return {name: sha256(_source(name)).hexdigest() for name in PROMPTS}


@cache
def _source(name: str) -> bytes:
    if name not in PROMPTS:
        raise ValueError(f"Unknown prompt {name!r}. Known prompts: {', '.join(PROMPTS)}.")
    return files(__name__).joinpath(name).read_bytes()
