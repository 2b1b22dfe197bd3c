"""The example package, installed as a user would: its tool, dataset, metric and harness work."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

EXTENSION = REPOSITORY / "examples" / "extension"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed example, and nothing else."""
    folder = tmp_path_factory.mktemp("packages")
    options = ["--quiet", "--no-deps", "--disable-pip-version-check", "--target", str(folder)]
    command = [sys.executable, "-m", "pip", "install", *options, str(EXTENSION)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def gta(packages: Path, cwd: Path, *arguments: str) -> str:
    paths = [str(packages), *filter(None, [os.environ.get("PYTHONPATH")])]
    ran = subprocess.run(
        [sys.executable, "-m", "gta_bench.cli", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_commands_of_its_readme_work(packages: Path, tmp_path: Path) -> None:
    text = (EXTENSION / "README.md").read_text(encoding="utf-8")
    block = text.partition("```sh\n")[2].partition("```")[0].replace("\\\n", " ")
    install, *commands = block.strip().splitlines()
    assert install == "pip install ./examples/extension"
    said = [gta(packages, tmp_path, *command.split()[1:]) for command in commands]
    assert len(said) == 3
    assert said[0] == "42.1648 km\n"
    assert re.search(r"runs/units +3/3 +strict +100\.00", said[1])
    assert said[2].split() == ["metric", "n/N", "mean", "one-try", "3/3", "1.00"]
    gta(packages, tmp_path, "report", "runs/units", "--html", "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "By category of the reference&#39;s tools" in page, "the tool names its category"


def test_its_tool_is_listed_and_measured_like_ours(packages: Path, tmp_path: Path) -> None:
    listed = json.loads(gta(packages, tmp_path, "tools", "list", "--json"))
    mine = [tool for tool in listed if tool["name"] == "UnitConverter"]
    assert mine[0]["available"] and mine[0]["category"] == "logic"


def test_its_dataset_is_sound(packages: Path, tmp_path: Path) -> None:
    found = json.loads(
        gta(packages, tmp_path, "data", "verify", "atomic", "--data", "units", "--json")
    )
    assert {finding["severity"] for finding in found} <= {"note"}


def test_the_page_names_every_file_that_it_needs() -> None:
    """A reader of CONTRIBUTING finds each file of the example named there, and no other."""
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    files = [
        file for file in EXTENSION.rglob("*") if file.is_file() and "__pycache__" not in str(file)
    ]
    named = {file.relative_to(EXTENSION).as_posix() for file in files}
    named -= {"README.md", "gta_units/__init__.py"}
    assert named == {
        name.removeprefix("examples/extension/")
        for name in page.replace("`", " ").replace(",", " ").replace(")", " ").split()
        if name.startswith("examples/extension/") and Path(name).suffix
    }


def test_the_page_has_the_layers_that_are_checked() -> None:
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = page.partition("## Layers")[2].partition("```text\n")[2].partition("```")[0]
    shown = [re.split(" {2,}", line)[0] for line in listed.splitlines()]
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    assert shown == project["tool"]["importlinter"]["contracts"][0]["layers"]
