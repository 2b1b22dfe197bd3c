"""A task folder with right, wrong and worthless work, for tests."""

from pathlib import Path

from tests.authored import GOLD, HEAD, write_task

# The group "book" as there, all decided by checks, and advice as a leaf of its own.
TASK = (
    HEAD.replace('  by = "check-then-judge"\n', "")
    + """\
[[leaf]]
id = "advice"
says = "The answer names the weakest region."
checks = [{ is = "answer.contains", all = ["South is weakest"] }]
needs = ["sums"]
"""
)
ANSWER = b"South is weakest."
OFF = GOLD.replace(b"31877", b"31977")
SWAPPED = b"Region,Revenue\nSouth,31877.20\nNorth,48210.55\n"
FILES = {
    "inputs/sales.csv": b"Region,Amount\nNorth,48210.55\nSouth,31877.20\n",
    "gold/plain/summary.csv": GOLD,
    "gold/plain/final.txt": ANSWER,
    "gold/wide/summary.csv": b"Region,Note,Revenue\nNorth,,48210.55\nSouth,,31877.20\n",
    "gold/wide/final.txt": b"By revenue, South is weakest.",
    "wrong/one-sum-off/summary.csv": OFF,
    "wrong/one-sum-off/final.txt": ANSWER,
    "wrong/one-sum-off/wrong.toml": b'breaks = ["sums"]\nfrom = "plain"\n',
    "wrong/swapped/summary.csv": SWAPPED,
    "wrong/swapped/final.txt": b"North is weakest.",
    "wrong/swapped/wrong.toml": b'breaks = ["order", "advice"]\n',
    "cheat/head-only/summary.csv": b"Region,Revenue\n",
}


def write_authored(
    root: Path, toml: str = TASK, *, without: str = "-", **files: bytes | str
) -> Path:
    """Write a task folder with works; `without` leaves out paths that begin with it."""
    kept = {path: data for path, data in FILES.items() if not path.startswith(without)}
    return write_task(root, toml, files={**kept, **_encode(files)})


def _encode(files: dict[str, bytes | str]) -> dict[str, bytes]:
    return {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}
