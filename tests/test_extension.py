"""The example package, installed as a user would: all that it adds works."""

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
    ran = run_gta(packages, cwd, *arguments)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def run_gta(packages: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = [str(packages), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-m", "gta_bench.cli", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )


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


TASK = """\
format = 1
id = "trip"
[deliverables]
"trip.md" = "markdown"
[[leaf]]
id = "far"
says = "trip.md says how far it is."
checks = [{ is = "units.length", file = "trip.md", meters = 42195, within = 100 }]
"""


def write_trip(folder: Path, toml: str = TASK) -> None:
    for name, text in {
        "tasks/trip/task.toml": toml,
        "tasks/trip/request.md": "Write in trip.md how long a marathon is.",
        "results/trip/trip.md": "A marathon has 26.2 miles.",
        "results/trip/final.txt": "Done.",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def test_its_check_decides_a_leaf(packages: Path, tmp_path: Path) -> None:
    write_trip(tmp_path)
    gta(packages, tmp_path, "import", "folder", "results", "--data", "tasks", "--out", "run")
    (table,) = json.loads(gta(packages, tmp_path, "score", "run", "--json"))["judges"]
    (leaf,) = table["tasks"][0]["leaves"]
    assert (leaf["by"], leaf["value"]) == ("check", 10)
    write_trip(tmp_path, TASK.replace("within = 100", "within = 1"))
    said = gta(packages, tmp_path, "score", "run", "--data", "tasks", "--json")
    (leaf,) = json.loads(said)["judges"][0]["tasks"][0]["leaves"]
    assert leaf["value"] == 0, "26.2 miles are 42164.8 m"


def test_tasks_with_its_check_are_linted_and_shown(packages: Path, tmp_path: Path) -> None:
    write_trip(tmp_path)
    gold = tmp_path / "tasks/trip/gold/short"
    gold.mkdir(parents=True)
    (gold / "trip.md").write_text("42.2 km", encoding="utf-8")
    said = json.loads(gta(packages, tmp_path, "task", "lint", "tasks", "--json"))
    assert {one["check"] for one in said["findings"]} == {"T07", "T09", "T33"}
    gta(packages, tmp_path, "task", "preview", "tasks/trip", "--out", "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "The file&#39;s text gives that length" in page and "42195" in page
    assert "found 42200 m" in page
    write_trip(tmp_path, TASK.replace("within", "about"))
    ran = run_gta(packages, tmp_path, "task", "lint", "tasks")
    assert ran.returncode == 1 and "error T23: the check 'units.length', about:" in ran.stdout


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        (TASK.replace("within", "about"), "the check 'units.length', about: Extra inputs are not"),
        (TASK.replace("units.length", "units.lenght"), "did you mean 'units.length'?"),
    ],
)
def test_a_mistake_in_its_parameters_is_one_line(
    packages: Path, tmp_path: Path, toml: str, says: str
) -> None:
    write_trip(tmp_path, toml)
    said = run_gta(packages, tmp_path, "data", "verify", "workflow", "--data", "tasks")
    assert said.returncode != 0 and says in said.stdout + said.stderr


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
