"""The report shows three scripted systems as what they are."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import write_atomic
from tests.tape.datasets import TOOLMETA, multiplication
from tests.tape.test_runs import gta, run, units

TASKS = 8

pytestmark = pytest.mark.slow
CONTROLS = {
    "no-tools": "no-tools",
    "spoiled": "corrupt-replies",
    "faults": "faults=0.4",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    write_atomic(root, {str(n): multiplication(n + 12) for n in range(TASKS)}, TOOLMETA)
    assert gta("tape", "from-reference", "--data", root, "--out", root / "tape").exit_code == 0
    return root


@pytest.fixture(scope="module")
def effects(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """The report of an agent's plain run and its runs under each control."""
    kept: dict[str, Any] = {}

    def of(agent: str) -> Any:
        if agent not in kept:
            folder = tmp_path_factory.mktemp(agent)
            options = options_for(data, agent)
            run(data, folder / "plain", *options)
            for name, control in CONTROLS.items():
                run(data, folder / name, *options, "--control", control)
            runs = [folder / name for name in ("plain", *CONTROLS)]
            entries = json.loads(gta("report", *runs, "--format", "json").stdout)
            kept[agent] = dict(zip(("plain", *CONTROLS), entries, strict=True)) | {"folder": folder}
        return kept[agent]

    return of


def options_for(data: Path, agent: str) -> tuple[str | Path, ...]:
    name = f"tests.tape.agents:{agent}"
    return ("--agent", name, "--model", "mockllm/model", "--tape", data / "tape")


@pytest.mark.parametrize(
    ("agent", "control", "kept", "lost"),
    [
        ("ignorer", "no-tools", TASKS, 0),
        ("ignorer", "spoiled", TASKS, 0),
        ("ignorer", "faults", TASKS, 0),
        ("truster", "no-tools", 0, TASKS),
        ("truster", "spoiled", 0, TASKS),
        ("checker", "no-tools", 0, TASKS),
        ("checker", "spoiled", TASKS, 0),
        ("checker", "faults", TASKS, 0),
    ],
)
def test_what_each_system_keeps_and_loses(
    effects: Callable[[str], Any], agent: str, control: str, kept: int, lost: int
) -> None:
    effect = effects(agent)[control]["control_effect"]
    assert effect["solved_plain"] == TASKS
    assert (effect["kept"], effect["lost"], effect["won"]) == (kept, lost, 0)


def test_faults_show_which_system_asks_again(effects: Callable[[str], Any]) -> None:
    trusting = effects("truster")["faults"]["control_effect"]
    checking = effects("checker")["faults"]["control_effect"]
    ignoring = effects("ignorer")["faults"]["control_effect"]
    assert trusting["disturbance"]["faults"] > 0
    assert trusting["disturbance"]["recovered"] == 0
    assert trusting["lost"] == trusting["hit"] == trusting["disturbance"]["faults"]
    assert checking["disturbance"]["faults"] > 0
    assert checking["disturbance"]["recovered"] == checking["disturbance"]["faults"]
    assert ignoring["disturbance"]["faults"] == 0


def test_the_report_explains_it_task_by_task(effects: Callable[[str], Any]) -> None:
    folder = effects("truster")["folder"]
    runs = [folder / name for name in ("plain", *CONTROLS)]
    table = gta("report", *runs)
    assert "Solved without a control and with it" in table.stdout
    assert "noise floor unknown: each task ran once without the control" in table.stderr
    assert (
        "corrupted: 8 replies in 8 units; of the 8 of these that are solved without the control, "
        "8 are not solved with it (100.0 %, "
    ) in table.stderr
    assert "solved only without the control: tasks 0, 1, 2, 3, 4, 5, 6, 7." in table.stderr
    assert "0 of 8 units solved with tools are also solved without any" in table.stderr
    assert "it recovered from 0 of" in table.stderr
    assert "under controls (no-tools; seed 0)" in table.stderr
    page = gta("report", *runs, "--format", "markdown").stdout
    assert "| 3 | 1 | 1.00 | 0.00 | corrupted replies: 1 | lost |" in page


def test_a_report_without_the_plain_run_asks_for_it(effects: Callable[[str], Any]) -> None:
    folder = effects("truster")["folder"]
    said = gta("report", folder / "no-tools")
    assert "also pass the same system's run without it" in said.stderr
    assert "Solved without a control and with it" not in said.stdout
    assert (
        "Solved without a control and with it"
        not in gta("report", folder / "plain", "--format", "markdown").stdout
    )


def test_the_same_seed_gives_the_same_run_and_another_seed_another(
    data: Path, effects: Callable[[str], Any], tmp_path: Path
) -> None:
    folder, options = effects("checker")["folder"], options_for(data, "checker")
    faults = (*options, "--control", "faults=0.4")
    run(data, tmp_path / "same", *faults)
    run(data, tmp_path / "other", *faults, "--control-seed", "5")
    traces = [
        [unit.trace for unit in units(out)]
        for out in (folder / "faults", tmp_path / "same", tmp_path / "other")
    ]
    assert traces[0] == traces[1]
    assert traces[0] != traces[2]


def test_calls_of_distractors_are_counted(data: Path, tmp_path: Path) -> None:
    options = options_for(data, "gullible")
    run(data, tmp_path / "plain", *options)
    run(data, tmp_path / "more", *options, "--control", "distractors=3")
    said = gta("report", tmp_path / "plain", tmp_path / "more")
    assert "8 calls went to distractors, in 8 units." in said.stderr


def test_another_control_is_another_run(data: Path, effects: Callable[[str], Any]) -> None:
    folder = effects("ignorer")["folder"]
    options = ("--mode", "end-to-end", "--data", data, *options_for(data, "ignorer"))
    for change, said in (
        (("--control", "corrupt-replies"), "controls"),
        (("--control", "no-tools", "--control-seed", "3"), "control_seed"),
    ):
        result = gta("run", "atomic", *options, *change, "--out", folder / "no-tools")
        assert f"another setting ({said}: " in str(result.exception)
