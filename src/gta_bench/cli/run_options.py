"""The options that `gta run` has for both datasets, and the runs that they describe."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import click

from gta_bench.agents.catalog import CATALOG, DEFAULT_AGENT, WITHOUT_MODEL, load_agent
from gta_bench.agents.models import NO_MODEL, ChosenModel, choose_model
from gta_bench.cli.generation import generation_options, with_generation
from gta_bench.cli.grouping import add_options, options_of
from gta_bench.cli.harness import harness_options
from gta_bench.cli.options import (
    PLACE,
    Positive,
    backend_options,
    config_path,
    from_settings,
    preflight_option,
)
from gta_bench.cli.output import say
from gta_bench.cli.tooling import read_tape_use, tell_missing_tools, tooling_options
from gta_bench.datasets.installed import dataset_root
from gta_bench.datasets.selection import Selection, choose_tasks
from gta_bench.errors import UsageError
from gta_bench.harnesses.choice import Harness
from gta_bench.records.plan import worthwhile_places
from gta_bench.records.run import (
    DEFAULT_CALLS,
    DEFAULT_TURNS,
    DatasetName,
    Images,
    LoopLimits,
    RunManifest,
    RunMode,
    RunSpec,
)
from gta_bench.records.tape import TapeMode
from gta_bench.running.backends.backend import Backend, open_backend
from gta_bench.running.estimate import ENOUGH_UNITS, UsageRange, estimate_run
from gta_bench.running.system_run import Resources, describe_system, plan_run, read_dataset
from gta_bench.runs.directory import MANIFEST
from gta_bench.runs.store import StorePath
from gta_bench.serving.choice import LOCAL
from gta_bench.settings import Settings, read_settings
from gta_bench.similarity.catalog import chosen_similarity
from gta_bench.tools.offering import own_tools


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


_Command = Callable[..., None]
BUDGET = ("max_connections", "max_retries", "timeout", "cost_usd", "hours")

of_system, of_tasks = options_of("System"), options_of("Tasks")
of_run, of_calls = options_of("Run"), options_of("Model calls")

OPTIONS = (
    of_system("--model", "models", multiple=True, help="provider/model or a name of gta.toml."),
    of_system(
        "--agent",
        default=DEFAULT_AGENT,
        show_default=True,
        help="toolcalling, react, react-upstream, silent or pkg.mod:function; gold for GTA-Atomic.",
    ),
    of_run("--out", type=PLACE, required=True, help="The run's folder, or s3://…."),
    of_tasks("--tasks", help="A range of positions (0:10) or a list of ids (3,5,7)."),
    of_tasks("--task", "ids", multiple=True, metavar="ID", help="One task; may be repeated."),
    of_tasks("--limit", type=click.IntRange(1), help="The first N tasks of the dataset."),
    of_tasks(
        "--sample",
        type=click.IntRange(1),
        help="A stratified sample of N tasks; a larger one of the same seed contains it.",
    ),
    of_tasks("--sample-seed", type=int, help="Seed of the sample; 0 unless given."),
    of_tasks("--epochs", type=click.IntRange(1), default=1, help="Times that every task is run."),
    of_system(
        "--images",
        type=click.Choice(["path", "attached"]),
        default="path",
        show_default=True,
        help="What the model is shown of images; published runs show paths.",
    ),
    of_system(
        "--max-turns",
        type=click.IntRange(1),
        default=DEFAULT_TURNS,
        show_default=True,
        help="Replies of the model in a task, and in each round of feedback.",
    ),
    of_system(
        "--max-calls",
        type=click.IntRange(1),
        default=DEFAULT_CALLS,
        show_default=True,
        help="Tool calls of one reply that are made; further ones are answered with an error.",
    ),
    generation_options,
    of_calls(
        "--max-connections",
        type=click.IntRange(1),
        show_default=from_settings("budget.max_connections"),
        help="Model calls at once, over all workers.",
    ),
    of_run(
        "--max-cost",
        "cost_usd",
        type=Positive(),
        show_default=from_settings("budget.cost_usd"),
        help="USD that the run may spend: then no more units begin.",
    ),
    of_run(
        "--max-hours",
        "hours",
        type=Positive(),
        show_default=from_settings("budget.hours"),
        help="Hours after which no more units begin.",
    ),
    of_calls(
        "--max-retries",
        type=click.IntRange(0),
        show_default=from_settings("budget.max_retries"),
        help="Retries of a failed model call.",
    ),
    of_calls(
        "--timeout",
        type=click.IntRange(1),
        show_default=from_settings("budget.timeout"),
        help="Seconds for one model call.",
    ),
    of_run(
        "--estimate",
        "only_estimate",
        is_flag=True,
        help="Say how many calls, tokens and dollars are left; send and write nothing.",
    ),
    preflight_option,
    backend_options,
    tooling_options,
    harness_options,
)


class PlannedRun(NamedTuple):
    """A run that a command asks for: its folder, its manifest, what it uses of this machine."""

    out: StorePath
    manifest: RunManifest
    resources: Resources


class PlannedRuns(NamedTuple):
    """All runs of a command, and where their units are evaluated."""

    runs: list[PlannedRun]
    settings: Settings
    workers: int | None
    cluster: str | None

    @contextmanager
    def backend(self) -> Iterator[Backend]:
        """Where the units are evaluated; a user who gains nothing from workers is told so."""
        units = sum(run.manifest.spec.units for run in self.runs)
        places = self.workers or 0
        if places > 1 and worthwhile_places(units, places) < places:
            say(
                f"{units} units are soon run by one process, which holds many model calls at once; "
                "--workers and --cluster are for thousands of units, or for tools and harnesses "
                "that need whole cores."
            )
        with open_backend(self.workers, self.cluster) as backend:
            yield backend


def run_options(command: _Command) -> _Command:
    """Give a command the shared options; `plan_runs` takes what they were set to."""
    return add_options(command, OPTIONS)


def say_estimate(run: PlannedRun, found: Sequence[UsageRange]) -> None:
    """Say what the rest of a run would take, for --estimate."""
    for one in found:
        say(str(one))
    if not found:
        say(
            f"{run.out}: nothing to estimate: no model of ours is asked, nothing is left, or a "
            f"harness has fewer than {ENOUGH_UNITS} finished units."
        )


def estimate_begun(run: PlannedRun, *, rounds: int = 0) -> list[UsageRange]:
    """What is said before a run begins; an agent of the user's own is not called for it."""
    if run.manifest.spec.system.agent not in (*CATALOG, "harness"):
        return []
    return estimate_run(run.manifest, run.resources, run.out, rounds=rounds)


def run_settings(
    config_file: str | None, overrides: Mapping[str, Any], options: Mapping[str, Any]
) -> Settings:
    """The settings under which a command runs: its options beat the settings file."""
    budget = {f"budget.{name}": options[name] for name in BUDGET}
    return read_settings(config_path(config_file), overrides={**overrides, **budget}).settings


def plan_runs(
    dataset: DatasetName,
    mode: RunMode,
    settings: Settings,
    *,
    judges: tuple[str, ...] = (),
    models: tuple[str, ...],
    agent: str,
    out: StorePath,
    tasks: str | None,
    ids: tuple[str, ...],
    limit: int | None,
    sample: int | None,
    sample_seed: int | None,
    epochs: int,
    images: Images,
    max_turns: int,
    max_calls: int,
    tools: str,
    tape: StorePath | None,
    tape_mode: TapeMode | Literal["live"] | None,
    controls: tuple[str, ...],
    control_seed: int,
    workers: int | None,
    cluster: str | None,
    harness: Harness | None,
    **others: Any,
) -> PlannedRuns:
    """A run for each model that the options name; refuses what cannot be run, before anything is.

    `others` are the options that went into the settings, or go into the model's.
    """
    live = tape is None or tape_mode == "live"
    plain = tools == LOCAL and live and not controls
    targets = run_targets(out, models, agent, settings, harness)
    if mode == "step":
        _check_step_mode(plain=plain, harness=harness)
    use = read_tape_use(tape, tape_mode)
    root = dataset_root(getattr(settings.data, dataset))
    loaded = read_dataset(dataset, root)
    chosen = choose_tasks(loaded, Selection(tasks, ids, limit, sample, sample_seed))
    runs = []
    for target, model in targets:
        resources = Resources(
            data=root,
            settings=settings,
            model=with_generation(model, others),
            tape=None if use is None else tape,
            harness=harness,
        )
        spec = RunSpec(
            dataset=dataset,
            mode=mode,
            system=describe_system(resources, agent, images),
            tasks=chosen,
            epochs=epochs,
            tools=tools,
            loop=LoopLimits(max_turns=max_turns, max_calls=max_calls),
            tape=use,
            controls=controls,
            control_seed=control_seed,
            judges=judges,
            similarity=chosen_similarity(settings.scoring),
        )
        runs.append(PlannedRun(target, plan_run(spec, resources, loaded, out=target), resources))
    if plain and mode != "step":
        used = {name for task in chosen for name in own_tools(loaded, loaded.tasks[task])}
        tell_missing_tools(used, settings)
    return PlannedRuns(runs, settings, workers, cluster)


def _check_step_mode(*, plain: bool, harness: Harness | None) -> None:
    if not plain:
        raise UsageError(
            "--tools, --tape and --control need --mode end-to-end: step mode calls no tool."
        )
    if harness is not None and harness.kind != "bridged":
        raise UsageError(
            "A harness needs --mode end-to-end: step mode asks a model, or a Python agent with "
            "`next_step` (--agent-bridge)."
        )
