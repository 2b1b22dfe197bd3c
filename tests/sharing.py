"""What one test process makes, and all test processes of this run of pytest use."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def shared(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return the file or folder of that name, made by whoever needs it first; others wait."""
    base = factory.getbasetemp()
    common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    made = common / f"shared-{name}"
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            part = made.with_suffix(".part")
            make(part)
            part.rename(made)
    return made
