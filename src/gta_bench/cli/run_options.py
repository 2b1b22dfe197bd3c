"""The options of `gta run` for both datasets, and the runs that they describe."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

import click
from click.core import ParameterSource

from gta_bench.agents.catalog import CATALOG, DEFAULT_AGENT
from gta_bench.agents.generation import (
    NAMED,
    add_generation,
    parse_model_args,
    read_generate_config,
)
from gta_bench.agents.models import NO_MODEL, ChosenModel, choose_model
from gta_bench.cli.harness import harness_options, read_harness
from gta_bench.cli.options import (
    FILE,
    STORE_PATH,
    Positive,
    backend_options,
    combine_options,
    command_settings,
    option_in,
    preflight_option,
    setting_option,
)
from gta_bench.cli.output import say
from gta_bench.datasets.selection import Selection
from gta_bench.errors import UsageError
from gta_bench.harnesses.choice import Harness
from gta_bench.records.run import (
    DEFAULT_CALLS,
    DEFAULT_TURNS,
    DatasetName,
    RunMode,
)
from gta_bench.running import planning
from gta_bench.running.backends.backend import Backend, open_backend
from gta_bench.running.estimate import ENOUGH_UNITS, UsageRange, estimate_run
from gta_bench.running.leases import count_useful_workers
from gta_bench.running.planning import PlannedRun, SystemOptions, needs_model, uses_own_tools
from gta_bench.runs.directory import MANIFEST
from gta_bench.runs.store import StorePath
from gta_bench.serving.choice import LOCAL, TOKEN_VARIABLE
from gta_bench.settings import ReasoningEffort, Settings
from gta_bench.tools.offering import list_own_tools

if TYPE_CHECKING:
    # Judging imports what renders evidence, and Atomic runs have no judge.
    from gta_bench.running.judge_run import Judging

# The values of a command's options, by parameter name.
Options = Mapping[str, Any]
# Scores these tasks of a run, with the backend and settings of a command; whether a limit of the
# budget stopped it.
ScoreTasks = Callable[[tuple[str, ...], Backend, Settings], bool]


class PartwiseRun(NamedTuple):
    """A planned run whose tasks another command runs part by part, and what scores a part.

    `judges` are the names of those who score its units; the scores of the first one count.
    """

    run: PlannedRun
    settings: Settings
    judging: "Judging | None"
    judges: tuple[str, ...]
    score: ScoreTasks

    @property
    def judge(self) -> str | None:
        """The judge whose scores count; None if nothing is judged."""
        return next(iter(self.judges), None)


BUDGET = ("max_connections", "rpm", "max_retries", "timeout", "cost_usd", "hours")

system_option, task_option = option_in("System"), option_in("Tasks")
run_option, call_option = option_in("Run"), option_in("Model calls")
tool_option = option_in("Tools")
run_setting = partial(setting_option, group="Run")
call_setting = partial(setting_option, group="Model calls")

run_options = combine_options(
    system_option(
        "--model",
        "models",
        multiple=True,
        help="The model: provider/model, or a name from [models] in gta.toml. Repeat it to run "
        "several models, each in its own folder below --out.",
    ),
    system_option(
        "--agent",
        default=DEFAULT_AGENT,
        help="The agent that drives the model: toolcalling, react, react-upstream or your own "
        "pkg.mod:function. Without a model: silent, or gold (GTA-Atomic only).",
    ),
    run_option("--out", type=STORE_PATH, required=True, help="Run folder, or s3://…."),
    task_option("--tasks", help="Tasks by position (0:10) or by id (3,5,7).", show_default="all"),
    task_option("--task", "ids", multiple=True, metavar="ID", help="One task by id; repeatable."),
    task_option("--limit", type=click.IntRange(1), help="Only the first N tasks."),
    task_option(
        "--sample",
        type=click.IntRange(1),
        help="A stratified random sample of N tasks. With the same seed, a larger sample contains "
        "a smaller one.",
    ),
    task_option("--sample-seed", type=int, show_default="0", help="Seed for --sample."),
    task_option(
        "--epochs", type=click.IntRange(1), default=1, help="Number of times to run each task."
    ),
    system_option(
        "--images",
        type=click.Choice(["path", "attached"]),
        default="path",
        help="Show the model the paths of images, as in published runs, or attach the images.",
    ),
    system_option(
        "--max-turns",
        type=click.IntRange(1),
        default=DEFAULT_TURNS,
        help="Maximum number of model replies per task, and per feedback round.",
    ),
    system_option(
        "--max-calls",
        type=click.IntRange(1),
        default=DEFAULT_CALLS,
        help="Maximum number of tool calls per reply; each further call gets an error.",
    ),
    call_setting("--temperature", "models.temperature", type=click.FloatRange(0)),
    call_setting("--top-p", "models.top_p", type=click.FloatRange(0, 1, min_open=True)),
    call_setting("--top-k", "models.top_k", type=click.IntRange(1)),
    call_setting("--presence-penalty", "models.presence_penalty", type=click.FloatRange(-2, 2)),
    call_setting("--max-tokens", "models.max_tokens", type=click.IntRange(1)),
    call_setting("--seed", "models.seed", type=int),
    call_setting("--stop", "models.stop", multiple=True),
    call_setting(
        "--reasoning-effort",
        "models.reasoning_effort",
        type=click.Choice(get_args(ReasoningEffort)),
    ),
    call_option(
        "--generate-config",
        type=FILE,
        help="YAML or JSON file with further options of Inspect's GenerateConfig.",
    ),
    call_option(
        "-M",
        "model_args",
        multiple=True,
        metavar="NAME=VALUE",
        help="Argument for the model's provider, as in `inspect eval -M`; repeatable.",
    ),
    call_setting("--max-connections", "budget.max_connections", type=click.IntRange(1)),
    call_setting("--rpm", "budget.rpm", type=click.IntRange(1)),
    call_setting("--max-retries", "budget.max_retries", type=click.IntRange(0)),
    call_setting("--timeout", "budget.timeout", type=click.IntRange(1)),
    run_setting("--max-cost", "budget.cost_usd", type=Positive()),
    run_setting("--max-hours", "budget.hours", type=Positive()),
    run_option(
        "--estimate",
        "only_estimate",
        is_flag=True,
        help="Only estimate the calls, tokens and cost that remain; send and write nothing.",
    ),
    preflight_option,
    backend_options,
    tool_option(
        "--tools",
        default=LOCAL,
        help="Which tools to call: local, or a server at http://…, mcp+http://… or "
        f"agentlego+http://…, whose token is read from {TOKEN_VARIABLE}.",
    ),
    tool_option(
        "--tool-server",
        "tool_servers",
        multiple=True,
        metavar="NAME",
        help="Also offer the tools of this MCP server to every task: a name from [tool_servers] in "
        "gta.toml or from .mcp.json; repeatable.",
    ),
    tool_option("--tape", type=STORE_PATH, help="Folder of recorded tool calls, or s3://…."),
    tool_option(
        "--tape-mode",
        type=click.Choice(["live", "record", "replay", "replay-else-live"]),
        show_default="replay",
        help="How to use --tape.",
    ),
    tool_option(
        "--control",
        "controls",
        multiple=True,
        help="Run under a control condition: no-tools, corrupt-replies, faults=RATE or "
        "distractors=COUNT; repeatable.",
    ),
    tool_option("--control-seed", type=int, default=0, help="Random seed for --control."),
    harness_options,
)


def run_settings(overrides: Options, options: Options) -> Settings:
    """Read the settings of a run; its options override the settings file."""
    return command_settings({**overrides, **{f"budget.{name}": options[name] for name in BUDGET}})


def plan_runs(
    dataset: DatasetName,
    mode: RunMode,
    settings: Settings,
    options: Options,
    judges: tuple[str, ...] = (),
) -> list[PlannedRun]:
    """Plan one run for each model; raise UsageError for what cannot run, before any write."""
    harness = read_harness(options)
    source = click.get_current_context().get_parameter_source("agent")
    if harness is not None and source is ParameterSource.COMMANDLINE:
        raise UsageError("--agent and a harness exclude each other: leave one of them out.")
    targets = [
        (out, _apply_generation(model, options))
        for out, model in _choose_targets(settings, options, harness)
    ]
    chosen = cast(SystemOptions, options)
    names = ("tasks", "ids", "limit", "sample", "sample_seed")
    runs, loaded = planning.plan_runs(
        dataset,
        mode,
        targets,
        chosen,
        settings=settings,
        tasks=Selection(*(options[name] for name in names)),
        harness=harness,
        judges=judges,
    )
    if uses_own_tools(chosen) and mode != "step":
        tasks = runs[0].manifest.spec.tasks
        used = {name for task in tasks for name in list_own_tools(loaded, loaded.tasks[task])}
        _report_missing_tools(used, settings)
    return runs


def _choose_targets(
    settings: Settings, options: Options, harness: Harness | None
) -> list[tuple[StorePath, ChosenModel]]:
    """Return a run folder for each model: --out itself, or folders below it for several."""
    out, models, agent = options["out"], options["models"], options["agent"]
    if not needs_model(agent, harness, given=bool(models)):
        return [(out, NO_MODEL)]
    chosen = [choose_model(name, settings) for name in models]
    if len(chosen) == 1:
        return [(out, chosen[0])]
    names = [re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-.") for name in models]
    if len(set(names)) < len(names):
        raise UsageError("Two --model options name the same model; remove one.")
    if (out / MANIFEST).is_file():
        raise UsageError(
            f"--out {out} is already a run, but several models need a parent folder for their "
            "runs: choose another --out."
        )
    return [(out / name, model) for name, model in zip(names, chosen, strict=True)]


def _apply_generation(model: ChosenModel, options: Options) -> ChosenModel:
    """Apply generation options; a flag overrides --generate-config, both override gta.toml."""
    flags = {
        name: list(options[name]) if name == "stop" else options[name]
        for name in NAMED.values()
        if options[name] not in (None, ())
    }
    file, args = options["generate_config"], parse_model_args(options["model_args"])
    if not (flags or file or args):
        return model
    if model == NO_MODEL:
        raise UsageError(
            "This system does not use a model, so options such as --temperature, "
            "--generate-config and -M have no effect: leave them out."
        )
    own = model.settings
    if file is not None:
        config = read_generate_config(file)
        own = add_generation(own, f"--generate-config {file}", generate=config)
    own = add_generation(own, "The command line", generate=flags, args=args)
    return model._replace(settings=own)


def _report_missing_tools(names: Collection[str], settings: Settings) -> None:
    """Say which of these tools do not work here and how to fix it, before a model is paid for.

    The run continues without them: the agent gets an error when it calls one.
    """
    # Imported here because a replay needs no tools.
    from gta_bench.cli.tools import check_tools
    from gta_bench.tools.contract import Unavailable

    missing: dict[str, list[str]] = {}
    for name, state in check_tools(settings, names).items():
        if isinstance(state, Unavailable):
            missing.setdefault(state.fix, []).append(name)
    for fix, tools in sorted(missing.items()):
        say(f"Not available here: {', '.join(tools)}. {fix}")


def open_run_backend(
    runs: Sequence[PlannedRun], options: Options
) -> AbstractContextManager[Backend]:
    """Open the backend for the runs; say so if more workers do not make them faster."""
    workers = options["workers"] or 0
    units = sum(run.manifest.spec.units for run in runs)
    if workers > 1 and count_useful_workers(units, workers) < workers:
        say(
            f"One process is enough for {units} units, because it makes many model calls at once. "
            "--workers and --cluster help with thousands of units, or if tools or harnesses need "
            "whole cores."
        )
    return open_backend(options["workers"], options["cluster"])


def choose_single(runs: Sequence[PlannedRun]) -> PlannedRun:
    """Return the only run; raise UsageError if there are several."""
    if len(runs) != 1:
        raise UsageError("The gate decides about one run: use --model once.")
    return runs[0]


def say_estimate(run: PlannedRun, found: Sequence[UsageRange]) -> None:
    """Print the estimate of what remains of a run, for --estimate."""
    for one in found:
        say(str(one))
    if not found:
        say(
            f"{run.out}: nothing to estimate: no model is called, nothing remains to be done, or "
            f"a harness has fewer than {ENOUGH_UNITS} finished units."
        )


def estimate_before_start(run: PlannedRun, *, rounds: int = 0) -> list[UsageRange]:
    """Estimate a run before it starts; empty for a user's own agent, which would have to run."""
    if run.manifest.spec.system.agent not in (*CATALOG, "harness"):
        return []
    return estimate_run(run.manifest, run.resources, run.out, rounds=rounds)
