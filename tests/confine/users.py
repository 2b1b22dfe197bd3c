"""Starting test programs as this user and, where we are root, as one without any rights."""

import os
import site
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
ORDINARY = 1000

USERS = ("this user", "unprivileged") if os.geteuid() == 0 else ("this user",)


def environment() -> dict[str, str]:
    """What the other user's Python needs to find our code and the packages."""
    packages = [*site.getsitepackages(), sysconfig.get_path("purelib")]
    paths = [str(REPOSITORY / "src"), str(REPOSITORY), *dict.fromkeys(packages)]
    return {
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(paths),
    }


def as_ordinary(arguments: list[str]) -> list[str]:
    # `env` between: setpriv itself still starts its program with root's right to pass any folder.
    drop = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "env"]
    return [*drop, *arguments]


@cache
def python_for(user: str) -> tuple[str, ...] | None:
    """The start of a command that runs Python as that user; None where no Python can be.

    Our own interpreter may lie below a home that only root can enter.
    """
    if user == "this user":
        return (sys.executable,)
    for candidate in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        command = as_ordinary([candidate])
        check = [*command, "-c", "import pydantic, pytest, gta_bench, tests.confine.users"]
        try:
            done = subprocess.run(check, env=environment(), capture_output=True, check=False)
        except OSError:
            continue
        if done.returncode == 0:
            return tuple(command)
    return None


def run_as(user: str, arguments: list[str]) -> subprocess.CompletedProcess[str] | None:
    """Run Python with these arguments as that user; None where it cannot be."""
    command = python_for(user)
    if command is None:
        return None
    return run_here([*command, *arguments])


def run_here(command: list[str], *, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """A command that finds our code and the packages."""
    return subprocess.run(
        command,
        env=environment(),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
