"""What runs of both datasets are asked for: one system, a selection of tasks, its tools."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gta_bench.agents.loop import MAX_TURNS
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.product import Product
from gta_bench.records.run import OWN_TOOLS, Images, Limits, System
from gta_bench.settings import Settings
from gta_bench.tasks.evaluation import described_system, package_versions
from gta_bench.tasks.models import ChosenModel
from gta_bench.tasks.tooling import PLAIN, Tooling


@dataclass(frozen=True, kw_only=True)
class SystemRun:
    """What to run: one system on a selection of a dataset's tasks.

    The system is a model with an agent, a harness or a product.
    """

    data: Path
    model: ChosenModel
    agent: str
    images: Images
    tasks: str | None
    epochs: int
    settings: Settings
    max_turns: int = MAX_TURNS
    tooling: Tooling = PLAIN
    product: Product | None = None
    harness: Harness | None = None

    @property
    def loops(self) -> bool:
        """Whether an agent of ours decides turn by turn."""
        return self.harness is None and self.product is None


def manifest_fields(run: SystemRun) -> dict[str, Any]:
    """What the manifest says of a run's system and tools, whatever the dataset."""
    return {
        "system": _system(run),
        "epochs": run.epochs,
        "packages": package_versions() | _drivers(run.harness),
        "network": None if run.harness is None else run.harness.network,
        "max_turns": run.max_turns if run.loops else None,
        "limits": _limits(run),
        **(run.tooling.planned() if run.product is None else {"tools": OWN_TOOLS}),
    }


def _drivers(harness: Harness | None) -> dict[str, str]:
    """What drives a harness that Inspect knows."""
    if harness is None or harness.kind != "named":
        return {}
    from gta_bench.harnesses.named import DRIVER, driver_version

    return {DRIVER: driver_version()}


def _limits(run: SystemRun) -> Limits | None:
    if run.product is not None:
        return Limits(seconds=run.product.seconds)
    return None if run.harness is None else run.harness.bounds


def _system(run: SystemRun) -> System:
    if run.product is None:
        return described_system(run.model, run.agent, run.images, run.harness)
    # A replay needs no tool at all, so runs of our agents import nothing of foreign systems.
    from gta_bench.tasks.product import product_system

    return product_system(run.product)
