"""The files of a release: built, complete, and working in a bare environment."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.releases import built_release

pytestmark = pytest.mark.slow

NEEDED = (
    "gta_bench/py.typed",
    "gta_bench/agents/prompts/react.md",
    "gta_bench/demo/data/atomic/image/receipt.png",
    "gta_bench/demo/data/workflow/end.json",
    "gta_bench/judging/prompts/system.md",
    "gta_bench/web/templates/report.html",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_release(tmp_path_factory)


def test_the_wheel_has_all_that_is_no_code_and_no_tests(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = wheel.namelist()
    assert set(NEEDED) <= set(names)
    assert not [name for name in names if name.startswith(("tests/", "docs/"))]


def test_the_sdist_has_what_a_packager_needs(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"pyproject.toml", "LICENSE", "NOTICE", "CHANGELOG.md", "constraints.txt"} <= names
    assert "requirements-hashed.txt" in names
    assert {"CONTRIBUTING.md", "SECURITY.md", "examples/harness.py", "docs/index.md"} <= names


@pytest.fixture(scope="module")
def gta(built: Path) -> Iterator[Path]:
    """The command in a bare environment with the wheel, where any user may enter.

    What the wheel depends on is linked from this environment instead of being fetched again.
    """
    with tempfile.TemporaryDirectory(prefix="gta-wheel-") as folder:
        Path(folder).chmod(0o755)
        bare = Path(folder) / "venv"
        of_system = Path(f"/usr/bin/python3.{sys.version_info.minor}")
        python = of_system if of_system.exists() else sys.executable
        subprocess.run([python, "-m", "venv", "--without-pip", bare], check=True)
        ours = Path(sysconfig.get_path("purelib"))
        target = bare / ours.relative_to(sys.prefix)
        own = shutil.ignore_patterns("*gta_bench*")
        shutil.copytree(ours, target, copy_function=_link, ignore=own, dirs_exist_ok=True)
        _link(str(Path(sys.prefix) / "bin" / "monty"), str(bare / "bin" / "monty"))
        command = [sys.executable, "-m", "pip", "--python", str(bare / "bin" / "python")]
        command += ["install", "--quiet", "--no-deps", str(next(built.glob("*.whl")))]
        subprocess.run(command, check=True, capture_output=True)
        yield bare / "bin" / "gta"


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def test_the_demo_works_for_root_where_nothing_of_the_repository_is(gta: Path) -> None:
    """As an ordinary user everything is done: test_first_hour.py."""
    home = gta.parents[2] / "home"
    home.mkdir()
    environment = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin"}

    def ran(*arguments: str) -> str:
        command = [str(gta), *arguments]
        done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
        return done.stdout + done.stderr

    said = ran("demo")
    assert "SCRIPTED" in said and "Open gta-demo/report.html in a browser" in said
    said = ran("report", "gta-demo/workflow")
    assert "gta-demo/workflow  mockllm/scripted-judge  strict   2/2" in said
