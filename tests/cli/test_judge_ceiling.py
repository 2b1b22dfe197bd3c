"""`gta judge ceiling`, and `gta report --ceiling`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.errors import EnvironmentProblem, RunError, UsageError
from gta_bench.records.ceiling import Ceiling, ErrorRates, TaskErrors
from gta_bench.statistics.ceiling import measure_rate
from tests.authored import write_task
from tests.authoring.folders import FILES, TASK
from tests.content.conftest import jail
from tests.judging.stored import settings_file

__all__ = ["jail"]


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jail: object) -> None:
    monkeypatch.chdir(tmp_path)


def gta(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def edit_ceiling(**changes: object) -> None:
    """Change the file, as if the judge had been measured otherwise."""
    file = Path("c/ceiling.json")
    found = Ceiling.model_validate_json(file.read_bytes())
    Path("other.json").write_text(found.model_copy(update=changes).model_dump_json())


def report(shape: str = "table") -> Result:
    return gta("report", "c", "--ceiling", "other.json", "--format", shape)


def test_a_ceiling_is_measured_and_shown_beside_the_scores_of_a_run() -> None:
    write_task(Path("tasks"), TASK, files=FILES)
    measure = ("judge", "ceiling", "scripted/honest", "--tasks", "tasks", "--out", "c")
    done = gta(*measure, "--repeats", "1")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0].split()[:4] == ["by", "group", "tasks", "broken"]
    assert done.stderr.startswith("4 works of 1 task: rendering the evidence")
    assert "Right work gets (95 %): Leaf SR" in done.stderr
    assert "Wrote c/ceiling.json. Next: gta report RUN --ceiling c/ceiling.json" in done.stderr
    again = gta(*measure, "--repeats", "1", "--json")
    found = Ceiling.model_validate_json(again.stdout)
    assert found.model_dump(exclude={"created"}) == Ceiling.model_validate_json(
        Path("c/ceiling.json").read_bytes()
    ).model_dump(exclude={"created"})

    # The works of the ceiling are an ordinary run; one task says too little for a correction.
    edit_ceiling()
    shown = report()
    assert "Ceiling of the judges, and Leaf SR corrected for their errors" in shown.stdout
    assert "not corrected: the ceiling has wrong or right works of fewer than 10" in shown.stdout
    rows = tuple(
        TaskErrors(task=str(number), found=8, broken=10, passed=9, intact=10)
        for number in range(40)
    )
    groups = (
        ErrorRates(
            by="all",
            name="all",
            tasks=40,
            broken=400,
            sensitivity=measure_rate((row.found, row.broken) for row in rows),
            intact=400,
            specificity=measure_rate((row.passed, row.intact) for row in rows),
        ),
    )
    edit_ceiling(rows=rows, groups=groups)
    (scores,) = json.loads(report("json").stdout)
    (beside,) = scores["ceilings"]
    corrected, raw = beside["corrected"], scores["judges"][0]["strict"]["leaf_sr"]
    assert beside["leaf_sr"] == raw and beside["problem"] is None
    assert corrected["estimate"] == pytest.approx(min(100, max(0, (raw - 20) / 0.7)))
    assert 0 <= corrected["low"] <= corrected["estimate"] <= corrected["high"] <= 100
    assert "corrected for both errors" in report("markdown").stdout
    page = gta("report", "c", "--ceiling", "other.json", "--html", "page.html")
    assert page.exit_code == 0 and "corrected for their errors" in Path("page.html").read_text()

    edit_ceiling(rows=rows, groups=groups, digest="0" * 64, repeats=3, leaf_threshold=5.0)
    said = "run and ceiling differ in options or prompts, repeats (1 and 3), leaf threshold"
    assert said in report().stdout
    edit_ceiling(judge="another")
    problem = report().exception
    assert isinstance(problem, UsageError) and "other.json is of another" in str(problem)
    Path("other.json").write_text("{}")
    assert isinstance(report().exception, RunError)
    edit_ceiling(rows=rows)
    problem = report().exception
    assert isinstance(problem, RunError) and "count different leaves" in str(problem)

    # The ceiling of one judge does not replace that of another.
    other = gta("judge", "ceiling", "scripted/frame", *measure[3:], "--repeats", "1")
    assert isinstance(other.exception, UsageError)
    assert "is the ceiling of scripted/honest" in str(other.exception)


def test_two_tasks_of_one_name_are_refused() -> None:
    for folder in ("one", "two"):
        write_task(Path(folder), TASK, files=FILES)
    done = gta("judge", "ceiling", "scripted/honest", "--tasks", "one", "--tasks", "two")
    assert isinstance(done.exception, UsageError) and "same name" in str(done.exception)


def test_a_judge_that_does_not_answer_leaves_leaves_out_instead_of_failing_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_task(Path("tasks"), TASK, files=FILES)
    monkeypatch.setenv("GTA_TEST_KEY_A", "none")
    # Nothing listens on this port.
    settings_file(Path(), "http://127.0.0.1:9/v1")
    measure = ("judge", "ceiling", "local", "--tasks", "tasks", "--out", "c")
    assert isinstance(gta(*measure).exception, EnvironmentProblem)
    assert not Path("c").exists()

    done = gta(*measure, "--no-preflight")
    assert done.exit_code == 1, done.output
    found = Ceiling.model_validate_json(Path("c/ceiling.json").read_bytes())
    assert found.unscored > 0 and not found.rows and not found.suspects
    assert found.overall.specificity is None
    assert f"Left out: {found.unscored} leaves without a score" in done.stderr
