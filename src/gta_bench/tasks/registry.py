"""What the entry point `inspect_ai` finds; importing it registers the tasks by name."""

from gta_bench.judging.scripted import scripted
from gta_bench.tasks.atomic import atomic
from gta_bench.tasks.atomic_step import atomic_step
from gta_bench.tasks.harness import atomic_harness, atomic_step_harness, workflow_harness
from gta_bench.tasks.judging import judge_task
from gta_bench.tasks.workflow import workflow

__all__ = [
    "atomic",
    "atomic_harness",
    "atomic_step",
    "atomic_step_harness",
    "judge_task",
    "scripted",
    "workflow",
    "workflow_harness",
]
