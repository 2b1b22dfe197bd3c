"""Figures of docs/concepts/statistics.md and docs/leaderboard.md are what the functions give."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from gta_bench.leaderboard.entries import check_entry, read_published_entries
from gta_bench.records.leaderboard import Entry
from gta_bench.statistics.pooled import smallest_difference
from gta_bench.statistics.proportions import two_proportions, wilson
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "concepts" / "statistics.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", re.MULTILINE)


def test_the_table_of_what_tasks_can_show() -> None:
    rows = ROW.findall(PAGE)
    assert [int(row[0]) for row in rows] == [30, 132, 229]
    for tasks, *shown in rows:
        n = int(tasks)
        found = [smallest_difference(share, n, n) for share in (0.1, 0.2, 0.3, 0.5)]
        assert [f"{100 * one:.1f}" for one in found] == shown


def test_the_reading_of_the_published_tables() -> None:
    assert f"{two_proportions(19, 132, 11, 132).p_value:.2f}" == "0.12"
    assert f"{two_proportions(329, 1156, 291, 1156).p_value:.3f}" == "0.074"
    assert f"{two_proportions(329 / 6.06, 191, 291 / 6.06, 191).p_value:.2f}" == "0.47"
    wide = wilson(329 / 6.06, 191)
    assert f"{100 * wide.low:.1f}–{100 * wide.high:.1f}" in PAGE  # noqa: RUF001


def test_leaves_hang_together_as_the_page_says(data_dir: Path) -> None:
    folder = data_dir / "predictions" / "workflow_gemini25pro_lagent_20"
    judged = [
        json.loads(file.read_text(encoding="utf-8"))["details"][0]["nodes"]
        for file in sorted(folder.glob("*/official_rescore_result.json"))
    ]
    passed = np.array([sum(leaf["score"] >= 6 for leaf in leaves) for leaves in judged])
    sizes = np.array([len(leaves) for leaves in judged])
    n, leaves, share = len(sizes), sizes.sum(), passed.sum() / sizes.sum()
    error = np.sqrt(((passed - share * sizes) ** 2).sum() * n / (n - 1)) / leaves
    assert (n, leaves) == (20, 229)
    assert error**2 / (share * (1 - share) / leaves) == pytest.approx(6.06, abs=0.01)
    between = (sizes * (passed / sizes - share) ** 2).sum() / (n - 1)
    within = (passed * (1 - passed / sizes)).sum() / (leaves - n)
    size = (leaves - (sizes**2).sum() / leaves) / (n - 1)
    assert (between - within) / (between + (size - 1) * within) == pytest.approx(0.38, abs=0.01)


def test_ten_published_rows_earn_nothing_for_images() -> None:
    gaps = [
        entry.scores["ans_acc_i"].value - entry.scores["ans_acc"].value * 172 / 229
        for entry in read_published_entries()
        if entry.board == "atomic"
    ]
    assert sum(abs(gap) < 0.01 for gap in gaps) == 10


def test_the_entry_of_the_leaderboard_page_is_one() -> None:
    page = (REPOSITORY / "docs" / "leaderboard.md").read_text(encoding="utf-8")
    block = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert block is not None
    assert check_entry(Entry.model_validate(json.loads(block.group(1)))) == ()
