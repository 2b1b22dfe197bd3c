"""What the entry point `inspect_ai` finds; importing it registers the tasks by name."""

from gta_bench.tasks.atomic import atomic
from gta_bench.tasks.atomic_step import atomic_step

__all__ = ["atomic", "atomic_step"]
