"""The tutorial on tasks of your own, followed from top to bottom in an empty folder.

Blocks with a title become files at the moment when the page shows them, and every command of the
console blocks is given in between, with the output that the page shows.
"""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from tests.conftest import REPOSITORY
from tests.docs.blocks import Block, blocks
from tests.docs.test_console_blocks import pattern, split_commands
from tests.needs import needs

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("loopback"), needs("bwrap")]

PAGE = REPOSITORY / "docs" / "tutorials" / "own-tasks.md"
# A command that leaves leaves without a score ends with 1, and the page says so.
INCOMPLETE = "without a score"


def test_the_tutorial_leads_from_an_empty_folder_to_a_judged_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks(PAGE):
        if block.title is not None:
            file = tmp_path / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            _give_commands(block)
    assert "found 4 rows" in (tmp_path / "report.html").read_text(encoding="utf-8")


def _give_commands(block: Block) -> None:
    for command, shown in split_commands(block):
        program, *words = shlex.split(command)
        assert program == "gta"
        ran = CliRunner().invoke(app, words)
        expected = 1 if any(INCOMPLETE in line for line in shown) else 0
        assert ran.exit_code == expected, f"{block.place}: {command}\n{ran.output}{ran.exception!r}"
        for line in shown:
            assert re.search(pattern(line), ran.output), f"{line!r} not in\n{ran.output}"
