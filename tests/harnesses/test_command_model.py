"""A command whose model is behind Inspect's bridge: what it may cost, and a model that fails."""

from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model

from gta_bench.harnesses.choice import CellLimits, Harness
from gta_bench.records.steps import MalformedStep
from gta_bench.records.units import WorkflowUnit
from gta_bench.runs.directory import read_manifest
from tests.builders import workflow_task, write_workflow
from tests.harnesses.scripted import NAME, run_workflow, set_price
from tests.needs import needs

# Inspect takes some seconds to put its bridge into a cell.
pytestmark = [pytest.mark.slow, needs("bwrap")]
# Asks as often as its task says. What its model refuses is no reason for it to end badly.
HARNESS = """
import json, os, sys, urllib.error, urllib.request

times = int(json.load(open(os.environ["GTA_TASK_FILE"]))["request"].split()[-1])
open("outputs/begun.txt", "w").write("half")
body = {"model": "inspect", "messages": [{"role": "user", "content": f"{times} times"}]}
for _ in range(times):
    try:
        urllib.request.urlopen(urllib.request.Request(
            os.environ["OPENAI_BASE_URL"] + "/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": "Bearer none"},
        )).read()
    except urllib.error.HTTPError as exc:
        print("Sorry:", exc)
        break
print("Done.")
"""
TIMES = {"cheap": 1, "dear": 2, "endless": 100_000, "broken": 3, "refused": 4}


class Refusal(Exception):
    status_code = 400


def reply(messages: list[ChatMessage], tools: Any, choice: Any, config: Any) -> ModelOutput:
    if messages[-1].text == f"{TIMES['broken']} times":
        raise RuntimeError("The provider is down.")
    if messages[-1].text == f"{TIMES['refused']} times":
        raise Refusal("Error code: 400")
    output = ModelOutput.from_content(NAME, "Go on.")
    output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    return output


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> dict[str, WorkflowUnit]:
    """One run of all with $2 for each; a call costs $1.50."""
    set_price()
    folder = tmp_path_factory.mktemp("model")
    tasks = {
        name: workflow_task(dialogs=[{"role": "user", "content": f"Ask {times}"}])
        for name, times in TIMES.items()
    }
    data = write_workflow(folder / "data", tasks)
    command = folder / "harness.py"
    command.write_text(HARNESS)
    harness = Harness(
        kind="command",
        target=f"python3 {command}",
        limits=CellLimits(seconds=300, cost_usd=2.0),
    )
    model = get_model(NAME, custom_outputs=reply, memoize=False)
    found = run_workflow(harness, model, data, ":", folder / "run")
    return {unit.task.id: unit for unit in found}


def test_a_command_within_its_cost_is_left_alone(units: dict[str, WorkflowUnit]) -> None:
    unit = units["cheap"]
    assert (unit.failure, unit.answer) == (None, "Done.")
    assert unit.usage.cost_usd == pytest.approx(1.5)


@pytest.mark.parametrize("name", ["dear", "endless"])
def test_a_command_that_costs_too_much_is_stopped_and_what_it_had_is_kept(
    units: dict[str, WorkflowUnit], name: str
) -> None:
    unit = units[name]
    assert unit.failure is None
    (step,) = unit.trace
    assert isinstance(step, MalformedStep)
    assert step.reason == "The harness was stopped: it cost more than $2."
    assert [file.path for file in unit.deliverables] == ["outputs/begun.txt"]
    assert 3.0 <= (unit.usage.cost_usd or 0) < 1.5 * TIMES["endless"]


def test_a_command_whose_model_failed_has_no_score_however_it_ended(
    units: dict[str, WorkflowUnit],
) -> None:
    failure = units["broken"].failure
    assert failure is not None
    assert "The harness's model failed: " in failure
    assert "The provider is down." in failure


@needs("pasta")
def test_cells_with_the_open_network_reach_their_models_side_by_side(tmp_path: Path) -> None:
    """Each has the same port, and a network of its own."""
    tasks = {
        name: workflow_task(dialogs=[{"role": "user", "content": "Ask 1"}]) for name in ("a", "b")
    }
    data = write_workflow(tmp_path / "data", tasks)
    command = tmp_path / "harness.py"
    command.write_text(HARNESS)
    harness = Harness(kind="command", target=f"python3 {command}", network="open")
    model = get_model(NAME, custom_outputs=reply, memoize=False)
    found = run_workflow(harness, model, data, ":", tmp_path / "run")
    assert [(unit.failure, unit.answer) for unit in found] == [(None, "Done.")] * 2
    assert [unit.usage.model_calls for unit in found] == [1, 1]
    manifest = read_manifest(tmp_path / "run")
    assert manifest.spec.network == "open"
    assert any("through pasta" in note for note in manifest.notes)


def test_a_request_that_is_refused_is_the_commands_own_failure(
    units: dict[str, WorkflowUnit],
) -> None:
    """It had no score, and the next command let it draw again."""
    unit = units["refused"]
    assert (unit.failure, unit.attempts) == (None, 1)
    reasons = [step.reason for step in unit.trace if isinstance(step, MalformedStep)]
    assert "Its model's provider refused a request of the harness: " in reasons[0]
    assert units["broken"].attempts == 2
