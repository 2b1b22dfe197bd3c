"""Find names of the standard library that macOS or Windows do not have.

Mypy knows the standard library of every system. Other packages are left out, because they do not
matter here and take most of the time; so only findings about modules count. Modules that run only
behind the walls of Linux may use what Linux has: gta_bench.confine.systems refuses them elsewhere.
"""

import re
import subprocess
import sys
from pathlib import Path

SYSTEMS = ("win32", "darwin")
OPTIONS = ("--no-site-packages", "--ignore-missing-imports", "--no-error-summary", "src")
ON_LINUX = re.compile(
    r"src/gta_bench/(.*/inside/|harnesses/cell\.py|"
    r"confine/(bubblewrap|network|process|service|walls)\.py)"
)
FINDING = re.compile(
    r"error: (Module (\"\S+\" )?has no attribute|Name \S+ is not defined|Cannot find)"
)


def find_missing(system: str) -> list[str]:
    """Return the lines of mypy about names that the system does not have."""
    cache = Path(".mypy_cache") / system
    command = [sys.executable, "-m", "mypy", "--config-file", "", "--platform", system]
    own = ["--cache-dir", str(cache), "--explicit-package-bases", *OPTIONS]
    ran = subprocess.run([*command, *own], capture_output=True, text=True, check=False)
    if ran.returncode not in (0, 1):
        sys.exit(f"mypy failed for {system}: {ran.stderr or ran.stdout}")
    lines = ran.stdout.splitlines()
    return [line for line in lines if FINDING.search(line) and not ON_LINUX.match(line)]


def main() -> None:
    """Print what was found, and fail if there is anything."""
    found = [f"{system}: {line}" for system in SYSTEMS for line in find_missing(system)]
    print("\n".join(found) or f"The standard libraries of {' and '.join(SYSTEMS)} have every name.")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
