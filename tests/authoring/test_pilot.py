"""Works of a task folder take the path of a system's work, once."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from gta_bench.agents.models import ChosenModel
from gta_bench.authoring import pilot
from gta_bench.authoring.pilot import pilot_task
from gta_bench.authoring.proofs import read_authored
from gta_bench.authoring.readiness import assess, read_thresholds
from gta_bench.confine.workspace import Quota
from gta_bench.errors import DatasetError, RunError
from gta_bench.harnesses import collecting
from gta_bench.judge_quality.attacks.carriers import AttackedWork
from gta_bench.judge_quality.judge_runs import BOAST, NULLS
from gta_bench.judging.options import JudgeOptions
from gta_bench.judging.own import make_own_judge
from gta_bench.records.evidence import Evidence
from gta_bench.records.pilot import Pilot
from gta_bench.records.workflow import Checkpoint
from gta_bench.running.judge_run import JudgedBy, Judging
from gta_bench.settings import ModelSettings, Settings
from tests.authored import write_task
from tests.authoring.folders import TASK, write_authored
from tests.content.conftest import jail

__all__ = ["jail"]
pytestmark = pytest.mark.usefixtures("jail")

JUDGED = TASK + '[[leaf]]\nid = "tone"\nsays = "The answer is polite."\n'
JUDGED = JUDGED.replace(
    'says = "The regions are sorted', 'by = "check-then-judge"\nsays = "The regions are sorted'
)
PYTHON = """\
format = 1
id = "q3-sales"
[[leaf]]
id = "random"
says = "Luck."
checks = [{ is = "python", run = "checks/own.py:check" }]
[[leaf]]
id = "crash"
says = "Nothing."
checks = [{ is = "python", run = "checks/own.py:crash" }]
"""


STATEFUL = """\
format = 1
id = "q3-sales"
tools = ["notes__*"]
[[leaf]]
id = "tea"
says = "The list of teas has Assam."
checks = [{ is = "state.file", server = "notes", path = "data/teas.txt", all = ["Assam"] }]
"""


def score_tone(request: str, leaf: Checkpoint, evidence: Evidence) -> float:
    """A judge who likes every answer that is long enough."""
    return 10.0 if len(evidence.answer) > 10 else 0.0


def try_task(folder: Path, *, judged: bool = False) -> tuple[Pilot, list[JudgedBy]]:
    settings, found = Settings(), list[JudgedBy]()
    judging = models = None
    if judged:
        models = [make_own_judge(score_tone)]
        chosen = ChosenModel(str(models[0]), ModelSettings(model=str(models[0])))
        judging = Judging((chosen,), JudgeOptions(), 3, settings)
    made = pilot_task(
        read_authored(folder),
        folder.parent.parent / "run",
        settings,
        judging,
        lambda _: nullcontext(lambda _: None),
        found.append,
        models,
    )
    return made, found


def test_checks_alone_make_a_task_ready_that_needs_no_judge(tmp_path: Path) -> None:
    folder = write_authored(tmp_path / "tasks")
    made, _ = try_task(folder)
    assert [*made.trials] == [
        *("gold/plain", "gold/wide", "wrong/one-sum-off", "wrong/swapped", "cheat/head-only"),
        *("null/empty", "null/echo-the-requirements", "null/boast-only", "null/copy-the-input"),
    ]
    found = assess(read_authored(folder), made, read_thresholds(Settings()))
    assert (found.state, found.findings, found.cost_usd) == ("ready", (), 0.0)
    wrong = made.trials["wrong/one-sum-off"]["sums"]
    assert (wrong.by, wrong.scores) == ("check", (0.0,))
    assert wrong.reason == "summary.csv > South, Revenue: found 31,977.2, wanted 31,877.2"


def test_a_judge_is_asked_three_times_and_again_only_about_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The others deliver Markdown, whose evidence needs a browser.
    monkeypatch.setattr(pilot, "NULLS", {"boast": lambda unit, files: AttackedWork(BOAST, {})})
    folder = write_authored(tmp_path / "tasks", JUDGED)
    made, (first,) = try_task(folder, judged=True)
    works, sorted_works = len(made.trials), 3
    assert first.wanted == first.scored == 3 * (works + sorted_works)
    assert made.trials["gold/plain"]["tone"].scores == (10.0,) * 3
    order = made.trials["gold/plain"]["order"]
    assert (order.by, order.check) == ("judge", 10.0)
    assert made.trials["wrong/swapped"]["order"].by == "check"
    found = assess(read_authored(folder), made, read_thresholds(Settings()))
    assert ("T35", "null/boast", "tone") in [
        (one.check, one.file, one.field) for one in found.findings
    ]

    _, (second,) = try_task(folder, judged=True)
    assert second.wanted == 0
    edited = JUDGED.replace("polite", "friendly").replace("weight = 3", "weight = 2")
    (folder / "task.toml").write_text(edited)
    (folder / "wrong/one-sum-off/final.txt").write_text("South is weakest, sorry.")
    made, (third,) = try_task(folder, judged=True)
    assert third.wanted == 3 * (works + 1), "a leaf in all works, and the other in the changed one"


def test_works_come_with_the_states_of_servers_and_doing_nothing_changes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pilot, "NULLS", {"empty": NULLS["empty"]})
    files: dict[str, bytes | str] = {}
    works = {"gold/one": "Assam", "gold/two": "Ceylon, Assam", "wrong/other": "Oolong"}
    for work, teas in works.items():
        files[f"{work}/final.txt"] = "Done."
        files[f"{work}/states/notes/before/data/teas.txt"] = "none"
        files[f"{work}/states/notes/after/data/teas.txt"] = teas
    files["gold/two/files/states.txt"] = "A deliverable."
    files["wrong/other/wrong.toml"] = 'breaks = ["tea"]\n'
    files["cheat/planted/data/teas.txt"] = "Assam"
    folder = write_task(
        tmp_path / "tasks",
        STATEFUL,
        files={path: str(text).encode() for path, text in files.items()},
    )
    made, _ = try_task(folder)
    scores = {work: trials["tea"].scores for work, trials in made.trials.items()}
    assert scores == {
        "gold/one": (10.0,),
        "gold/two": (10.0,),
        "wrong/other": (0.0,),
        "cheat/planted": (0.0,),
        "null/empty": (0.0,),
    }
    stray = folder / "gold/one/states/notes/teas.txt"
    stray.write_text("Assam", encoding="utf-8")
    with pytest.raises(DatasetError, match="is not a file of states/SERVER/before or /after"):
        read_authored(folder)


def test_without_a_judge_its_leaves_stay_open(tmp_path: Path) -> None:
    folder = write_authored(tmp_path / "tasks", JUDGED)
    made, _ = try_task(folder)
    assert made.trials["gold/plain"]["tone"].scores == ()
    assert made.trials["wrong/swapped"]["order"].scores == (0.0,)
    assert assess(read_authored(folder), made, read_thresholds(Settings())).state == "checked"


def test_python_checks_run_twice_and_a_crash_is_a_missing_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pilot, "NULLS", {"empty": NULLS["empty"]})
    code = "import random\ndef check(work):\n    return random.random()\n"
    code += "def crash(work):\n    return work.answer / 2\n"
    files = {"checks/own.py": code, "gold/plain/final.txt": "Done."}
    folder = write_task(tmp_path / "tasks", PYTHON, files={k: v.encode() for k, v in files.items()})
    made, _ = try_task(folder)
    assert made.unstable == {"gold/plain": ("random",), "null/empty": ("random",)}
    crashed = made.trials["gold/plain"]["crash"]
    assert crashed.scores == (None,) and "check_failed" in crashed.reason
    found = assess(read_authored(folder), made, read_thresholds(Settings()))
    assert {"T28", "T34"} == {one.check for one in found.findings if one.severity == "error"}
    assert found.reasons[:2] == ("3 errors", "2 scores missing")


def test_another_run_is_not_overwritten(tmp_path: Path) -> None:
    folder = write_authored(tmp_path / "tasks")
    run = tmp_path / "run"
    run.mkdir()
    (run / "mine.txt").write_text("x")
    with pytest.raises(RunError, match="is not empty and is not a pilot"):
        try_task(folder)
    (run / "mine.txt").unlink()
    try_task(folder)
    manifest = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**manifest, "dataset_digest": "0" * 64}))
    with pytest.raises(RunError, match="has another run"):
        try_task(folder)


def test_a_work_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_authored(tmp_path / "tasks")
    monkeypatch.setattr(collecting, "Quota", lambda: Quota(file_bytes=3))
    with pytest.raises(DatasetError, match=r"q3-sales/gold/plain/summary\.csv: is larger"):
        try_task(folder)
