"""`inspect eval` of our tasks: the same walls before gold as `gta run` has."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessage, ModelOutput, get_model
from inspect_ai.solver import Solver, generate
from inspect_ai.solver._task_state import sample_state

from gta_bench.confine.walls import Python
from gta_bench.errors import UsageError
from gta_bench.tasks.atomic import atomic, atomic_step
from gta_bench.tasks.harness import atomic_harness, workflow_harness
from gta_bench.tasks.workflow import workflow
from tests.builders import write_atomic, write_workflow
from tests.tasks.test_atomic_step import said

SIMILARITY = "exact-or-half"
ATOMIC: dict[str, Any] = {"similarity": SIMILARITY}


def evaluate(task: Task, out: Path, reply: Any, solver: Solver | None = None) -> EvalLog:
    model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    options: dict[str, Any] = {"log_dir": str(out), "display": "none", "log_realtime": False}
    return inspect_eval(task, model=model, solver=solver, **options)[0]


@pytest.mark.parametrize(
    ("task", "write", "options"),
    [
        (atomic, write_atomic, ATOMIC),
        (atomic_step, write_atomic, ATOMIC),
        (workflow, write_workflow, {}),
    ],
)
def test_a_jail_that_would_show_the_dataset_is_refused(
    task: Callable[..., Task],
    write: Callable[[Path], Path],
    options: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = write(tmp_path / "lib" / "data")
    task(data=str(root), **options)
    shown = Python("/usr/bin/python3", (str(tmp_path / "lib"),))
    monkeypatch.setattr(Python, "current", lambda: shown)
    with pytest.raises(UsageError, match=r"The measured system could read.*the dataset"):
        task(data=str(root), **options)


@pytest.mark.parametrize("task", [atomic, atomic_step])
def test_no_reference_is_in_the_sample_while_its_system_works(
    task: Callable[..., Task], tmp_path: Path
) -> None:
    seen = []

    def reply(messages: list[ChatMessage], *_: Any) -> ModelOutput:
        state = sample_state()
        assert state is not None
        seen.append((state.target.text, dict(state.metadata)))
        return said("It is 42.")

    root = write_atomic(tmp_path / "data")
    log = evaluate(task(data=str(root), **ATOMIC), tmp_path / "logs", reply)
    assert log.status == "success", log.error
    assert seen
    assert all(found == ("", {}) for found in seen)


def test_a_solver_in_the_place_of_ours_gets_no_score(tmp_path: Path) -> None:
    root = write_atomic(tmp_path / "data")
    task = atomic(data=str(root), **ATOMIC)
    log = evaluate(task, tmp_path / "logs", lambda *_: said("It is 42."), generate())
    assert log.samples is not None
    (sample,) = log.samples
    assert sample.error is not None
    assert "`--solver` replaced our solver" in sample.error.message
    assert not sample.scores


def test_a_harness_has_no_native_run(tmp_path: Path) -> None:
    for task in (
        atomic_harness(data=str(write_atomic(tmp_path / "atomic")), similarity=SIMILARITY),
        workflow_harness(data=str(write_workflow(tmp_path / "workflow"))),
    ):
        log = evaluate(task, tmp_path / "logs", lambda *_: said("It is 42."))
        assert log.samples is not None
        (sample,) = log.samples
        assert sample.error is not None
        assert "`inspect eval` cannot run a harness" in sample.error.message
