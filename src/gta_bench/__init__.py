"""Measure how well LLM agents use real tools: GTA-Atomic and GTA-Workflow.

The functions of `gta_bench.api` can be used from here, too; they are imported on first use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
    from gta_bench.api import (
        CellLimits,
        GtaError,
        Harness,
        Settings,
        acall,
        acompare,
        aexport,
        ajudge,
        ameasure,
        areport,
        arun,
        ascore,
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
    "CellLimits",
    "GtaError",
    "Harness",
    "Settings",
    "acall",
    "acompare",
    "aexport",
    "ajudge",
    "ameasure",
    "areport",
    "arun",
    "ascore",
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
    """Import a name of the API on first use, so that importing the package is fast."""
    if name == "__version__":
        from importlib.metadata import version

        return version("gta-bench")
    if name not in __all__:
        raise AttributeError(f"module 'gta_bench' has no attribute {name!r}")
    from gta_bench import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
