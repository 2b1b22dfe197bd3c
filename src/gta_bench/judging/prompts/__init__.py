"""The judge's prompts: files that a strict template fills."""

from hashlib import sha256

from gta_bench.prompting import Prompts

# Increment it with every change of code that changes a prompt: what the list of files says, how
# leaves are named, where a frame begins. The digests of the prompt files do not show it.
VERSION = 1

_PROMPTS = Prompts(
    __name__,
    (
        *("again.md", "all_shown.md", "control.md", "leaf.md", "leaves.md", "manifest.md"),
        *("system.md", "work.md"),
    ),
)
render = _PROMPTS.render
digests = _PROMPTS.digests


def digest() -> str:
    """Return one digest of all prompts; verdicts with different digests are never mixed."""
    lines = [f"version {VERSION}"]
    lines += [f"{name} {value}" for name, value in sorted(digests().items())]
    return sha256("\n".join(lines).encode()).hexdigest()
