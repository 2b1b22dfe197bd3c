"""The module of the entry point `inspect_ai`; importing it registers tasks, models and solvers."""

from gta_bench.judging import scripted
from gta_bench.tasks import atomic, harness, judging, workflow

__all__ = ["atomic", "harness", "judging", "scripted", "workflow"]
