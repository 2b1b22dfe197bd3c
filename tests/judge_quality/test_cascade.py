"""A cascade is simulated as it runs, and what is printed of a chosen band is out of fold."""

from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from gta_bench.judge_quality.cascade import (
    WIDEST,
    cascade_remarks,
    cascade_table,
    draw_verdicts,
    simulate_cascade,
)
from gta_bench.records.judges import CascadeReport
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import VerdictRow
from gta_bench.running.judge_run import copy_clear_scores
from gta_bench.runs.verdicts import append_verdicts, read_verdicts
from tests.judge_quality.test_paired_judges import judged, units
from tests.metrics.workflow_units import rows, unit

LEAVES = ("a1", "a2", "b")
STRONG = judged(judge="strong", cost_usd=0.01)


def simulated(
    verdicts: list[VerdictRow],
    *bands: float,
    works: list[WorkflowUnit] | None = None,
    limit: float = 5,
) -> CascadeReport:
    draws = draw_verdicts(verdicts, "cheap", "strong")
    given = units() if works is None else works
    return simulate_cascade(draws, given, threshold=7, bands=bands, limit=limit)


def test_a_wider_band_saves_less_and_errs_less() -> None:
    cheap = judged(shift=0.5, noise=3, judge="cheap", cost_usd=0.001)
    found = simulated([*cheap, *STRONG], 0, 1, 2, 10)
    saved = [row.saved.estimate for row in found.rows]
    errors = [row.error.estimate for row in found.rows]
    assert saved[-1] == 0 and saved == sorted(saved, reverse=True)
    assert errors[0] > errors[2] > errors[-1] == 0
    assert found.rows[-1].root_score is not None and found.rows[-1].root_score.estimate == 0
    assert found.rows[-1].cost_usd == pytest.approx(0.396 + 3.96)
    for row in found.rows[:-1]:
        assert row.error.low <= row.error.estimate <= row.error.high
        assert row.leaf_sr.low <= row.leaf_sr.estimate <= row.leaf_sr.high
        # All errors lie outside of the band: the same ones, of fewer leaves.
        assert row.outside is not None
        outside, saved_share = row.outside.estimate, row.saved.estimate
        assert outside * saved_share / 100 == pytest.approx(row.error.estimate)
    assert found.rows[-1].outside is None
    assert [row[0] for row in cascade_table(found).rows] == ["0", "1", "2", "10", "10, out of fold"]


def test_without_costs_or_whole_units_a_cascade_has_none() -> None:
    cheap = judged(judge="cheap")
    found = simulated([row for row in [*cheap, *STRONG] if row.key.leaf == "b"], 1)
    assert found.rows[0].root_score is None
    assert found.rows[0].cost_usd is None
    assert cascade_table(found).rows[0][-3:] == ("-", "-", "-")


def test_the_mean_of_repeats_flatters_a_noisy_judge_and_its_repeats_do_not() -> None:
    """A live cascade sees one score of the cheap judge; the mean of five is half as noisy."""
    rng = np.random.default_rng(3)
    truth = rng.uniform(0, 10, (300, 3))
    noisy = np.clip(truth + rng.normal(0, 3, (45, 300, 3)), 0, 10)
    recorded, live = noisy[:5], noisy[5:]

    def said(scores: npt.NDArray[np.float64], judge: str, repeat: int = 1) -> list[VerdictRow]:
        return [
            row
            for task, own in enumerate(scores)
            for row in rows(
                dict(zip(LEAVES, map(float, own), strict=True)),
                task=str(task),
                judge=judge,
                repeat=repeat,
            )
        ]

    outside = abs(live - 7) > 1
    wrong = 100 * float(np.mean(outside & ((live >= 7) != (truth >= 7))))
    strong, works = said(truth, "strong"), units(300)
    of_means = simulated([*said(recorded.mean(axis=0), "cheap"), *strong], 1, works=works)
    repeats = [row for number, one in enumerate(recorded, 1) for row in said(one, "cheap", number)]
    found = simulated([*repeats, *strong], 1, works=works)
    assert found.repeats == 5
    assert of_means.rows[0].error.high < wrong - 5
    assert found.rows[0].error.low < wrong < found.rows[0].error.high
    assert found.rows[0].saved.estimate == pytest.approx(100 * float(np.mean(outside)), abs=2)


def test_the_strong_judge_is_asked_for_just_the_leaves_that_a_live_cascade_leaves_open(
    tmp_path: Path,
) -> None:
    scores: tuple[float | str, ...] = (4, 6.5, 7, 7.5, 10, "refused")
    verdicts = [
        row
        for number, (one, two) in enumerate(product(scores, scores))
        for row in (
            *rows({"b": one}, str(number), judge="cheap"),
            *rows({"b": two}, str(number), judge="cheap", repeat=2),
            *rows({"b": 5}, str(number), judge="strong"),
        )
    ]
    for band in (0, 0.5, 2.5):
        run = tmp_path / f"{band}"
        run.mkdir()
        append_verdicts(run, verdicts)
        copy_clear_scores(run, "cheap", "cascade", threshold=7, band=band)
        kept = sum(key.judge == "cascade" for key in read_verdicts(run))
        (row,) = simulated(verdicts, band, works=[]).rows
        assert 0 < kept < 72
        assert row.saved.estimate == pytest.approx(100 * kept / 72)


def test_unscored_leaves_go_to_the_strong_judge_and_stay_open_where_it_gives_no_score() -> None:
    verdicts = [
        *rows({"a1": "refused", "a2": 1, "b": 10}, judge="cheap", cost_usd=1),
        *rows({"a1": 9, "a2": "refused", "b": 7}, judge="strong", cost_usd=10),
        *rows({"a1": "timeout", "a2": 7, "b": 7}, "2", judge="cheap", cost_usd=1),
        *rows({"a1": "refused", "a2": "refused", "b": 7}, "2", judge="strong", cost_usd=10),
    ]
    (row,) = simulated(verdicts, 1, works=[unit("1"), unit("2")]).rows
    # Two leaves of six are far from the threshold, and two have no score of either in the end.
    assert row.saved.estimate == pytest.approx(100 / 3)
    assert row.unscored == pytest.approx(100 / 3)
    assert row.cost_usd == 6 + 40
    # The strong judge has no score of `a2` of task 1 either, so nobody knows whether it is right.
    assert (row.error.estimate, row.error.n) == (0, 2)


def test_leaves_that_one_judge_did_not_see_or_saw_otherwise_are_left_out() -> None:
    verdicts = [
        *rows({"a1": 5, "a2": 5, "b": 5}, judge="cheap"),
        *rows({"a1": 5}, judge="strong"),
        *rows({"a2": 5}, judge="strong", evidence="other"),
    ]
    found = simulated(verdicts, 1, works=[unit()])
    assert (found.leaves, found.left_out) == (1, 2)
    assert found.chosen is None
    assert cascade_remarks(found)[1] == "One task is too few to choose a band."


def test_a_task_does_not_influence_its_own_band() -> None:
    """In one task of ten the cheap judge errs by 3; chosen on all tasks no error would remain."""
    verdicts = [
        row
        for task in range(10)
        for row in (
            *rows({"b": 10.0 if task == 4 else 1.0}, str(task), judge="cheap"),
            *rows({"b": 5}, str(task), judge="strong"),
        )
    ]
    works = [unit(str(task)) for task in range(10)]
    found = simulated(verdicts, 1, 3, works=works)
    assert found.folds == (3, 3, 3, 3, 1, 3, 3, 3, 3, 3)
    assert found.chosen is not None and found.chosen.band == 3
    assert found.rows[1].error.estimate == 0
    assert found.chosen.error.estimate == 10
    assert "Band 3 is the narrowest with at most 5 % different outcomes." in cascade_remarks(found)
    assert "(1 in 1 part, 3 in 9 parts)" in cascade_remarks(found)[2]
    narrow = simulated(verdicts, 1, works=works)
    assert narrow.chosen is not None and narrow.chosen.band == WIDEST
    assert "There is no band with at most 5 %" in cascade_remarks(narrow)[1]
