import csv
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zipfile import ZipFile

import pytest
from pydantic import ValidationError

from gta_bench.errors import UsageError
from gta_bench.leaderboard.entries import (
    check_entry,
    check_unique_ids,
    raise_tiers,
    read_entries,
    read_published_entries,
)
from gta_bench.records.leaderboard import Board, Entry, Score

CSV: dict[Board, str] = {
    "atomic": "leaderboard_atomic.csv",
    "workflow": "leaderboard_workflow.csv",
    "workflow-30": "leaderboard_harness.csv",
}


@pytest.mark.parametrize("board", CSV)
def test_every_published_row_is_shipped_as_it_was_printed(data_dir: Path, board: Board) -> None:
    with (data_dir / "leaderboards" / CSV[board]).open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    entries = [entry for entry in read_published_entries() if entry.board == board]
    assert len(entries) == len(rows)
    for entry, row in zip(entries, rows, strict=True):
        assert entry.release == row["leaderboard"]
        assert entry.source == row["source"]
        assert (entry.model or "unknown") == row["model"]
        assert entry.group == (row.get("group") or row["comparison"])
        assert entry.status == "published"
        for metric, score in entry.scores.items():
            assert score.value == float(row[metric])
        printed = {
            name for name in row if name.endswith(("_acc", "_acc_i", "_f1", "_sr", "_score"))
        }
        assert set(entry.scores) == printed
        if board == "workflow-30":
            assert entry.harness == row["harness"]
            assert entry.costs.usd == float(row["total_cost_usd"])
            assert entry.costs.minutes == float(row["total_time_min"])
            per_dollar = entry.scores["root_score"].value / entry.costs.usd
            assert per_dollar == pytest.approx(float(row["score_per_cost"]), abs=5e-4)


def test_there_are_65_published_rows_with_ids_of_their_own() -> None:
    entries = read_published_entries()
    assert len(entries) == 65
    assert check_unique_ids(entries) == entries


def test_the_counts_behind_the_workflow_table_are_the_known_ones() -> None:
    rows = [entry for entry in read_published_entries() if entry.board == "workflow"]
    assert [row.scores["root_sr"].k for row in rows] == [
        19,
        15,
        13,
        12,
        14,
        14,
        12,
        11,
        1,
        1,
        1,
        0,
        0,
    ]
    assert [row.scores["leaf_sr"].k for row in rows][:4] == [329, 304, 291, 303]


def test_five_rows_and_three_facts_do_not_add_up() -> None:
    findings = [finding for entry in read_published_entries() for finding in check_entry(entry)]
    assert sorted(finding.entry for finding in findings) == [
        "2024-07/atomic/claude3-opus",
        "2024-07/atomic/mistral-large",
        "2024-07/atomic/yi-34b-chat",
        "2026-04/atomic/claude-3-opus",
        "2026-04/atomic/mistral-large",
    ]
    assert len({finding.message for finding in findings}) == 3


def test_a_file_holds_one_entry_or_a_list(tmp_path: Path) -> None:
    first, second = read_published_entries()[:2]
    one, several = tmp_path / "one.json", tmp_path / "several.json"
    one.write_text(first.model_dump_json(), encoding="utf-8")
    several.write_text(f"\n[{second.model_dump_json()}]", encoding="utf-8")
    assert read_entries([one, several]) == (first, second)


@pytest.mark.parametrize(
    ("text", "place"),
    [("{", "the file"), ('[{"id": "A B"}]', "0.id"), ('{"format": 2}', "format")],
)
def test_what_is_no_entry_is_refused_with_its_place(tmp_path: Path, text: str, place: str) -> None:
    file = tmp_path / "entry.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=rf"entry\.json is not a leaderboard entry: {place}: "):
        read_entries([file])


def test_two_entries_with_one_id_are_refused() -> None:
    entry: Entry = read_published_entries()[0]
    with pytest.raises(UsageError, match="2024-07/atomic/gpt-4-1106-preview"):
        check_unique_ids([entry, entry])


def test_a_bundle_in_place_of_an_entry_is_told_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "mine.zip"
    with ZipFile(file, "w") as archive:
        archive.writestr("entry.json", "{}")
    with pytest.raises(UsageError, match=r"mine\.zip is a bundle, not an entry\. Check it with"):
        read_entries([file])


def test_results_by_task_have_the_mean_that_the_entry_states() -> None:
    model = next(one for one in read_published_entries() if one.board == "workflow")
    score = Score(value=25, k=33, n=132)
    passed = {str(task): float(task < 33) for task in range(132)}
    honest = model.model_copy(update={"scores": {"root_sr": score}, "by_task": passed})
    assert check_entry(honest) == ()
    better = honest.model_copy(update={"by_task": {**passed, "33": 1.0}})
    (finding,) = check_entry(better)
    assert finding.message == "Root SR 25.00 is not 25.76, the mean of the results by task"


def test_a_verified_entry_replaces_that_of_its_bundle_only() -> None:
    bundle = read_published_entries()[0].model_copy(
        update={"id": "mine", "status": "self-reported", "run_digest": "ab"}
    )
    verified = bundle.model_copy(update={"status": "reproduced"})
    assert raise_tiers([bundle], [verified]) == (verified,)
    assert raise_tiers([], [bundle]) == (bundle,)
    # A verification that repeated too little writes the entry as it was.
    assert raise_tiers([bundle], [bundle]) == (bundle,)


@pytest.mark.parametrize("tier", ["re-judged", "reproduced"])
def test_a_tier_that_somebody_only_states_is_refused(tier: str) -> None:
    """A file said `reproduced`, and the board showed it like a row that was repeated."""
    bundle = read_published_entries()[0].model_copy(
        update={"id": "mine", "status": "self-reported", "run_digest": "ab"}
    )
    verified = bundle.model_copy(update={"status": tier})
    other = verified.model_copy(update={"run_digest": "cd"})
    better = verified.model_copy(update={"scores": {"ans_acc": Score(value=100)}})
    bare = verified.model_copy(update={"run_digest": None})
    for stated in (other, better, bare):
        with pytest.raises(
            UsageError, match=f"Entry 'mine' has the tier '{tier}', but there is no"
        ):
            raise_tiers([bundle], [stated])
    if tier == "re-judged":
        with pytest.raises(UsageError, match="'re-judged', but GTA-Atomic has no judge"):
            raise_tiers([bundle], [verified])
    # The file of an entry is not a bundle.
    with pytest.raises(UsageError, match="there is no bundle with this entry"):
        raise_tiers([], [bundle, verified])


def test_a_release_in_the_future_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "entry.json"
    entry = read_published_entries()[0].model_copy(update={"release": "2026-12"})
    file.write_text(entry.model_dump_json(), encoding="utf-8")
    # Still November in UTC.
    east = datetime(2026, 12, 1, 5, tzinfo=timezone(timedelta(hours=9)))
    with pytest.raises(UsageError, match="release 2026-12 is in the future; this month is 2026-11"):
        read_entries([file], now=east)
    assert read_entries([file], now=datetime(2026, 12, 1, tzinfo=UTC)) == (entry,)
    later = entry.model_copy(update={"release": f"{datetime.now(UTC).year + 1}-01"})
    file.write_text(later.model_dump_json(), encoding="utf-8")
    with pytest.raises(UsageError, match="is in the future"):
        read_entries([file])


def test_a_month_must_exist_and_a_huge_score_is_a_finding() -> None:
    entry = read_published_entries()[0]
    stated = entry.model_dump(mode="json")
    with pytest.raises(ValidationError, match="release"):
        Entry.model_validate(stated | {"release": "2026-13"})
    huge = {name: {**one, "value": 1e308} for name, one in stated["scores"].items()}
    assert check_entry(Entry.model_validate(stated | {"scores": huge}))
