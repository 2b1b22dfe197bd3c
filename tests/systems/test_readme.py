"""Every command of the README on macOS and Windows: the table of docs/installing.md is true.

Data is fetched from a server here, and a script answers as the model and as the judge.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.chat_server import ChatServer, chat_server
from tests.conftest import REPOSITORY
from tests.docs.test_console_blocks import archives, write_files, write_results  # noqa: F401
from tests.file_server import serving
from tests.packaging.test_first_hour import JUDGE, MODEL, commands, reply_by_script
from tests.systems.machines import BROWSER, SYSTEMS, Machine, Said

README = REPOSITORY / "README.md"
INSTALLING = REPOSITORY / "docs" / "installing.md"
ROW = re.compile(r"\| `(gta [^`]+)` \| (works|partly|refused) \| ([^|]+) \|")
ROADS = ("`--tape`", "`--tools URL`", "docker/Dockerfile")
# What is refused or left out is said in one line with the three roads.
CODES = {"works": (0,), "partly": (0, 1), "refused": (3,)}
# By Inspect, matplotlib and the standard library, about the commit, the fonts and the processor.
ASKED = {"git", "fc-list", "uname"}
VERSIONS = {"--version", "-version"}
WORKER = "gta_bench.tools.backends.workers"


class Row(NamedTuple):
    """A row of the table: a command and its outcome, with the words that it must print."""

    line: str
    outcome: str
    said: list[str]
    codes: Sequence[int]


def table() -> list[Row]:
    found = ROW.findall(INSTALLING.read_text(encoding="utf-8"))
    return [
        Row(
            line,
            outcome,
            re.findall(r"“([^”]+)”", words),
            [int(code) for code in re.findall(r"exit code (\d+)", words)] or CODES[outcome],
        )
        for line, outcome, words in found
    ]


def test_the_table_has_every_command_of_the_readme_in_order() -> None:
    lines = [row.line for row in table()]
    wanted = [one.line for one in commands(README) if one.line.startswith("gta ")]
    assert [line for line in lines if line in wanted] == wanted


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with chat_server(reply_by_script) as opened:
        yield opened


@pytest.mark.measure
@pytest.mark.usefixtures("loopback")
@pytest.mark.parametrize("system", SYSTEMS)
def test_commands_have_the_outcome_of_the_table(
    system: str,
    tmp_path: Path,
    server: ChatServer,
    archives: dict[str, bytes],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Neither the user's data nor the user's weights.
    monkeypatch.delenv("GTA_DATA", raising=False)
    machine = Machine(system, tmp_path / "home", HOME=str(tmp_path))
    write_files(README, machine.folder)
    write_results(machine.folder)
    (machine.folder / "my_agent.py").write_text("print('done')\n", encoding="utf-8")
    settings = machine.folder / "gta.toml"
    text = settings.read_text(encoding="utf-8").replace(MODEL, server.url)
    with serving() as releases:
        releases.files.update(archives)
        own = f'[data]\ngithub = "{releases.url}"\n[scoring]\nsimilarity = "exact-or-half"\n'
        settings.write_text(text.replace(JUDGE, server.url) + own, encoding="utf-8")
        for row in table():
            check(row, machine.run(*shlex.split(row.line)[1:]))
    assert "runs/manus" in machine.fetch("view", "runs")
    assert [one for one in machine.started() if not is_own(one)] == []
    assert list(machine.bad_names()) == []


def check(row: Row, ran: Said) -> None:
    assert ran.code in row.codes, f"{row.line}\n{ran.text}"
    assert "Traceback" not in ran.text, f"{row.line}\n{ran.text}"
    for words in row.said:
        assert words in ran.text, f"{row.line}: {words!r} not in\n{ran.text}"
    if row.outcome != "works":
        assert any(all(road in line for road in ROADS) for line in ran.text.splitlines()), (
            f"{row.line}\n{ran.text}"
        )


def is_own(argv: Sequence[str]) -> bool:
    """A process of ours (OCR, `--workers`, the browser), or one that only answers a question."""
    if argv[0] == BROWSER or Path(argv[0]).name in ASKED or "multiprocessing" in " ".join(argv):
        return True
    return list(argv[1:3]) == ["-m", WORKER] or (len(argv) == 2 and argv[1] in VERSIONS)
