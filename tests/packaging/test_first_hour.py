"""Every command of README and the first tutorials, as a newcomer gives them.

From the built wheel, with only what the page installs, in an empty folder, as an ordinary user, in
the order of the page. A small real model is the model; a script is the judge, because leaves would
take such a model minutes (it judges in tests/slow/test_local_model_run.py). Three things are
replaced: data is found through GTA_DATA instead of being fetched, the addresses of the page's
gta.toml are those of servers here, and what the reader brings (results) lies there already.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.chat_server import chat_server
from tests.confine.users import ORDINARY, as_ordinary
from tests.conftest import REPOSITORY
from tests.docs.blocks import ALL
from tests.docs.test_console_blocks import pattern, write_files, write_results
from tests.llm_server import llm_server
from tests.needs import needs
from tests.packaging.releases import built_release

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("loopback"), needs("bwrap")]

TUTORIALS = REPOSITORY / "docs" / "tutorials"
NAMES = ("first-model.md", "first-harness.md", "finished-results.md")
# Those of the tutorials are run by hand.
README = REPOSITORY / "README.md"
PAGES = (
    pytest.param(README, id=README.stem),
    *(pytest.param(TUTORIALS / name, id=name, marks=pytest.mark.measure) for name in NAMES),
)
# Blocks that are no commands; one of any other language would be run by nobody.
OTHERS = ("text", "toml", "python")
# The servers that a page names: model, judge.
MODEL, JUDGE = "http://localhost:8000/v1", "http://localhost:8001/v1"
# The leaf that a judge is asked about.
LEAF = re.compile(r"\\nleaf: ([^\\\"\s]+)")


def reply_by_script(request: dict[str, Any]) -> str:
    """Answer as a model, and as a judge that finds everything there."""
    if request.get("response_format") is None:
        return "It is 7."
    leaf = LEAF.findall(json.dumps(request["messages"][-1]))[-1]
    return json.dumps({"leaf": leaf, "used": [], "reason": "It is there.", "score": 8})


class Command(NamedTuple):
    """A command line of a page, with the output lines that the page shows below it."""

    line: str
    shown: list[str]


def commands(page: Path) -> Iterator[Command]:
    """Every command line of the page, whatever its program is."""
    for block in (one for one in ALL if one.page == page):
        if block.language in OTHERS:
            continue
        assert block.language in ("console", "sh"), f"{block.place}: not run by this test"
        text = block.text.replace("\\\n", " ")
        if block.language == "console":
            for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
                line, *shown = part.rstrip("\n").split("\n")
                yield Command(line, shown)
        else:
            lines = (line.partition("  #")[0].strip() for line in text.splitlines())
            yield from (Command(line, []) for line in lines if line and not line.startswith("#"))


class Newcomer:
    """An ordinary user with a home, an environment and nothing of the repository."""

    def __init__(self, folder: Path, wheel: Path, data: Path, servers: Mapping[str, str]) -> None:
        self.home, self.environment = folder / "home", folder / "venv"
        self.home.mkdir()
        self._wheel, self._servers = wheel, servers
        self._variables = {
            "HOME": str(self.home),
            "PATH": f"{self.environment / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "GTA_DATA": str(data),
        }
        uv("venv", "--quiet", "--python", _python(), self.environment)

    def brings(self, page: Path) -> None:
        """The files that the page tells to make, and finished results of the first tasks."""
        write_files(page, self.home)
        write_results(self.home)
        if not (self.home / "my_agent.py").exists():
            write_files(TUTORIALS / "first-harness.md", self.home)
            write_files(page, self.home)
        settings = self.home / "gta.toml"
        if settings.exists():
            settings.write_text(self._with_servers(settings.read_text("utf-8")), "utf-8")
        _give(self.home, *self.home.rglob("*"))

    def _with_servers(self, text: str) -> str:
        for named, real in self._servers.items():
            text = text.replace(named, real)
        return text

    def installs(self, what: list[str]) -> None:
        wheel = [f"{self._wheel}{one.removeprefix('gta-bench')}" for one in what]
        uv("pip", "install", "--quiet", "--python", self.environment, *wheel)
        # Otherwise every command would compile all modules again.
        _give(*self.environment.rglob("*/"))

    def runs(self, words: list[str]) -> tuple[int, str]:
        own = [self._with_servers(word) for word in words]
        done = subprocess.run(
            _unprivileged(own), cwd=self.home, env=self._variables, capture_output=True, text=True
        )
        return done.returncode, done.stdout + done.stderr

    def looks(self, words: list[str]) -> str:
        """A viewer, until it says where it is; then Ctrl-C."""
        process = subprocess.Popen(
            _unprivileged(words),
            cwd=self.home,
            env=self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "http://" in line:
                break
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
        process.stdout.close()
        return said


def _give(*paths: Path) -> None:
    """Make the ordinary user the owner, where commands are run as that user."""
    if os.geteuid() == 0:
        for path in paths:
            os.chown(path, ORDINARY, ORDINARY)


def _unprivileged(words: list[str]) -> list[str]:
    return as_ordinary(words) if os.geteuid() == 0 else words


def uv(*arguments: str | Path) -> None:
    command = [Path(sys.executable).parent / "uv", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def _python() -> Path:
    """An interpreter that an ordinary user can start: ours may lie in root's home."""
    of_system = Path(f"/usr/bin/python3.{sys.version_info.minor}")
    return of_system if of_system.exists() else Path(sys.executable)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return next(built_release(tmp_path_factory).glob("*.whl"))


@pytest.fixture(scope="module")
def servers() -> Iterator[Mapping[str, str]]:
    """What answers at each address that the pages name.

    The smallest of models has little to say and does not know when to stop. One thread: on busy
    cores, threads that wait for each other are slower than one.
    """
    with llm_server(threads=1, longest_reply=8) as model, chat_server(reply_by_script) as judge:
        yield {MODEL: model, JUDGE: judge.url}


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_the_page_works_unprivileged(
    page: Path, wheel: Path, data_dir: Path, servers: Mapping[str, str]
) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gta-first-")))
        folder.chmod(0o755)
        reader = Newcomer(folder, wheel, _readable(data_dir, folder), servers)
        reader.brings(page)
        for command in commands(page):
            words = shlex.split(command.line)
            began = time.monotonic()
            if words[:2] == ["pip", "install"]:
                reader.installs(words[2:])
            elif words[:3] == ["gta", "data", "fetch"]:
                continue
            elif words[:2] == ["gta", "view"]:
                assert "http://" in reader.looks(words), command.line
            else:
                code, said = reader.runs(words)
                assert code == 0, f"{page.name}: {command.line}\n{said[-3000:]}"
                for line in command.shown:
                    assert re.search(pattern(line), said), (
                        f"{command.line}: {line!r} not in\n{said}"
                    )
            print(f"{time.monotonic() - began:6.1f} s  {command.line}")


def _readable(data: Path, folder: Path) -> Path:
    """The released data where an ordinary user can read them."""
    copied = folder / "data"
    for name in ("gta_atomic", "gta_workflow"):
        shutil.copytree(data / name, copied / name)
    return copied
