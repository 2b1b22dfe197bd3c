"""The gates hold: what they are there to stop is stopped."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import REPOSITORY

BIN = Path(sys.executable).parent
PLANTS = {
    "an upward import": ("records/base.py", "import gta_bench.datasets.atomic\n", "layers"),
    "an import across the purity line": ("records/base.py", "import socket\n", "layers"),
    "a print in the library": ("datasets/stats.py", 'print("hello")\n', "lint"),
    "the environment read outside settings": (
        "datasets/stats.py",
        'import os\nHOME = os.environ["HOME"]\n',
        "lint",
    ),
    "a blind except": (
        "datasets/stats.py",
        "try:\n    pass\nexcept Exception:\n    pass\n",
        "lint",
    ),
    "an untyped function": ("errors.py", "def f(x):\n    return x\n", "types"),
}
GATES = {
    "layers": ["lint-imports"],
    "lint": ["ruff", "check", "--no-cache", "."],
    # `make check` looks at all files; here it is enough that the planted one is seen, alone.
    "types": ["mypy", "--follow-imports=skip", "src/gta_bench/errors.py"],
}


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("copy")
    for name in ("src", "pyproject.toml"):
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, root / name)
    return root


def run(gate: str, root: Path) -> subprocess.CompletedProcess[str]:
    program, *arguments = GATES[gate]
    return subprocess.run(
        [BIN / program, *arguments],
        cwd=root,
        env={"PATH": str(BIN), "PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("gate", GATES)
def test_the_gates_pass_without_a_plant(copied: Path, gate: str) -> None:
    result = run(gate, copied)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("plant", PLANTS)
def test_a_plant_is_caught_by_its_gate(copied: Path, plant: str) -> None:
    name, text, gate = PLANTS[plant]
    file = copied / "src" / "gta_bench" / name
    original = file.read_text(encoding="utf-8")
    file.write_text(f"{original}\n\n{text}", encoding="utf-8")
    try:
        result = run(gate, copied)
    finally:
        file.write_text(original, encoding="utf-8")
    assert result.returncode != 0


def test_constraints_name_packages_and_versions_only() -> None:
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert lines
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9._-]*==[0-9][\w.+!]*", line) for line in lines), lines
    assert lines == sorted(lines)


def test_hashed_requirements_are_the_constraints_of_an_installation_with_all_extras() -> None:
    """Every line has hashes and the version of constraints.txt, and no address of an index."""
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    chosen = {canonicalize_name(line.split("==")[0]): line.split("==")[1] for line in lines}
    text = (REPOSITORY / "requirements-hashed.txt").read_text(encoding="utf-8")
    assert "://" not in text and "--index" not in text
    entries = [entry.split() for entry in text.replace("\\\n", " ").splitlines()]
    pinned = {}
    for words in entries:
        hashes = [word for word in words if word.startswith("--hash=")]
        assert hashes and all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one) for one in hashes)
        one = Requirement(" ".join(words[: -len(hashes)]))
        pinned[canonicalize_name(one.name)] = one
        assert str(one.specifier) == f"=={chosen[canonicalize_name(one.name)]}"
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    groups = [project["dependencies"]]
    groups += [own for name, own in extras.items() if name not in ("published", "similarity")]
    needed = {canonicalize_name(Requirement(text).name) for group in groups for text in group}
    assert needed - {"gta-bench"} <= pinned.keys()


def test_constraints_are_within_the_ranges_that_the_project_declares() -> None:
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    chosen = {
        canonicalize_name(name): version for name, version in (ln.split("==") for ln in lines)
    }
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [
        project["project"]["dependencies"],
        project["dependency-groups"]["dev"],
        *project["project"]["optional-dependencies"].values(),
    ]
    declared = {Requirement(text) for group in groups for text in group}
    named = {one: chosen.get(canonicalize_name(one.name)) for one in declared}
    without = {one.name for one, version in named.items() if version is None}
    # torch and what lagent depends on are left to the user
    assert without == {"gta-bench", "sentence-transformers", "lagent"}
    assert [
        str(one) for one, version in named.items() if version and version not in one.specifier
    ] == []


def test_the_schemas_in_the_docs_are_json() -> None:
    schemas = list((REPOSITORY / "docs" / "reference" / "schemas").glob("*.json"))
    assert len(schemas) >= 6
    for schema in schemas:
        assert json.loads(schema.read_text(encoding="utf-8"))["properties"]


def test_the_walks_of_contributing_are_short_and_name_modules_that_exist() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## Three walks")[2].partition("\n## ")[0]
    walks = [re.findall(r"^\d+\. `([\w/]+\.py)`", part, re.M) for part in section.split("\n**")[1:]]
    assert len(walks) == 3
    for walk in walks:
        assert 8 <= len(walk) <= 12
        assert len({*walk}) == len(walk)
        for module in walk:
            assert (REPOSITORY / "src" / "gta_bench" / module).is_file(), module


def test_no_two_public_types_share_a_name() -> None:
    """About 90 names, such as `Limits` and `Outcome`, stood for up to nine types each."""
    places: dict[str, list[str]] = {}
    for file in (REPOSITORY / "src").rglob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            name = ""
            if isinstance(node, ast.ClassDef):
                name = node.name
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
            if re.match(r"[A-Z]\w*[a-z]", name):
                places.setdefault(name, []).append(file.name)
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
