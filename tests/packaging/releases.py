"""The files of a release."""

import subprocess
import sys
from pathlib import Path

from tests.conftest import REPOSITORY


def built_release(out: Path) -> Path:
    """The sdist of the repository, and the wheel that was built from the sdist."""
    command = [sys.executable, "-m", "build", "--installer", "uv", "--outdir", str(out)]
    ran = subprocess.run([*command, str(REPOSITORY)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    return out
