"""The files of a release."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.sharing import shared


def built_release(factory: pytest.TempPathFactory) -> Path:
    """The sdist of the repository, and the wheel that was built from the sdist."""
    return shared(factory, "dist", _build)


def _build(out: Path) -> None:
    command = [sys.executable, "-m", "build", "--installer", "uv", "--outdir", str(out)]
    ran = subprocess.run([*command, str(REPOSITORY)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
