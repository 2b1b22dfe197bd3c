"""The evaluators: upstream's numbers under upstream's names, and ours beside them."""

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opencompass.openicl.icl_evaluator import BaseEvaluator
from opencompass.registry import ICL_EVALUATORS

from gta_bench.metrics.compat import end_to_end as compat_end_to_end
from gta_bench.metrics.compat import steps as compat_steps
from gta_bench.metrics.strict import end_to_end as strict_end_to_end
from gta_bench.metrics.strict import steps as strict_steps
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.steps import Trace, read_trace
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.workflow import WorkflowTask
from gta_bench.similarity.catalog import load_similarity
from gta_bench_opencompass.datasets import OUTPUT

# Our names and upstream's.
STEP_NAMES = {
    "inst_acc": "inst_align",
    "tool_acc": "tool_acc",
    "arg_acc": "arg_acc",
    "summ_acc": "answer_acc",
    "tool_call": "tool_call",
    "tool_call_error": "tool_call_error",
}
END_NAMES = {
    "ans_acc": "answer_acc",
    "ans_acc_i": "answer_acc_w_imggen",
    **{name: name for name in ("p_f1", "o_f1", "l_f1", "c_f1", "tool_call", "tool_call_error")},
}
# Upstream's own model; `wordllama` and `exact-or-half` need no download.
SIMILARITY = "all-mpnet-base-v2"


class _AtomicEvaluator(BaseEvaluator):
    """Both scorings of stored predictions."""

    def __init__(self, similarity: str = SIMILARITY, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._similarity = load_similarity(similarity).measure

    def _scored(
        self,
        compat: Any,
        strict: Any,
        pairs: Sequence[tuple[AtomicTask, Trace, Trace]],
        names: Mapping[str, str],
    ) -> dict[str, float]:
        theirs = compat.pool(
            compat.count_task(trace, gold, task.answer, similarity=self._similarity)
            for task, trace, gold in pairs
        )
        ours = strict.pool(
            strict.count_task(task, trace, similarity=self._similarity) for task, trace, _ in pairs
        )
        found = {upstream: getattr(theirs, name) for name, upstream in names.items()}
        found |= {f"strict_{name}": getattr(ours, name) for name in names}
        return {name: value for name, value in found.items() if value is not None}


@ICL_EVALUATORS.register_module()
class GTAStepEvaluator(_AtomicEvaluator):
    """GTA-Atomic step by step."""

    def score(self, predictions: list[Any], gold: list[Any], test_set: Any) -> dict[str, float]:
        """InstAcc, ToolAcc, ArgAcc and SummAcc."""
        pairs = [
            (AtomicTask.model_validate_json(row[OUTPUT]), read_trace(steps), read_trace(wanted))
            for row, steps, wanted in zip(test_set, predictions, gold, strict=True)
        ]
        return self._scored(compat_steps, strict_steps, pairs, STEP_NAMES)


@ICL_EVALUATORS.register_module()
class GTAEndToEndEvaluator(_AtomicEvaluator):
    """GTA-Atomic end to end; only the first user turn counts, and there is only one."""

    def score(self, predictions: list[Any], gold: list[Any], test_set: Any) -> dict[str, float]:
        """AnsAcc, AnsAcc+I and F1 by tool category."""
        pairs = [
            (
                AtomicTask.model_validate_json(row[OUTPUT]),
                read_trace(steps[0]),
                read_trace(wanted[0]),
            )
            for row, steps, wanted in zip(test_set, predictions, gold, strict=True)
        ]
        return self._scored(compat_end_to_end, strict_end_to_end, pairs, END_NAMES)


@ICL_EVALUATORS.register_module()
class GTAWorkflowEvaluator(BaseEvaluator):
    """GTA-Workflow by gta-bench's judge, which sees every deliverable.

    Judges are asked by `gta`, which lives in an environment of its own: `gta` is its path, `judge`
    the model, `data` the dataset's folder, `options` what else `gta score` takes.
    """

    def __init__(
        self, gta: str, judge: str, data: str, options: Sequence[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.gta = gta
        self.judge = judge
        self.data = data
        self.options = list(options)

    def score(
        self, predictions: list[Any], attached_files: list[Any], test_set: Any
    ) -> dict[str, Any]:
        """Root Score, Root SR and Leaf SR, with how many tasks have a root."""
        with tempfile.TemporaryDirectory(prefix="gta-oc-") as place:
            tasks = []
            for row, steps, files in zip(test_set, predictions, attached_files, strict=True):
                task = WorkflowTask.model_validate_json(row[OUTPUT])
                _deliver(Path(place) / "done" / task.id, task, steps[0], files)
                tasks.append(task.id)
            run = str(Path(place) / "run")
            chosen = ["--data", self.data, "--tasks", ",".join(tasks), "--out", run]
            done = str(Path(place) / "done")
            self._call("import", "folder", done, "--dataset", "workflow", *chosen)
            scores = json.loads(
                self._call("score", run, "--judge", self.judge, "--json", *self.options)
            )
        (table,) = scores["judges"]
        names = ("root_score", "root_sr", "leaf_sr", "n", "n_units")
        found = {name: table["strict"][name] for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def _call(self, *command: str) -> str:
        result = subprocess.run([self.gta, *command], capture_output=True, text=True, check=False)
        # 1 says that something has no score: n of n_units tells how much.
        if result.returncode not in (0, 1):
            raise RuntimeError(f"gta {command[0]}: {result.stderr.strip()}")
        return result.stdout


def _deliver(folder: Path, task: WorkflowTask, steps: Any, files: Sequence[str]) -> None:
    """A task's folder as `gta import folder` reads it."""
    (folder / "files").mkdir(parents=True)
    answer = WorkflowUnit(task=task, trace=read_trace(steps)).answer
    (folder / "final.txt").write_text(answer, encoding="utf-8")
    for file in files:
        (folder / "files" / Path(file).name).write_bytes(Path(file).read_bytes())
