"""What the judge is told: prompt files, filled by a strict template."""

from hashlib import sha256

from gta_bench.prompting import Prompts

# Raised by every change of code that puts the words together otherwise: what the list of files
# says, how leaves are named, where a frame begins. The digest of a prompt file does not see it.
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
    """One digest of all prompts: verdicts under different ones are never taken for each other."""
    lines = [f"version {VERSION}"]
    lines += [f"{name} {value}" for name, value in sorted(digests().items())]
    return sha256("\n".join(lines).encode()).hexdigest()
