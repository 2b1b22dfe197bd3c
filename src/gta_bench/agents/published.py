"""The published pipeline's own prompts and sampling, for `react-upstream`.

We may not ship them: `gta data fetch prompts` fetches two texts, and the others are read from the
installed package lagent. Without both, the agent uses our own prompts, and the run says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from gta_bench.datasets.pinned import find_texts, read_prompts, text_digest
from gta_bench.errors import EnvironmentProblem

AGENT: Final = "react-upstream"
LAGENT: Final = "0.2.4"
# Files of the package, with the sha256 of the texts in each.
LAGENT_TEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    "agents/react.py": {
        "protocol": "247e83006c45abf5457d34614232a2fae1fb394df9893b97d1232b5dff2dd14f",
        "answer_now": "a57b1a884e5acc422c02f5e8af9e3c37a59a680c8d6a64d633cb801e5b91f592",
    },
    "actions/parser.py": {
        "arguments": "0210c8e837107cbcb9aca871bef9ef9413b648a267d2f6be6e9d7e0cea006eae",
    },
}
# The published client's defaults; it sends no stop sequences.
SAMPLING: Final[Mapping[str, Any]] = {"temperature": 0.7, "max_tokens": 512}
CHOICES: Final = 1


@dataclass(frozen=True)
class PublishedTexts:
    """The texts that the published pipeline sends to a model.

    `protocol` is a `str.format` template, and `files` is followed by the paths of the files.
    `answer_now` is the last message end to end, `answer_without_tools` the last one in step mode.
    """

    protocol: str
    arguments: str
    answer_now: str
    answer_without_tools: str
    files: str

    def digests(self) -> dict[str, str]:
        """Return the sha256 of every text, for the manifest of a run."""
        return {f"published/{name}": text_digest(text) for name, text in vars(self).items()}


def find_published(folder: Path) -> PublishedTexts | None:
    """Return the published texts; None if one of the two sources is missing."""
    fetched, packaged = read_prompts(folder), _read_lagent()
    return None if fetched is None or packaged is None else PublishedTexts(**packaged, **fetched)


def read_published(folder: Path) -> PublishedTexts:
    """Return the published texts for a run that uses them; raises if this machine lacks them."""
    found = find_published(folder)
    if found is None:
        raise EnvironmentProblem(
            f"This run uses the published prompts, which are incomplete here. Run {how_to_get()}."
        )
    return found


def how_to_get() -> str:
    """Return the two commands that install the texts."""
    return f"`gta data fetch prompts` and `pip install --no-deps lagent=={LAGENT}`"


def _read_lagent() -> dict[str, str] | None:
    """Return the texts of the installed package without importing it, for it needs far more."""
    try:
        installed = version("lagent")
    except PackageNotFoundError:
        return None
    spec = find_spec("lagent")
    if installed != LAGENT or spec is None or not spec.submodule_search_locations:
        return None
    root = Path(spec.submodule_search_locations[0])
    texts: dict[str, str] = {}
    for name, pins in LAGENT_TEXTS.items():
        try:
            texts |= find_texts((root / name).read_text(encoding="utf-8"), pins)
        except (OSError, ValueError) as exc:
            raise EnvironmentProblem(
                f"The installed lagent {LAGENT} is not the published one ({name}: {exc}). "
                f"Run `pip install --force-reinstall --no-deps lagent=={LAGENT}`."
            ) from exc
    return texts
