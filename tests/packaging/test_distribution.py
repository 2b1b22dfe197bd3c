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


@pytest.mark.parametrize("user", ["root", "ordinary"])
def test_the_readmes_commands_work_where_nothing_of_the_repository_is(gta: Path, user: str) -> None:
    """`gta demo` and `gta report` after pip, in an empty folder, as root and as nobody."""
    if os.geteuid() != 0:
        pytest.skip("only root can become both users")
    home = gta.parents[2] / user
    home.mkdir()
    owner = NOBODY if user == "ordinary" else 0
    os.chown(home, owner, owner)
    environment = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin"}

    def ran(*arguments: str) -> str:
        command = [str(gta), *arguments]
        command = as_nobody(command) if user == "ordinary" else command
        done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
        return done.stdout + done.stderr

    said = ran("demo")
    assert "SCRIPTED" in said and "to be looked at: gta-demo/report.html" in said
    said = ran("report", "gta-demo/workflow")
    assert "gta-demo/workflow  mockllm/scripted-judge  strict   2/2" in said
    assert (home / "gta-demo" / "report.html").stat().st_uid == owner
