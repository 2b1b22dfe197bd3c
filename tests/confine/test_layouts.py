"""Where Python and the project can lie: the jail works, and what lies beside is not readable."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.confine.walls import Python

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
BASE = Path(sys.base_prefix)
SECRET = "gold-5d1c"
ABOUT = (
    "import json, sys; print(json.dumps([sys.executable, "
    "[sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix], sys.path]))"
)
LOOK = """
import importlib, json, os
def solution():
    seen = []
    for path in {paths!r}:
        try:
            seen.append(open(path).read())
        except OSError:
            pass
    return json.dumps([importlib.import_module("installed").WORD, seen])
"""
DRIVER = """
import ctypes, installed, json, sqlite3
def prepare(): return {}
def finish(names): return names["solution"]()
"""


def interpreter(prefix: Path) -> Path:
    """An installation of its own, as pyenv, uv and Conda have them."""
    (prefix / "bin").mkdir(parents=True)
    program = prefix / "bin" / VERSION
    shutil.copy2(BASE / "bin" / VERSION, program)
    shutil.copytree(
        BASE / "lib" / VERSION,
        prefix / "lib" / VERSION,
        symlinks=True,
        ignore=shutil.ignore_patterns(
            "test", "site-packages", "idlelib", "ensurepip", "*.pyc", "*.a"
        ),
    )
    packages = prefix / "lib" / VERSION / "site-packages"
    packages.mkdir()
    (packages / "installed.py").write_text("WORD = 'works'\n")
    return program


def environment(prefix: Path, base: Path) -> Path:
    """A virtual environment over an interpreter, with a package."""
    packages = prefix / "lib" / VERSION / "site-packages"
    packages.mkdir(parents=True)
    (packages / "installed.py").write_text("WORD = 'works'\n")
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").symlink_to(base)
    (prefix / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
    return prefix / "bin" / "python"


def venv_in_project(home: Path, project: Path) -> Path:
    return environment(project / ".venv", BASE / "bin" / VERSION)


def venv_is_project(home: Path, project: Path) -> Path:
    return environment(project, BASE / "bin" / VERSION)


def pyenv(home: Path, project: Path) -> Path:
    return interpreter(home / ".pyenv" / "versions" / "3.x")


def uv(home: Path, project: Path) -> Path:
    """Its environments lead through a link to the folder of the interpreter."""
    store = home / ".local" / "share" / "uv" / "python"
    interpreter(store / "cpython-3.x.y")
    (store / "cpython-3.x").symlink_to("cpython-3.x.y")
    return environment(project / ".venv", store / "cpython-3.x" / "bin" / VERSION)


def conda(home: Path, project: Path) -> Path:
    program = interpreter(home / "miniconda3")
    (home / "miniconda3" / "conda-meta").mkdir()
    return program


def editable(home: Path, project: Path) -> Path:
    program = venv_in_project(home, project)
    packages = project / ".venv" / "lib" / VERSION / "site-packages"
    (packages / "_editable.pth").write_text(f"{project / 'src'}\n")
    return program


def layered(home: Path, project: Path) -> Path:
    """An environment over another one, whose packages it sees."""
    environment(home / "lower", BASE / "bin" / VERSION)
    program = venv_in_project(home, project)
    own = project / ".venv" / "lib" / VERSION / "site-packages"
    (own / "installed.py").unlink()
    (own / "lower.pth").write_text(f"{home / 'lower' / 'lib' / VERSION / 'site-packages'}\n")
    return program


LAYOUTS = (venv_in_project, venv_is_project, pyenv, uv, conda, editable, layered)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_python_works_and_gold_is_not_readable(
    layout: Callable[[Path, Path], Path], jail: Jail, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    project = home / "project"
    gold = [
        project / "data" / "gta_atomic" / "dataset.json",
        project / ".env",
        project / "gta.toml",
        project / "src" / "answers.json",
        project / "runs" / "one" / "run.json",
        home / ".netrc",
        home / ".ssh" / "id_ed25519",
    ]
    for file in gold:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(SECRET)
    program = layout(home, project)
    home.chmod(0o700)
    about = json.loads(subprocess.check_output([program, "-s", "-P", "-c", ABOUT]))
    # The copy of an interpreter still looks for its library where the original was installed.
    library = [str(file) for file in sorted((BASE / "lib").glob("libpython3*"))]
    python = Python.at(about[0], about[1], packages=about[2])
    python = replace(python, roots=tuple(dict.fromkeys((*python.roots, *library))))
    with Jail(jail.kind, slots=1, python=python) as opened:
        code = LOOK.format(paths=[str(file) for file in gold])
        value = asyncio.run(opened.run_snippet(code, driver=DRIVER)).value
    assert json.loads(value) == ["works", []]
