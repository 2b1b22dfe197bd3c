"""Write the published leaderboard rows as entries from their CSV files; run by hand.

`python scripts/make_published_entries.py FOLDER`, where FOLDER holds leaderboard_*.csv.
"""

import csv
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from gta_bench.leaderboard.entries import find_count, find_denominator
from gta_bench.leaderboard.tables import BOARD_METRICS
from gta_bench.records.leaderboard import Board, Costs, Entry, Score

TARGET = Path(__file__).parent.parent / "src/gta_bench/leaderboard/published"
FILES: dict[Board, str] = {
    "atomic": "leaderboard_atomic.csv",
    "workflow": "leaderboard_workflow.csv",
    "workflow-30": "leaderboard_harness.csv",
}
JUDGE = "the judge is the published code's default; the table does not name it"


def main() -> None:
    """Write one JSON file for each board."""
    for board, name in FILES.items():
        entries = [
            entry.model_dump(mode="json", exclude_defaults=True)
            for entry in entries_of(board, Path(sys.argv[1]) / name)
        ]
        text = json.dumps(entries, indent=1, ensure_ascii=False) + "\n"
        (TARGET / f"{board}.json").write_text(text, encoding="utf-8")


def entries_of(board: Board, file: Path) -> Iterator[Entry]:
    """The rows of one CSV file as entries."""
    with file.open(encoding="utf-8", newline="") as opened:
        for row in csv.DictReader(opened):
            yield _entry(board, row)


def _entry(board: Board, row: dict[str, str]) -> Entry:
    model = None if row["model"] == "unknown" else row["model"]
    system = " + ".join(name for name in (row.get("harness"), model) if name)
    slug = re.sub(r"[^a-z0-9.]+", "-", system.lower())
    bare = Entry(
        id=f"{row['leaderboard']}/{board}/{slug}",
        board=board,
        release=row["leaderboard"],
        group=row.get("group") or row["comparison"],
        system=system,
        model=model,
        # Table V and VI and the older boards were all run with Lagent's ReAct agent.
        harness=row.get("harness", "Lagent"),
        scoring="compat",
        judge=None if board == "atomic" else "gpt-5.2",
        costs=Costs(
            usd=_number(row.get("total_cost_usd")), minutes=_number(row.get("total_time_min"))
        ),
        status="published",
        source=row["source"],
        notes=() if board == "atomic" else (JUDGE,),
        scores={},
    )
    scores = {name: _score(bare, name, row[name]) for name in BOARD_METRICS if name in row}
    return bare.model_copy(update={"scores": scores})


def _score(entry: Entry, name: str, text: str) -> Score:
    # Table VII prints Root SR with one decimal; elsewhere trailing zeros may be missing.
    decimals = 1 if (entry.board, name) == ("workflow-30", "root_sr") else 2
    score = Score(value=float(text), decimals=decimals)
    n = find_denominator(entry, name)  # type: ignore[arg-type]
    k = None if n is None else find_count(score, n)
    return score if k is None else score.model_copy(update={"k": k, "n": n})


def _number(text: str | None) -> float | None:
    return float(text) if text else None


if __name__ == "__main__":
    main()
