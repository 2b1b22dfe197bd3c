"""Measure how well LLM agents use real tools: GTA-Atomic and GTA-Workflow.

The names of `gta_bench.api` are names of this package too; they are imported when they are used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gta_bench.api import (
        GtaError,
        Settings,
        call,
        compare,
        export,
        judge,
        load,
        manifest,
        measure,
        report,
        run,
        score,
        tool_names,
        units,
        verdicts,
    )

__all__ = [
    "GtaError",
    "Settings",
    "call",
    "compare",
    "export",
    "judge",
    "load",
    "manifest",
    "measure",
    "report",
    "run",
    "score",
    "tool_names",
    "units",
    "verdicts",
]


def __getattr__(name: str) -> object:
    """One of the API's names; importing the package alone stays cheap."""
    if name not in __all__:
        raise AttributeError(f"module 'gta_bench' has no attribute {name!r}")
    from gta_bench import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return __all__
