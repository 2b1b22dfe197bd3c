"""The published pipeline's own words and sampling, for `react-upstream` where they are here.

They are not ours to ship: two texts come by `gta data fetch prompts`, the others are read from the
installed package lagent. Without both the agent uses our own words, and the run says so.
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
# Files of the package, and the sha256 of the texts that each has.
LAGENT_TEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    "agents/react.py": {
        "protocol": "247e83006c45abf5457d34614232a2fae1fb394df9893b97d1232b5dff2dd14f",
        "answer_now": "a57b1a884e5acc422c02f5e8af9e3c37a59a680c8d6a64d633cb801e5b91f592",
    },
    "actions/parser.py": {
        "arguments": "0210c8e837107cbcb9aca871bef9ef9413b648a267d2f6be6e9d7e0cea006eae",
    },
}
# What the published client sends where a model's entry says nothing else; it sends no stop words.
SAMPLING: Final[Mapping[str, Any]] = {"temperature": 0.7, "max_tokens": 512}
CHOICES: Final = 1


@dataclass(frozen=True)
class PublishedTexts:
    """What the published pipeline says to a model.

    `protocol` is a template of `str.format`; the paths of files follow `files`. `answer_now` is
    the last message end to end, `answer_without_tools` the one in step mode.
    """

    protocol: str
    arguments: str
    answer_now: str
    answer_without_tools: str
    files: str

    def digests(self) -> dict[str, str]:
        """The sha256 of every text, for the manifest of a run."""
        return {f"published/{name}": text_digest(text) for name, text in vars(self).items()}


def find_published(folder: Path) -> PublishedTexts | None:
    """The published texts; None where one of the two sources is missing."""
    fetched, packaged = read_prompts(folder), _read_lagent()
    return None if fetched is None or packaged is None else PublishedTexts(**packaged, **fetched)


def read_published(folder: Path) -> PublishedTexts:
    """The published texts of a run that uses them, on whatever machine it is continued."""
    found = find_published(folder)
    if found is None:
        raise EnvironmentProblem(
            f"This run uses the published prompts, which are not complete here: {how_to_get()}."
        )
    return found


def how_to_get() -> str:
    """The two commands that bring the texts."""
    return f"`gta data fetch prompts` and `pip install --no-deps lagent=={LAGENT}`"


def _read_lagent() -> dict[str, str] | None:
    """The texts of the installed package, which is not imported: it needs far more than text."""
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
                f"The installed lagent {LAGENT} is not the published one ({name}: {exc}); "
                f"`pip install --force-reinstall --no-deps lagent=={LAGENT}`."
            ) from exc
    return texts
