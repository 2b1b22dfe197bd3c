"""Stand-ins for the published texts, which are not ours to keep: another text, another digest."""

from collections.abc import MutableMapping
from pathlib import Path
from typing import cast

import pytest

from gta_bench.agents.published import LAGENT, LAGENT_TEXTS
from gta_bench.datasets.pinned import PINNED_TEXTS, text_digest, write_prompts

FILES = "Stand-in for the words before the files: "
LAST = "Stand-in for the last message of step mode."
PROTOCOL = (
    "Stand-in {tool_description} {action_names} "
    "{thought} {action} {action_input} {response} {finish}"
)
NOW = "Stand-in for the last message\n end to end."
ARGUMENTS = "Stand-in for how to pass {key: value}."


def keep_prompts(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """A folder with the texts that are fetched, under digests of their own."""
    texts = {"files": FILES, "answer_without_tools": LAST}
    for name, text in texts.items():
        patch.setitem(cast(MutableMapping[str, str], PINNED_TEXTS), name, text_digest(text))
    write_prompts(folder, texts)
    return folder


def install_lagent(folder: Path, patch: pytest.MonkeyPatch, version: str = LAGENT) -> None:
    """A package of that name and version with stand-ins, which raises where it is imported."""
    sources = {
        "agents/react.py": f"raise ImportError\nPROTOCOL = {PROTOCOL!r}\nNOW = {NOW!r}\n",
        "actions/parser.py": f"class JsonParser:\n    WORDS = {ARGUMENTS!r}\n",
        "__init__.py": "raise ImportError('lagent was imported')\n",
    }
    for name, source in sources.items():
        file = folder / "lagent" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source, encoding="utf-8")
    about = folder / f"lagent-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: lagent\nVersion: {version}\n", encoding="utf-8")
    texts = {"protocol": PROTOCOL, "answer_now": NOW, "arguments": ARGUMENTS}
    for pins in LAGENT_TEXTS.values():
        for name in pins:
            patch.setitem(cast(MutableMapping[str, str], pins), name, text_digest(texts[name]))
    patch.syspath_prepend(str(folder))
