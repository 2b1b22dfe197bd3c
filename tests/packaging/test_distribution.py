"""The files of a release: built, complete, and working in a bare environment."""

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.confine.users import NOBODY, as_nobody
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow

NEEDED = (
    "gta_bench/py.typed",
    "gta_bench/agents/prompts/react.md",
    "gta_bench/demo/data/atomic/image/receipt.png",
    "gta_bench/demo/data/workflow/end.json",
    "gta_bench/judging/prompts/system.md",
    "gta_bench/reports/templates/report.html",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of the repository, and the wheel that was built from the sdist."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--outdir", str(out), str(REPOSITORY)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    return out


def test_the_wheel_has_all_that_is_no_code_and_no_tests(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = wheel.namelist()
    assert set(NEEDED) <= set(names)
    assert not [name for name in names if name.startswith(("tests/", "docs/"))]


def test_the_sdist_has_what_a_packager_needs(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"pyproject.toml", "LICENSE", "NOTICE", "CHANGELOG.md", "constraints.txt"} <= names
    assert {"CONTRIBUTING.md", "SECURITY.md", "examples/harness.py", "docs/index.md"} <= names


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that any user may enter; pytest keeps its own ones for itself."""
    with tempfile.TemporaryDirectory(prefix="gta-wheel-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("user", ["root", "ordinary"])
def test_the_readmes_commands_work_where_nothing_of_the_repository_is(
    built: Path, place: Path, user: str
) -> None:
    """`pip install 'gta-bench[demo]'`, `gta demo`, `gta report`, as root and as nobody.

    The wheel's own files alone are on the path, beside what it depends on, which is here already.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can become both users")
    site = place / "site"
    wheel = str(next(built.glob("*.whl")))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*command, "--target", str(site), wheel], check=True, capture_output=True)
    home = place / "home"
    home.mkdir()
    program = [sys.executable]
    if user == "ordinary":
        os.chown(home, NOBODY, NOBODY)
        program = as_nobody(program)
    environment = {
        "HOME": str(home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": str(site),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def ran(*arguments: str) -> str:
        command = [*program, *arguments]
        done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
        return done.stdout + done.stderr

    assert str(site) in ran("-c", "import gta_bench; print(gta_bench.__file__)")
    said = ran("-m", "gta_bench", "demo")
    assert "SCRIPTED" in said and "to be looked at: gta-demo/report.html" in said
    said = ran("-m", "gta_bench", "report", "gta-demo/workflow")
    assert "gta-demo/workflow  mockllm/scripted-judge  strict   2/2" in said
    owner = (home / "gta-demo" / "report.html").stat().st_uid
    assert owner == (NOBODY if user == "ordinary" else 0)
