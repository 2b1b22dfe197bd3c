"""Every Python example is clean under `mypy --strict` and under pyright, as its user runs them.

The frameworks that examples use are installed, so that their types count. The package is on the
path as an installed one: its own errors would not be shown to a user, and are not shown here.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.docs.examples import examples
from tests.needs import needs

PYRIGHT = "pyright@1.1.414"
FRAMEWORKS = ("langchain-openai==1.7.3", "langgraph==1.2.20")
# What they need is installed, in newer versions than they allow, or not looked into.
ALONE = ("openai-agents==0.24.0", "mini-swe-agent==2.4.6")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All examples in a folder without any configuration."""
    folder = tmp_path_factory.mktemp("examples")
    for file, text in examples():
        (folder / file).parent.mkdir(exist_ok=True)
        with (folder / file).open("x", encoding="utf-8") as handle:
            handle.write(text)
    return folder


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python with the frameworks, and below them what the tests are run with."""
    folder = tmp_path_factory.mktemp("python")
    uv = str(Path(sys.executable).with_name("uv"))
    run(uv, "venv", "--quiet", "--python", sys.executable, str(folder))
    install = (uv, "pip", "install", "--quiet", "--python", str(folder))
    constraints = str(REPOSITORY / "constraints.txt")
    run(*install, "--constraint", constraints, *FRAMEWORKS)
    run(*install, "--no-deps", *ALONE)
    found = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    below = (REPOSITORY / "src", REPOSITORY, sysconfig.get_path("purelib"))
    (found / "below.pth").write_text("".join(f"{one}\n" for one in below), encoding="utf-8")
    return str(folder / "bin" / "python")


@pytest.fixture(scope="module")
def pyright(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Pyright of the pinned version."""
    folder = tmp_path_factory.mktemp("npm")
    run("npm", "install", "--no-audit", "--no-fund", "--silent", PYRIGHT, cwd=folder)
    return str(folder / "node_modules" / ".bin" / "pyright")


@pytest.mark.measure  # 2 minutes of computing; CI has pyright
def test_mypy_finds_nothing(folder: Path, python: str) -> None:
    mypy = (sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=.mypy")
    assert "Success: no issues" in run(*mypy, "--python-executable", python, ".", cwd=folder)


@pytest.mark.slow
@needs("npm")
def test_pyright_finds_nothing(folder: Path, python: str, pyright: str) -> None:
    found = run(pyright, "--level", "error", "--pythonpath", python, cwd=folder)
    assert "0 errors" in found


def run(*command: str, cwd: Path | None = None) -> str:
    """What a command prints; the test fails with it if the command does."""
    # The path of the tests does not count. Their package has types, but no marker that says so.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["MYPYPATH"] = str(REPOSITORY)
    ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, f"{command[0]}: {ran.stdout}{ran.stderr}"
    return ran.stdout
