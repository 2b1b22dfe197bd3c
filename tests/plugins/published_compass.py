"""AgentCompass 1.0.1 as far as the plugin touches it: the same names, parameters and calls.

The real package is met in tests/measure/test_agentcompass.py.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class RuntimeBenchmarkConfig:
    model: str
    sample_ids: list[str] | None = None

    def __post_init__(self) -> None:
        assert self.model


def config_field(*, default: Any, description: str) -> Any:
    return field(default=default, metadata={"description": description})


class Registry:
    def register(self) -> Callable[[type], type]:
        return lambda cls: cls


class BaseBenchmark:
    config_class: Any = None

    def build_config(self, req: Any) -> Any:
        return self.config_class(**{**req.benchmark.params, "model": req.model.id})


@dataclass
class TaskSpec:
    task_id: str
    question: str
    category: str
    ground_truth: Any


@dataclass
class TaskInput:
    prompt: str
    workspace: str | None = None


@dataclass
class TaskOutput:
    answer: str | None = None


@dataclass
class PreparedTask:
    task_id: str
    category: str
    ground_truth: Any
    input: TaskInput
    output: TaskOutput


class TaskStatus(StrEnum):
    COMPLETED = "completed"
    RUN_ERROR = "run_error"


@dataclass
class RunResult:
    task_id: Any
    status: TaskStatus
    final_answer: Any = None
    issues: list[Any] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RuntimeContext:
    run_dir: Path
    task_id: str
    attempt: int


runtime_context: ContextVar[RuntimeContext | None] = ContextVar("context", default=None)


class RunLayout:
    def __init__(self, run_dir: Path) -> None:
        self.root = run_dir

    def attempt_dir(self, task_id: str, attempt: int, *, create: bool = False) -> Path:
        folder = self.root / "details" / "running" / task_id / f"attempt-{attempt}"
        folder.mkdir(parents=True, exist_ok=create)
        return folder


def make_metric_contract(*, primary: str, scalar: tuple[str, ...]) -> tuple[str, ...]:
    assert primary in scalar
    return scalar


MODULES: dict[str, dict[str, Any]] = {
    "agentcompass": {},
    "agentcompass.benchmarks": {},
    "agentcompass.benchmarks.config": {
        "RuntimeBenchmarkConfig": RuntimeBenchmarkConfig,
        "config_field": config_field,
    },
    "agentcompass.runtime": {
        "BENCHMARKS": Registry(),
        "BaseBenchmark": BaseBenchmark,
        "PreparedTask": PreparedTask,
        "RunRequest": object,
        "RunResult": RunResult,
        "TaskInput": TaskInput,
        "TaskOutput": TaskOutput,
        "TaskSpec": TaskSpec,
    },
    "agentcompass.runtime.context": {"runtime_context": runtime_context},
    "agentcompass.runtime.metrics": {"make_metric_contract": make_metric_contract},
    "agentcompass.runtime.models": {"TaskStatus": TaskStatus},
    "agentcompass.runtime.results": {},
    "agentcompass.runtime.results.layout": {"RunLayout": RunLayout},
}
