"""Which runs a command line asks for: one for each model."""

import re

from gta_bench.agents.catalog import WITHOUT_MODEL, load_agent
from gta_bench.agents.models import NO_MODEL, ChosenModel, choose_model
from gta_bench.errors import UsageError
from gta_bench.harnesses.choice import Harness
from gta_bench.runs.directory import MANIFEST
from gta_bench.runs.store import StorePath
from gta_bench.settings import Settings


def run_targets(
    out: StorePath,
    models: tuple[str, ...],
    agent: str,
    settings: Settings,
    harness: Harness | None = None,
) -> list[tuple[StorePath, ChosenModel]]:
    """A run for each model: in `out` itself, or in a folder of its own where there are several."""
    if harness is not None and harness.kind == "command" and not models:
        return [(out, NO_MODEL)]
    if harness is None:
        load_agent(agent)  # an unknown one is told first
    if harness is None and agent in WITHOUT_MODEL:
        if models:
            raise UsageError(f"Agent {agent!r} asks no model; leave --model out.")
        return [(out, NO_MODEL)]
    if not models:
        needs = f"Agent {agent!r}" if harness is None else f"Harness {harness.target!r}"
        raise UsageError(f"{needs} needs a model: --model provider/model.")
    chosen = [choose_model(name, settings) for name in models]
    if len(chosen) == 1:
        return [(out, chosen[0])]
    names = [re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-.") for name in models]
    if len(set(names)) < len(names):
        raise UsageError("The same --model is given twice.")
    if (out / MANIFEST).is_file():
        raise UsageError(f"{out} is a run; several models need a folder of runs: another --out.")
    return [(out / name, model) for name, model in zip(names, chosen, strict=True)]
