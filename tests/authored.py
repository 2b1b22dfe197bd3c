"""Task folders for tests."""

from collections.abc import Mapping
from pathlib import Path

HEAD = """\
#:schema https://example.org/task.toml.schema.json
format = 1
id = "q3-sales"
category = "Data Analysis & Quantitative Reasoning"
license = "CC-BY-4.0"

[deliverables]
"summary.csv" = "csv"

[[group]]
id = "book"
weight = 3

  [[group.leaf]]
  id = "sums"
  weight = 2
  says = "summary.csv has each region's revenue, right to the cent."
  checks = [
    { is = "table.value", file = "*.csv", row = "North", column = "Revenue", equals = 48210.55 },
    { is = "table.value", file = "*.csv", row = "South", column = "Revenue", equals = 31877.20 },
  ]

  [[group.leaf]]
  id = "order"
  says = "The regions are sorted by revenue."
  by = "check-then-judge"
  checks = [{ is = "table.order", file = "summary.csv", by = "Revenue", desc = true }]

"""
TASK = (
    HEAD
    + """\
[[group]]
id = "text"

  [[group.leaf]]
  id = "advice"
  needs = ["sums"]
  says = "The answer names the weakest region and by how much it trails."
  levels = { 10 = "region and amount", 0 = "neither", 5 = "region only" }
"""
)
REQUEST = "Sum up inputs/sales.csv by region in summary.csv, and say which region is weakest.\n"
GOLD = b"Region,Revenue\nNorth,48210.55\nSouth,31877.20\n"


def write_task(
    root: Path,
    toml: str = TASK,
    *,
    name: str = "q3-sales",
    request: str | None = REQUEST,
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """Write a task folder below a dataset's folder, and return the task folder."""
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "task.toml").write_text(toml.replace("q3-sales", name), encoding="utf-8")
    if request is not None:
        (folder / "request.md").write_text(request, encoding="utf-8")
    given = {"inputs/sales.csv": b"Region,Amount\nNorth,1\n"} if files is None else files
    for path, data in given.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder
