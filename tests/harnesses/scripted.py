"""A scripted model, and runs of harnesses that ask it."""

from pathlib import Path
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    Model,
    ModelCost,
    ModelInfo,
    ModelOutput,
    ModelUsage,
    get_model,
    set_model_info,
)

from gta_bench.agents.models import ChosenModel
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.workflow import load_workflow
from gta_bench.harnesses.choice import CellLimits, Harness
from gta_bench.records.run import RunMode
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.running.system_run import execute
from gta_bench.runs.directory import log_folder
from gta_bench.runs.logs import read_units
from gta_bench.settings import ModelSettings, read_settings
from tests.planning import planned

NAME = "mockllm/model"
ANSWER = "All done: 42."
LIMITS = CellLimits(seconds=300)


# Second calls that leave a file: by the shell of Codex, by a tool of ours.
BY_SHELL = ("exec_command", {"cmd": "echo '# Report' > outputs/report.md"})
BY_TOOL = ("CsvFileGenerator", {"filename": "table", "data_str": '[["a","b"],[1,2]]'})


def scripted_model(then: tuple[str, dict[str, str]] | None = None) -> Model:
    """Asks the calculator, then makes the other call if there is one, then answers."""

    def reply(messages: list[ChatMessage], tools: Any, choice: Any, config: Any) -> ModelOutput:
        said = [message.text for message in messages if message.role == "tool"]
        names = [tool.name for tool in tools]
        calculator = next((name for name in names if name.endswith("Calculator")), None)
        other = next((name for name in names if then and name.endswith(then[0])), None)
        if not said and calculator is not None:
            output = ModelOutput.for_tool_call(NAME, calculator, {"expression": "6*7"})
        elif len(said) == 1 and then is not None and other is not None:
            assert "42" in said[0], said
            output = ModelOutput.for_tool_call(NAME, other, then[1])
        else:
            output = ModelOutput.from_content(NAME, ANSWER)
        # Without it, Inspect counts tokens with a vocabulary from the network.
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output

    return get_model(NAME, custom_outputs=reply, memoize=False)


def broken_model() -> Model:
    """Fails at every call."""

    def reply(messages: list[ChatMessage], tools: Any, choice: Any, config: Any) -> ModelOutput:
        raise RuntimeError("The provider is down.")

    return get_model(NAME, custom_outputs=reply, memoize=False)


def set_price() -> None:
    """Each call of a scripted model costs $1.50."""
    price = ModelCost(input=1e5, output=1e5, input_cache_write=0, input_cache_read=0)
    set_model_info(NAME, ModelInfo(cost=price))


def run_workflow(
    harness: Harness, model: Model, data: Path, tasks: str, out: Path, epochs: int = 1
) -> tuple[WorkflowUnit, ...]:
    """The units of GTA-Workflow after a run."""
    done = _run(harness, model, data, "workflow", tasks, out, epochs)
    found = read_units(*done, WorkflowUnit).units
    dataset = load_workflow(data)
    assert [one.digests for one in found] == [task_digests(dataset, one.task.id) for one in found]
    return found


def run_atomic(
    harness: Harness,
    model: Model,
    data: Path,
    tasks: str,
    out: Path,
    mode: RunMode = "end-to-end",
) -> tuple[AtomicUnit, ...]:
    """The units of GTA-Atomic after a run."""
    found = read_units(*_run(harness, model, data, mode, tasks, out), AtomicUnit).units
    dataset = load_atomic(data)
    assert [one.digests for one in found] == [task_digests(dataset, one.task.id) for one in found]
    return found


def _run(
    harness: Harness,
    model: Model,
    data: Path,
    mode: RunMode,
    tasks: str,
    out: Path,
    epochs: int = 1,
) -> tuple[Path, tuple[str, ...], int]:
    """Where the logs of the run are, and which units it has."""
    run = planned(
        data,
        mode,
        model=ChosenModel(NAME, ModelSettings(model=NAME)),
        tasks=tasks,
        epochs=epochs,
        settings=read_settings().settings,
        harness=harness,
    )
    execute(*run, out, lambda done: None, model=model)
    return log_folder(out), run.manifest.spec.tasks, run.manifest.spec.epochs
