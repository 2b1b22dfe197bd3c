"""Run gta as on macOS or Windows, as far as this package can see (pretended/sitecustomize.py)."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import httpx

import gta_bench

PRETENDED = Path(__file__).parent / "pretended"
ADDRESS = re.compile(r"http://\S+")
BROWSER = "true"  # a program that does nothing
SYSTEMS = ("darwin", "win32")
# What Windows does not allow in a file name, by its documentation.
INVALID = re.compile(r'[<>:"\\|?*\x00-\x1f]|[ .]$')
RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)


class Said(NamedTuple):
    """The exit code of a command, and all that it printed."""

    code: int
    text: str


class Machine:
    """A folder on a pretended system, in which commands run; every program they start is noted."""

    def __init__(self, system: str, folder: Path, **environment: str) -> None:
        self.system, self.folder = system, folder
        self._starts = folder.parent / f"{folder.name}-starts.jsonl"
        self._environment = environment
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, *words: str) -> Said:
        """Run `gta` with these words."""
        return self.python("-m", "gta_bench", *words)

    def fetch(self, *words: str) -> str:
        """Start a command that serves a page, and return the page at the address it prints."""
        with subprocess.Popen(
            [sys.executable, "-u", "-m", "gta_bench", *words],
            cwd=self.folder,
            env={**self._variables(), "BROWSER": BROWSER},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as server:
            assert server.stdout is not None
            try:
                lines = iter(server.stdout)
                address = next(found[0] for line in lines if (found := ADDRESS.search(line)))
                return httpx.get(address, follow_redirects=True).raise_for_status().text
            finally:
                server.kill()

    def python(self, *words: str) -> Said:
        """Run Python with these words."""
        ran = subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=self._variables(), capture_output=True
        )
        return Said(ran.returncode, (ran.stdout + ran.stderr).decode("utf-8"))

    def _variables(self) -> dict[str, str]:
        source = Path(gta_bench.__file__).parents[1]
        own = [str(PRETENDED), str(source), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            **os.environ,
            **self._environment,
            "PYTHONPATH": os.pathsep.join(own),
            "PRETENDED_SYSTEM": self.system,
            "PRETENDED_STARTS": str(self._starts),
            # The code page of Western Windows, for what is not a terminal.
            **({"PYTHONIOENCODING": "cp1252"} if self.system == "win32" else {}),
        }

    def started(self) -> list[Sequence[str]]:
        """The commands of all programs that were started."""
        if not self._starts.exists():
            return []
        lines = self._starts.read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["argv"] for line in lines]

    def bad_names(self) -> Iterator[str]:
        """The files and folders that Windows could not have."""
        folders = [self.folder, *(one for one in self.folder.rglob("*") if one.is_dir())]
        for folder in folders:
            names = [one.name for one in folder.iterdir()]
            seen = Counter(name.casefold() for name in names)
            for name in names:
                taken = seen[name.casefold()] > 1
                if INVALID.search(name) or RESERVED.fullmatch(name) or taken:
                    yield str(folder / name)
