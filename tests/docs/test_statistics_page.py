"""Figures of docs/concepts/statistics.md and docs/leaderboard.md are what the functions give."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from gta_bench.statistics.power import detectable_mean, detectable_paired, detectable_unpaired

from gta_bench.metrics.consistency import check_entry
from gta_bench.records.leaderboard import Entry
from gta_bench.reports.leaderboard.entries import published
from gta_bench.statistics.proportions import two_proportions, wilson
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "concepts" / "statistics.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\d+) \| (\d+) % \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", re.MULTILINE)


@pytest.mark.parametrize(("tasks", "baseline", "other", "near", "nearer"), ROW.findall(PAGE))
def test_the_table_of_detectable_differences(
    tasks: str, baseline: str, other: str, near: str, nearer: str
) -> None:
    n, start = int(tasks), int(baseline) / 100
    gains = [
        detectable_unpaired(n, start),
        detectable_paired(n, start, correlation=0.3),
        detectable_paired(n, start, correlation=0.6),
    ]
    assert [f"{100 * gain:.1f}" for gain in gains if gain is not None] == [other, near, nearer]


def test_the_table_has_all_its_rows() -> None:
    assert len(ROW.findall(PAGE)) == 9


def test_the_reading_of_the_published_tables() -> None:
    means = [f"{detectable_mean(n, 2.8):.2f}" for n in (30, 132, 229)]
    assert means == ["1.48", "0.69", "0.52"]
    assert all(value in PAGE for value in means)
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
        for entry in published()
        if entry.board == "atomic"
    ]
    assert sum(abs(gap) < 0.01 for gap in gaps) == 10


def test_the_entry_of_the_leaderboard_page_is_one() -> None:
    page = (REPOSITORY / "docs" / "leaderboard.md").read_text(encoding="utf-8")
    block = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert block is not None
    assert check_entry(Entry.model_validate(json.loads(block.group(1)))) == ()
