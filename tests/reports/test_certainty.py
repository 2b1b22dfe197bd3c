import pytest

from gta_bench.records.attempts import UnitKey
from gta_bench.records.run import RunSpec, System
from gta_bench.reports.certainty import (
    RunMetrics,
    collect_repeats,
    describe_broken,
    interval_table,
    intervals_json,
    repeat_remarks,
    repeat_table,
    repeats_json,
)
from gta_bench.reports.estimates import Part


def run(
    outcomes: dict[str, str], *, epochs: int = 1, broken: frozenset[UnitKey] = frozenset()
) -> RunMetrics:
    """`+` passed, `-` failed, `?` without a root; one letter an epoch."""
    parts = {
        (task, epoch): Part(float(one == "+"), float(one != "?"), float(one == "?"))
        for task, own in outcomes.items()
        for epoch, one in enumerate(own, start=1)
    }
    spec = RunSpec(
        dataset="workflow",
        mode="workflow",
        system=System(model="m", agent="react"),
        tasks=tuple(outcomes),
        epochs=epochs,
    )
    return RunMetrics("runs/a", "j", "workflow", spec, {"root_sr": parts}, broken)


def test_a_score_stands_beside_its_interval_and_what_is_missing() -> None:
    table = interval_table([run({"1": "+", "2": "-", "3": "?", "4": "+"})])
    row = dict(zip(table.heading, table.rows[0], strict=True))
    assert row["value"] == "66.67"
    assert (row["tasks"], row["worth"], row["missing"]) == ("3", "3", "1")
    assert row["if they fail or pass"] == "50.00 to 75.00"
    assert "missing" not in interval_table([run({"1": "+", "2": "-"})]).heading


def test_repeats_have_pass_at_k_and_pass_hat_k() -> None:
    found = collect_repeats([run({"1": "++", "2": "+-", "3": "--", "4": "-+"}, epochs=2)])
    rows = [
        dict(zip(("run", "k", "tasks", "some", "_", "all"), row, strict=False))
        for row in repeat_table(found).rows
    ]
    assert [(row["k"], row["tasks"], row["some"], row["all"]) for row in rows] == [
        ("1", "4/4", "50.00", "50.00"),
        ("2", "4/4", "75.00", "25.00"),
    ]
    [said] = repeat_remarks(found)
    assert "50 % of the tasks do not end the same each time" in said
    assert "four times as many tasks" in said
    assert collect_repeats([run({"1": "+", "2": "-"})]) == []


def test_a_table_of_many_repeats_is_short() -> None:
    [found] = collect_repeats([run({"1": "+-" * 60, "2": "+" * 120}, epochs=120)])
    assert found.ks == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 50, 100, 120]
    assert [row[1] for row in repeat_table([found]).rows] == [str(k) for k in found.ks]
    assert found._replace(epochs=3).ks == [1, 2, 3]


def test_programs_get_the_intervals_and_repeats_that_the_tables_show() -> None:
    one = run({"1": "++", "2": "++", "3": "-", "4": "-?", "5": ""}, epochs=2)
    [interval] = intervals_json([one])
    assert isinstance(interval, dict)
    shown = interval_table([one]).rows[0]
    assert (interval["judge"], interval["metric"], interval["n"]) == ("j", "root_sr", 4)
    assert f"{interval['value']:.2f}" == shown[3]
    assert f"{interval['low']:.2f} to {interval['high']:.2f}" == shown[4]
    assert interval["bounds"] == {"missing": 3, "low": 40.0, "high": 80.0}
    rows = repeat_table(collect_repeats([one])).rows
    for found, row in zip(repeats_json(collect_repeats([one])), rows, strict=True):
        assert isinstance(found, dict)
        cells = [str(found["of"]), str(found["k"]), f"{found['tasks']}/{found['all_tasks']}"]
        for name in ("pass_at_k", "pass_hat_k"):
            share = found[name]
            assert isinstance(share, dict) and isinstance(share["bounds"], dict)
            cells.append(f"{share['estimate']:.2f}")
            cells += [
                f"{ends['low']:.2f} to {ends['high']:.2f}" for ends in (share, share["bounds"])
            ]
        assert cells == [*row]
    [whole] = intervals_json([run({"1": "+", "2": "-"})])
    assert isinstance(whole, dict) and whole["bounds"] is None


def test_a_lost_repeat_does_not_hide_its_task() -> None:
    """Whoever lost one epoch of every bad task would have 100 %."""
    found = collect_repeats([run({"1": "++", "2": "++", "3": "-", "4": "-?", "5": ""}, epochs=2)])
    table = repeat_table(found)
    assert table.heading.count("if the missing fail or pass") == 2
    once, twice = (row[2:] for row in table.rows)
    assert (once[0], once[1], once[3]) == ("4/5", "50.00", "40.00 to 80.00")
    assert (twice[0], twice[4], twice[6]) == ("2/5", "100.00", "40.00 to 60.00")
    assert "of the 2 tasks that have all of them" in repeat_remarks(found)[0]


@pytest.mark.parametrize("broken", [frozenset({("2", 1)}), frozenset()])
def test_work_that_was_broken_is_shown_with_and_without(broken: frozenset[UnitKey]) -> None:
    said = list(describe_broken([run({"1": "+", "2": "-", "3": "-"}, broken=broken)]))
    assert said == (
        [
            "runs/a, judged by j: 1 task failed through no fault of the system (2); without them: "
            "Root SR 50.00 instead of 33.33."
        ]
        if broken
        else []
    )
