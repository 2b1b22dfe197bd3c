"""What the jail's start adds to a program, against the same program alone, in turn."""

import asyncio
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.confine.probe import find_jail
from gta_bench.tools.documents.pandoc import LIMITS, pandoc_command
from tests.needs import needs
from tests.tools.documents import making
from tests.tools.documents.sample import MARKDOWN

pytestmark = [pytest.mark.measure, needs("bwrap")]
ROUNDS = 21
MOST = 1.4
WORD = pandoc_command(["--from=gfm", "--to=docx", "--output=made.docx"])


class Watched(Jail):
    """Keeps what it was last asked to run, so that the same can be run without it."""

    last: dict[str, Any]

    async def run_program(self, argv: Any, **options: Any) -> Any:
        self.last = {"argv": argv, **options}
        return await super().run_program(argv, **options)

    def bare(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            for part in ("inputs", "work"):
                (Path(name) / part).mkdir()
            for file, data in (self.last.get("inputs") or {}).items():
                content = data if isinstance(data, bytes) else data.read_bytes()
                (Path(name) / "inputs" / file).write_bytes(content)
            subprocess.run(
                self.last["argv"],
                input=self.last.get("stdin", b""),
                cwd=Path(name) / "work",
                env=dict(self.last.get("environment") or {}) | {"PATH": "/usr/bin:/bin"},
                capture_output=True,
                check=True,
            )


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(name: str, jailed: Callable[[], object], bare: Callable[[], object]) -> float:
    """The median of the rounds' own ratios."""
    jailed()
    pairs = [(seconds(jailed), seconds(bare)) for _ in range(ROUNDS)]
    ours, theirs = (statistics.median(part) for part in zip(*pairs, strict=True))
    ratio = statistics.median(first / second for first, second in pairs)
    print(f"{name}: jailed {ours:.4f} s, bare {theirs:.4f} s, ratio {ratio:.2f}")
    return ratio


def watched() -> Watched:
    kind = asyncio.run(find_jail()).kind
    assert kind == "bubblewrap"
    return Watched(kind, slots=1)


def test_the_start_of_a_jail_is_small_beside_pandoc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watched() as jail, asyncio.Runner() as runner:

        def run(argv: list[str], stdin: bytes) -> Callable[[], object]:
            return lambda: runner.run(jail.run_program(argv, stdin=stdin, limits=LIMITS))

        monkeypatch.setattr(making, "jail", lambda: jail)
        desk, content = making.bench(tmp_path), MARKDOWN * 12
        pictures = "inputs/wide.png,inputs/tall.png"

        def make() -> bytes:
            return desk.make("DocxFileGenerator", content=content, image_paths=pictures)

        compare("true", run(["true"], b""), jail.bare)
        ratios = [
            compare("pandoc, the sample", run(WORD, MARKDOWN.encode()), jail.bare),
            compare("pandoc, 12 times the sample", run(WORD, content.encode()), jail.bare),
            compare("DocxFileGenerator, 12 times the sample", make, jail.bare),
        ]
    assert max(ratios) <= MOST
