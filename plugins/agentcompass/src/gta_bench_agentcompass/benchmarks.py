"""Both benchmarks: tasks for a harness, and grades for what it did."""

import asyncio
import shlex
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentcompass.benchmarks.config import RuntimeBenchmarkConfig, config_field
from agentcompass.runtime import (
    BENCHMARKS,
    BaseBenchmark,
    PreparedTask,
    RunRequest,
    RunResult,
    TaskInput,
    TaskOutput,
    TaskSpec,
)
from agentcompass.runtime.context import runtime_context
from agentcompass.runtime.metrics import make_metric_contract
from agentcompass.runtime.models import TaskStatus
from agentcompass.runtime.results.layout import RunLayout

from gta_bench.agents.calling import clean_text
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.model import Dataset
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import EnvironmentProblem, RunError, UsageError, WorkspaceDamaged
from gta_bench.metrics.strict.end_to_end import count_task
from gta_bench.metrics.table import primary
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.finished import CompassAttempt, ResultMeta
from gta_bench.records.steps import AnswerStep, MalformedStep, PredictedStep
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.similarity.catalog import load_similarity
from gta_bench_agentcompass.attempts import Attempt, write_attempt

HOST = "host_process"
SHOWN = 2000
Metrics = dict[str, bool | int | float]


@dataclass(slots=True)
class GTAConfig(RuntimeBenchmarkConfig):
    """Parameters of both benchmarks; without a tape and a server, a harness has its own tools."""

    data: str = config_field(default="", description="Folder of the dataset, or of task folders.")
    tape: str = config_field(default="", description="Tape whose replies the tools give.")
    server: str = config_field(default="", description="Address of `gta tools serve`.")

    def __post_init__(self) -> None:
        RuntimeBenchmarkConfig.__post_init__(self)
        if not Path(self.data or "/dev/null").is_dir():
            raise UsageError(f"`data` must be the folder of the dataset, not {self.data!r}.")
        if self.tape and self.server:
            raise UsageError("Tools come from a `tape` or from a `server`; remove one of them.")


@dataclass(slots=True)
class AtomicConfig(GTAConfig):
    """Parameters of GTA-Atomic."""

    similarity: str = config_field(
        default="wordllama", description="Text similarity, as in `gta score --similarity`."
    )


@dataclass(slots=True)
class WorkflowConfig(GTAConfig):
    """Parameters of GTA-Workflow."""

    judge: str = config_field(
        default="", description="Model for `gta score --judge`; empty if checks decide every leaf."
    )
    gta: str = config_field(default="gta", description="Command of gta-bench in its environment.")


class _GTABenchmark(BaseBenchmark):
    """What both have in common: an attempt from its workspace to its stored results."""

    parallel_attempts_safe = True
    collect_artifacts = False

    def __init__(self) -> None:
        self._datasets: dict[str, Dataset] = {}
        self._attempts: dict[tuple[str, int], Attempt] = {}

    def read_dataset(self, folder: str) -> Dataset:
        """Return the dataset in a folder."""
        raise NotImplementedError

    async def grade(self, config: Any, attempt: Attempt, stored: CompassAttempt) -> Metrics:
        """Return the metrics of an attempt whose results are stored."""
        raise NotImplementedError

    def load_tasks(self, req: RunRequest) -> list[TaskSpec]:
        """Return the tasks in the dataset's order; what they are graded by stays in the dataset."""
        tasks = self._dataset(req).tasks.values()
        return [TaskSpec(one.id, one.request, self.id, ground_truth=None) for one in tasks]

    async def prepare_task(
        self, task: TaskSpec, env: Any, req: RunRequest, plan: Any
    ) -> PreparedTask:
        """Open the workspace and the tools of an attempt."""
        if req.environment.id != HOST:
            raise UsageError(
                f"GTA runs in the environment {HOST!r}, not in {req.environment.id!r}: its tools "
                "and the harness share a folder of this machine."
            )
        config, number = self.build_config(req), _current_attempt()
        before = self._attempts.pop((task.task_id, number), None)
        if before is not None:
            await before.close()
        dataset = self._dataset(req)
        attempt = await Attempt.open(
            *(dataset, dataset.tasks[task.task_id], number), tape=config.tape, server=config.server
        )
        self._attempts[task.task_id, number] = attempt
        return PreparedTask(
            task_id=task.task_id,
            category=task.category,
            ground_truth=None,
            input=TaskInput(prompt=attempt.prompt, workspace=str(attempt.workspace.root)),
            output=TaskOutput(answer="the answer to the user"),
        )

    async def evaluate(
        self,
        task: TaskSpec,
        prepared: PreparedTask,
        result: RunResult,
        req: RunRequest,
        plan: Any,
        env: Any = None,
    ) -> RunResult:
        """Store what the harness did, and grade it; a fault of the tools leaves no grade."""
        key = (task.task_id, _current_attempt())
        attempt = self._attempts[key]
        if attempt.written is None:
            attempt.written = await _store(attempt, result, req)
        stored = CompassAttempt.model_validate_json(attempt.written.read_text(encoding="utf-8"))
        if stored.fault:
            raise RunError(stored.fault)
        result.metrics = await self.grade(self.build_config(req), attempt, stored)
        del self._attempts[key]
        return result

    def _dataset(self, req: RunRequest) -> Dataset:
        folder = self.build_config(req).data
        if folder not in self._datasets:
            self._datasets[folder] = self.read_dataset(folder)
        return self._datasets[folder]


@BENCHMARKS.register()
class GTAAtomic(_GTABenchmark):
    """GTA-Atomic, end to end. `score` is a task's part of the strict AnsAcc+I, 0 to 1."""

    id = "gta_atomic"
    description = "GTA-Atomic: real queries with real tools (https://arxiv.org/abs/2407.08713)."
    config_class = AtomicConfig
    metric_contract = make_metric_contract(
        primary="score", scalar=("score", "tool_calls", "tool_call_errors")
    )

    def read_dataset(self, folder: str) -> Dataset:
        """Return the dataset in a folder."""
        return load_atomic(Path(folder))

    async def grade(self, config: Any, attempt: Attempt, stored: CompassAttempt) -> Metrics:
        """Count the task as `gta score` does."""
        assert isinstance(attempt.task, AtomicTask)
        similarity = load_similarity(config.similarity).measure
        counts = count_task(attempt.task, stored.trace, similarity=similarity)
        value, most = primary("end-to-end").part(counts)
        return {
            "score": value / most,
            "tool_calls": counts.tool_call,
            "tool_call_errors": counts.tool_call_error,
        }


@BENCHMARKS.register()
class GTAWorkflow(_GTABenchmark):
    """GTA-Workflow and task folders. `score` is the root score of a task, 0 to 10."""

    id = "gta_workflow"
    description = "GTA-Workflow: long, open-ended tasks with deliverables, and tasks of your own."
    config_class = WorkflowConfig
    metric_contract = make_metric_contract(
        primary="score", scalar=("score", "leaf_success", "root_success")
    )

    def read_dataset(self, folder: str) -> Dataset:
        """Return the dataset in a folder."""
        return load_workflow(Path(folder))

    async def grade(self, config: Any, attempt: Attempt, stored: CompassAttempt) -> Metrics:
        """Import the attempt as a run of gta-bench, and score it there."""
        assert attempt.written is not None
        with tempfile.TemporaryDirectory(prefix="gta-grade-") as folder:
            run, data = f"{folder}/run", str(Path(config.data).resolve())
            source = [
                "agentcompass",
                str(attempt.written.parent.parent),
                "--attempt",
                str(attempt.number),
            ]
            which = ["--dataset", "workflow", "--data", data, "--tasks", attempt.task.id]
            await _run_gta(config.gta, "import", *source, *which, "--out", run)
            judge = ["--judge", config.judge] if config.judge else []
            said = await _run_gta(config.gta, "score", run, "--json", *judge)
        strict = WorkflowScores.model_validate_json(said).judges[-1].strict
        if strict.root_score is None or strict.root_sr is None or strict.leaf_sr is None:
            raise RunError(
                f"{strict.n_leaves - strict.leaves} of {strict.n_leaves} leaves have no score; "
                "name a `judge`, or start the run again."
            )
        return {
            "score": strict.root_score,
            "leaf_success": strict.leaf_sr,
            "root_success": strict.root_sr,
        }


def _current_attempt() -> int:
    context = runtime_context.get()
    assert context is not None, "AgentCompass binds it before it prepares a task"
    return context.attempt


async def _store(attempt: Attempt, result: RunResult, req: RunRequest) -> Path:
    """Write the trace and the files into AgentCompass's folder of the attempt."""
    context = runtime_context.get()
    assert context is not None
    steps: list[PredictedStep] = [*attempt.work.trace]
    answer = clean_text(str(result.final_answer or "")).strip()
    if result.status != TaskStatus.COMPLETED:
        reason = "; ".join(issue.message for issue in result.issues) or str(result.status.value)
        steps.append(MalformedStep(content=answer[-SHOWN:], reason=clean_text(reason)))
    elif answer:
        steps.append(AnswerStep(content=answer))
    broken = None if attempt.tools is None else attempt.tools.broken
    if isinstance(broken, WorkspaceDamaged):  # by the harness, which is graded by what it left
        steps.append(MalformedStep(content="", reason=str(broken)))
        broken = None
    stored = CompassAttempt(
        task=attempt.task.id,
        asks=attempt.asks,
        fault="" if broken is None else f"A tool of the task gave no reply: {broken}",
        attempt=attempt.number,
        trace=tuple(steps),
        calls=tuple(attempt.work.calls),
        meta=ResultMeta(
            started=attempt.started,
            finished=datetime.now(UTC),
            model=req.model.id,
            harness=req.harness.id,
        ),
    )
    folder = RunLayout(context.run_dir).attempt_dir(attempt.task.id, attempt.number, create=True)
    assert folder is not None
    file = await asyncio.to_thread(write_attempt, folder, stored, attempt.workspace.root)
    await attempt.close()
    return file


async def _run_gta(command: str, *arguments: str) -> bytes:
    """Return what a command of gta-bench prints; raises with its last line if it fails."""
    try:
        process = await asyncio.create_subprocess_exec(
            *shlex.split(command),
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except FileNotFoundError as exc:
        raise EnvironmentProblem(
            f"There is no command {command!r}; set `gta` to the one in gta-bench's environment."
        ) from exc
    said, errors = await process.communicate()
    if process.returncode != 0:
        last = errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise RunError(f"`gta {arguments[0]}` ended with status {process.returncode}: {last}")
    return said
