"""Every option of a run reaches its description and the work, from the command line and Python."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai.model import ChatMessage, ContentImage, Model, ModelOutput, get_model

import gta_bench
from gta_bench.cli import app
from gta_bench.records.run import LoopLimits, RunSpec
from gta_bench.settings import ScoringSettings, Settings
from tests.builders import JPEG, atomic_task, workflow_task, write_atomic, write_workflow

SETTINGS = Settings(scoring=ScoringSettings(similarity="exact-or-half"))
FILES = [{"path": "menu.jpg", "type": "image", "url": None}]


@pytest.fixture
def atomic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_atomic(tmp_path / "atomic", {"0": atomic_task(), "1": atomic_task()})


@pytest.fixture
def workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    data = write_workflow(tmp_path / "workflow", {"1": workflow_task(files=FILES)})
    (data / "menu.jpg").write_bytes(JPEG)
    return data


def gta(*arguments: str | Path) -> None:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output


def described(run: str) -> RunSpec:
    return gta_bench.manifest(run).spec


def test_the_options_of_the_command_line_are_the_description(atomic: Path) -> None:
    gta("tape", "from-reference", "--data", atomic, "--out", "tape")
    options: list[str | Path] = [
        *("--mode", "end-to-end", "--agent", "silent", "--data", atomic, "--out", "run"),
        *("--tasks", "1", "--epochs", "2", "--images", "attached", "--max-turns", "3"),
        *("--tape", "tape", "--control", "no-tools", "--control-seed", "7"),
        *("--similarity", "exact-or-half"),
    ]
    gta("run", "atomic", *options)
    spec = described("run")
    assert (spec.dataset, spec.mode, spec.tasks, spec.epochs) == ("atomic", "end-to-end", ("1",), 2)
    assert (spec.system.agent, spec.system.images) == ("silent", "attached")
    assert spec.loop == LoopLimits(max_turns=3)
    assert spec.tape is not None
    assert (spec.tape.mode, spec.tape.origin) == ("replay", "reference")
    assert (spec.controls, spec.control_seed) == (("no-tools",), 7)
    assert spec.similarity == "exact-or-half"
    assert [len(unit.trace or ()) for unit in gta_bench.units("run")] == [3, 3]


def test_judges_of_the_command_line_are_described_by_their_models(workflow: Path) -> None:
    Path("gta.toml").write_text('[models.strict]\nmodel = "mockllm/judge"\n', encoding="utf-8")
    options: list[str | Path] = [
        "--agent",
        "silent",
        "--data",
        workflow,
        "--out",
        "run",
        "--judge",
        "strict",
    ]
    gta("run", "workflow", *options)
    assert described("run").judges == ("mockllm/judge",)


def test_the_arguments_of_python_are_the_description(atomic: Path) -> None:
    gta("tape", "from-reference", "--data", atomic, "--out", "tape")
    gta_bench.run(
        "atomic",
        "run",
        agent="silent",
        data=atomic,
        tasks="1",
        epochs=2,
        images="attached",
        max_turns=3,
        tape="tape",
        settings=SETTINGS,
    )
    spec = described("run")
    assert (spec.tasks, spec.epochs, spec.system.images) == (("1",), 2, "attached")
    assert (spec.loop, spec.similarity) == (LoopLimits(max_turns=3), "exact-or-half")
    assert spec.tape is not None
    assert [len(unit.trace or ()) for unit in gta_bench.units("run")] == [3, 3]


def test_a_tape_that_python_names_answers_the_calls(atomic: Path) -> None:
    gta("tape", "from-reference", "--data", atomic, "--out", "tape")
    gta_bench.run(
        "atomic", "run", agent="gold", data=atomic, tasks="0", tape="tape", settings=SETTINGS
    )
    (unit,) = gta_bench.units("run")
    assert [call.taped for call in unit.calls] == ["replayed"]


@pytest.mark.parametrize(
    ("dataset", "mode"), [("atomic", "step"), ("atomic", "end-to-end"), ("workflow", "end-to-end")]
)
@pytest.mark.parametrize("images", ["path", "attached"])
def test_a_model_is_shown_images_exactly_where_the_run_attaches_them(
    request: pytest.FixtureRequest, dataset: Any, mode: Any, images: Any
) -> None:
    seen: list[ChatMessage] = []

    def reply(messages: list[ChatMessage], *_: object) -> ModelOutput:
        seen.extend(messages)
        return ModelOutput.from_content("mockllm/model", "Seven.")

    model: Model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    data = request.getfixturevalue(dataset)
    gta_bench.run(
        dataset, "run", model=model, mode=mode, data=data, images=images, settings=SETTINGS
    )
    parts = [
        part for message in seen if isinstance(message.content, list) for part in message.content
    ]
    assert any(isinstance(part, ContentImage) for part in parts) is (images == "attached")
