import pytest

from gta_bench.errors import UsageError
from gta_bench.leaderboard.entries import read_published_entries
from gta_bench.leaderboard.tables import (
    COMPARED,
    BoardTable,
    build_tables,
    find_careers,
    find_interval,
    is_ranked,
)
from gta_bench.records.leaderboard import Entry, Score
from gta_bench.statistics.pooled import Ratio, compute_interval


@pytest.fixture(scope="module")
def made() -> tuple[BoardTable, ...]:
    return build_tables(read_published_entries())


def test_there_is_a_table_for_each_board_and_release_newest_first(
    made: tuple[BoardTable, ...],
) -> None:
    assert [(table.board, table.release, len(table.rows)) for table in made] == [
        ("workflow", "2026-04", 13),
        ("workflow-30", "2026-04", 4),
        ("atomic", "2026-04", 8),
        ("atomic", "2026-02", 13),
        ("atomic", "2025-03", 11),
        ("atomic", "2024-07", 16),
    ]


def test_the_top_eight_workflow_models_are_one_group(made: tuple[BoardTable, ...]) -> None:
    first = made[0].group(1)
    assert [row.entry.system for row in first] == [
        "Gemini-2.5-Pro",
        "GPT-5",
        "Llama-4-Scout",
        "Qwen3-235B-A22B",
        "Grok-4",
        "Claude-Sonnet-4.5",
        "Deepseek-V3.2",
        "Kimi-K2",
    ]
    assert len(made[0].rows) == 13


def test_three_harnesses_cannot_be_told_apart_and_lagent_can(made: tuple[BoardTable, ...]) -> None:
    assert [len(group) for group in made[1].groups()] == [3, 1]


def test_every_pair_is_compared_once_the_better_one_first(made: tuple[BoardTable, ...]) -> None:
    compared = made[0].comparisons
    assert len(compared) == 78
    assert all(one.difference.estimate >= 0 and one.adjusted >= one.p_value for one in compared)
    gemini_kimi = compared[6]
    assert (gemini_kimi.first.system, gemini_kimi.second.system) == ("Gemini-2.5-Pro", "Kimi-K2")
    assert gemini_kimi.difference.low < 0 < gemini_kimi.difference.high


def test_of_a_large_table_all_pairs_are_tested_and_those_of_the_best_are_told() -> None:
    model = next(one for one in read_published_entries() if one.board == "workflow")
    (table,) = build_tables(
        [
            model.model_copy(
                update={
                    "id": f"2027-01/workflow/{number}",
                    "system": f"{number:03}",
                    "scores": {"root_sr": Score(value=100.0 - number)},
                }
            )
            for number in range(COMPARED + 20)
        ]
    )
    assert len(table.comparisons) == COMPARED * (COMPARED - 1) // 2
    assert table.pairs == 60 * 59 // 2
    assert [row.entry.system for row in table.compared] == [f"{n:03}" for n in range(COMPARED)]
    assert len(table.groups()) > 1 and table.rows[-1] in table.groups()[-1]


def entry(**scores: Score) -> Entry:
    return read_published_entries()[-1].model_copy(update={"scores": scores})


def test_counts_and_means_have_intervals_and_sums_of_judged_points_have_none() -> None:
    known = entry(root_sr=Score(value=50, k=15, n=30), root_score=Score(value=5))
    assert find_interval(known, "root_score") is None
    found = find_interval(known, "root_sr")
    assert found is not None
    assert (found.n, round(found.low, 3)) == (30, 0.332)
    atomic = read_published_entries()[0]
    mean = find_interval(atomic, "ans_acc")
    assert mean is not None
    assert (mean.n, round(mean.estimate, 4)) == (172, 0.4659)
    assert find_interval(atomic, "p_f1") is None


def test_the_results_by_task_give_the_interval_of_the_runs_page() -> None:
    """The board had 3.5 to 10.9 where the page of the same run has 3.6 to 10.6."""
    values = [0.5 * (n < 43) for n in range(172)]
    total = read_published_entries()[0].model_copy(
        update={"scores": {"ans_acc": Score(value=12.5)}}
    )
    known = total.model_copy(update={"by_task": {str(n): one for n, one in enumerate(values)}})
    assert find_interval(known, "ans_acc") == compute_interval(Ratio(values, [1.0] * 172))
    assert find_interval(known, "ans_acc") != find_interval(total, "ans_acc")


@pytest.mark.parametrize("scores", [{}, {"root_sr": Score(value=101)}])
def test_an_entry_without_its_boards_headline_is_refused(scores: dict[str, Score]) -> None:
    with pytest.raises(UsageError, match="has no Root SR between 0 and 100"):
        build_tables([entry(**scores)])


def test_a_table_of_one_needs_no_comparison() -> None:
    (table,) = build_tables([read_published_entries()[0]])
    assert table.comparisons == ()
    assert table.group(1) == [*table.rows]


def test_a_score_that_only_some_entries_have_is_a_gap_in_the_others() -> None:
    full = read_published_entries()[0]
    scores = {name: score for name, score in full.scores.items() if name != "p_f1"}
    other = full.model_copy(update={"id": "other", "scores": scores})
    rows = build_tables([full, other])[0].rows
    place = build_tables([full, other])[0].metrics.index("p_f1")
    assert [row.cells[place] is None for row in rows].count(True) == 1


def test_history_finds_systems_under_both_spellings(made: tuple[BoardTable, ...]) -> None:
    found = find_careers([table for table in made if table.board == "atomic"])
    by_name = {career.system: [release for release, _ in career.rows] for career in found}
    assert by_name["GPT-4o"] == ["2024-07", "2025-03", "2026-04"]
    assert by_name["Claude-3-Opus"] == ["2024-07", "2026-04"]
    assert len(by_name) == 9
    assert all(career.unchanged for career in found)


@pytest.mark.parametrize(
    ("run_in", "joins"),
    [
        ("2026-11", "2026-04"),
        ("2026-04", "2026-04"),
        ("2025-12", "2025-03"),
        ("2023-01", "2024-07"),
    ],
)
def test_a_submission_joins_the_release_that_was_the_newest_when_it_was_run(
    run_in: str, joins: str
) -> None:
    published = [one for one in read_published_entries() if one.board == "atomic"]
    mine = published[0].model_copy(
        update={"id": "mine", "release": run_in, "status": "self-reported"}
    )
    tables = build_tables([*published, mine])
    assert [table.release for table in tables] == ["2026-04", "2026-02", "2025-03", "2024-07"]
    (home,) = (table for table in tables if "mine" in {row.entry.id for row in table.rows})
    assert home.release == joins
    assert sum(len(table.rows) for table in tables) == len(published) + 1


def test_rows_of_another_similarity_stand_outside_the_groups() -> None:
    """A lenient similarity doubled AnsAcc, and the row was ranked among published ones."""
    published = [one for one in read_published_entries() if one.board == "atomic"]
    marked = {"id": "mine", "status": "self-reported", "marks": ("other similarity",)}
    best = {**published[0].scores, "ans_acc": Score(value=99)}
    mine = published[0].model_copy(update=marked | {"release": "2026-11", "scores": best})
    table, alone = build_tables([*published, mine])[0], build_tables(published)[0]
    assert [row.entry.id for row in table.unranked] == ["mine"] == [table.rows[-1].entry.id]
    assert (table.ranked, table.comparisons) == (alone.rows, alone.comparisons)
    assert not is_ranked(mine, "summ_acc") and is_ranked(mine, "tool_acc")
    model = next(one for one in read_published_entries() if one.board == "workflow")
    (judged,) = build_tables([model.model_copy(update=marked)])
    assert judged.unranked == (), "Root SR compares no texts"
