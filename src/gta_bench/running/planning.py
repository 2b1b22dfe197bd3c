"""From the options of a run to its plan, for `gta run` and for `gta_bench.run` alike."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from inspect_ai.model import Model
from pydantic import ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from gta_bench.agents.catalog import DEFAULT_AGENT, WITHOUT_MODEL, load_agent
from gta_bench.agents.generation import add_generation, state_generation
from gta_bench.agents.models import NO_MODEL, ChosenModel, choose_model
from gta_bench.agents.own import AgentFunction, make_own_agent
from gta_bench.datasets.installed import dataset_root
from gta_bench.datasets.model import Dataset
from gta_bench.datasets.selection import Selection, choose_tasks
from gta_bench.errors import UsageError, suggest_name
from gta_bench.harnesses.choice import Harness, HarnessKind, parse_command
from gta_bench.judging.own import JudgeFunction
from gta_bench.records.run import (
    DEFAULT_CALLS,
    DEFAULT_TURNS,
    DatasetName,
    FeedbackLevel,
    Images,
    LoopLimits,
    Mode,
    RunManifest,
    RunMode,
    RunSpec,
)
from gta_bench.records.tape import TapeMode, TapeUse
from gta_bench.records.tool_servers import ServerPin
from gta_bench.records.tools import ALL_TOOLS
from gta_bench.running.shards import Listener
from gta_bench.running.stopping import run_apart
from gta_bench.running.system_run import Resources, describe_system, plan_run, read_dataset
from gta_bench.runs.store import RemotePath, StorePath, store_path
from gta_bench.serving.choice import LOCAL
from gta_bench.serving.tool_servers import choose_servers
from gta_bench.settings import Settings
from gta_bench.similarity.catalog import choose_similarity
from gta_bench.tape.storage import tape_use
from gta_bench.tasks.run_tools import list_servers, pin_tools
from gta_bench.tools.offering import find_server, list_own_tools

# A local folder or file, or an address such as s3://bucket/x.
Folder = str | Path | RemotePath
# The name of a model, an Inspect model, or a function.
AnyJudge = str | Model | JudgeFunction
_TapeMode = Literal["live"] | TapeMode
_Count = Annotated[int, Field(ge=1)]


class SystemOptions(TypedDict, total=False):
    """Options of a run that `gta run` and `gta_bench.run` have under the same names."""

    agent: str | AgentFunction
    images: Images
    limit: _Count | None
    sample: _Count | None
    sample_seed: int | None
    epochs: _Count
    max_turns: _Count
    max_calls: _Count
    tools: str
    tool_servers: Sequence[str]
    tape: Folder | None
    tape_mode: _TapeMode | None
    controls: Sequence[str]
    control_seed: int
    workers: _Count | None
    cluster: str | None


@with_config(ConfigDict(arbitrary_types_allowed=True, strict=True, extra="forbid"))
class RunOptions(SystemOptions, total=False):
    """The options of `gta_bench.run`; `DEFAULTS` has their defaults."""

    model: str | Model | None
    harness: str | Harness | None
    data: str | Path | None
    tasks: str | Sequence[str] | None
    judges: Sequence[AnyJudge]
    feedback_rounds: Annotated[int, Field(ge=0)]
    feedback: FeedbackLevel
    generate: Mapping[str, JsonValue] | None
    model_args: Mapping[str, JsonValue] | None
    settings: Settings | Mapping[str, JsonValue] | None
    listener: Listener | None
    preflight: bool


DEFAULTS: Final[RunOptions] = {
    "model": None,
    "agent": DEFAULT_AGENT,
    "harness": None,
    "data": None,
    "tasks": None,
    "limit": None,
    "sample": None,
    "sample_seed": None,
    "epochs": 1,
    "images": "path",
    "max_turns": DEFAULT_TURNS,
    "max_calls": DEFAULT_CALLS,
    "tools": LOCAL,
    "tool_servers": (),
    "tape": None,
    "tape_mode": None,
    "controls": (),
    "control_seed": 0,
    "judges": (),
    "feedback_rounds": 0,
    "feedback": "pass-fail",
    "generate": None,
    "model_args": None,
    "workers": None,
    "cluster": None,
    "settings": None,
    "listener": None,
    "preflight": True,
}


# What an argument that takes values of several types must be.
_WANTED: Final = {
    "data": "a folder",
    "harness": "a command or a Harness",
    "agent": "the name of an agent, or a function",
    "judges": "a list of names, Inspect models or functions",
    "listener": "a function that takes a RunProgress",
    "model": "the name of a model or an Inspect model",
    "settings": "Settings, or a dictionary such as {'budget.max_connections': 8}",
    "tape": "a folder",
    "tasks": "a range such as '0:10', or a list of ids such as ['3', '5']",
}


class PlannedRun(NamedTuple):
    """A run before it starts: its folder, its manifest, and local resources."""

    out: StorePath
    manifest: RunManifest
    resources: Resources


def check_options(given: RunOptions) -> RunOptions:
    """Return the options with the defaults of those not given; raise UsageError for a wrong one."""
    for name in given:
        if name not in DEFAULTS:
            raise UsageError(f"Unknown option {name!r}{suggest_name(name, [*DEFAULTS])}")
    try:
        TypeAdapter(RunOptions).validate_python(given)
    except ValidationError as exc:
        raise UsageError(_explain(exc)) from exc
    tasks = given.get("tasks")
    if tasks is not None and not tasks:
        raise UsageError(f"`tasks` is empty ({tasks!r}): leave it out to run all tasks.")
    if given.get("harness") is not None and "agent" in given:
        raise UsageError("`agent` and `harness` exclude each other. Use only one of them.")
    return {**DEFAULTS, **given}


def to_local_path(name: str, value: object) -> Path:
    """Return the path of a local file or folder; raise UsageError if this argument has none."""
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise UsageError(f"`{name}`: {value!r} is not a path: use a string or a Path.")
    return Path(value)


def flatten_settings(given: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return settings by dotted key, from such keys or from tables as in gta.toml.

    >>> flatten_settings({"budget": {"timeout": 60}, "judge.repeats": 3})
    {'budget.timeout': 60, 'judge.repeats': 3}
    """
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise UsageError(f"`settings` must be {_WANTED['settings']}, but is {given!r}.")
    found: dict[str, JsonValue] = {}
    for key, value in given.items():
        if "." in key:
            found[key] = value
        elif isinstance(value, Mapping):
            found |= {f"{key}.{name}": one for name, one in value.items()}
        else:
            raise UsageError(f"`settings`: {key!r} is no setting: write {{'table.key': value}}.")
    return found


def _explain(exc: ValidationError) -> str:
    """Say in one line which argument is wrong, and what it must be."""
    first = exc.errors()[0]
    name, value = str(first["loc"][0]), first["input"]
    wanted = first["msg"].removeprefix("Input should be ")
    wanted = wanted.replace("greater than or equal to", "at least").replace(
        "a valid integer", "an integer"
    )
    return f"`{name}` must be {_WANTED.get(name, wanted)}, but is {value!r}."


def plan_runs(
    dataset: DatasetName,
    mode: RunMode,
    targets: Sequence[tuple[StorePath, ChosenModel]],
    options: SystemOptions,
    *,
    settings: Settings,
    tasks: Selection,
    harness: Harness | None,
    judges: tuple[str, ...],
) -> tuple[list[PlannedRun], Dataset]:
    """Plan a run for each folder and model; raise UsageError for what cannot run."""
    if mode == "step":
        _check_step_mode(options, harness)
    use = _read_tape_use(options)
    root = dataset_root(getattr(settings.data, dataset), settings.datasets)
    loaded = read_dataset(dataset, root)
    chosen = choose_tasks(loaded, tasks)
    tape = None if use is None else find_tape(options)
    servers = [] if mode == "step" else _list_servers(loaded, chosen, options["tool_servers"])
    if servers and (use is None or use.mode != "replay"):
        settings = choose_servers(settings, servers)
    pins = run_apart(pin_tools(servers, settings, use, tape)) if servers else {}
    _check_server_tools(loaded, chosen, pins)
    agent = options["agent"]
    own = None if isinstance(agent, str) else make_own_agent(agent)
    name = own.name if own is not None else str(agent)
    runs = []
    for out, model in targets:
        resources = Resources(
            data=root,
            settings=settings,
            model=model,
            tape=tape,
            agent=own,
            harness=harness,
        )
        spec = RunSpec(
            dataset=dataset,
            mode=mode,
            system=describe_system(resources, name, options["images"]),
            tasks=chosen,
            epochs=options["epochs"],
            tools=options["tools"],
            loop=LoopLimits(max_turns=options["max_turns"], max_calls=options["max_calls"]),
            tape=use,
            controls=tuple(options["controls"]),
            control_seed=options["control_seed"],
            judges=judges,
            similarity=choose_similarity(settings.scoring),
            tool_servers=tuple(options["tool_servers"]),
            server_pins=pins,
        )
        runs.append(PlannedRun(out, plan_run(spec, resources, loaded, out=out), resources))
    return runs, loaded


def _list_servers(dataset: Dataset, tasks: Sequence[str], more: Sequence[str]) -> list[str]:
    """Return the tool servers that the tasks or the run name."""
    lists = (list_own_tools(dataset, dataset.tasks[task]) for task in tasks)
    return list(dict.fromkeys([*more, *(name for one in lists for name in list_servers(one))]))


def _check_server_tools(
    dataset: Dataset, tasks: Sequence[str], pins: Mapping[str, ServerPin]
) -> None:
    """Raise UsageError for a task that names a tool which its server does not have."""
    for task in tasks if pins else ():
        for name, spec in list_own_tools(dataset, dataset.tasks[task]).items():
            server = find_server(name, spec)
            if server is None or name.endswith(ALL_TOOLS) or name in pins[server].tools:
                continue
            known = sorted(pins[server].tools)
            raise UsageError(
                f"Task {task!r} names the tool {name!r}, but the tool server {server!r} has none "
                f"of that name{suggest_name(name, known)} It has: {', '.join(known)}."
            )


def plan_own_run(
    dataset: DatasetName,
    mode: Mode,
    out: StorePath,
    settings: Settings,
    options: RunOptions,
    judges: Sequence[str | Model],
) -> PlannedRun:
    """Plan the run of `gta_bench.run`; raise UsageError for options that do not fit together."""
    _check_judging(dataset, options)
    tasks, harness = options["tasks"], _choose_harness(options["harness"])
    one_by_one = () if tasks is None or isinstance(tasks, str) else tuple(tasks)
    runs, _ = plan_runs(
        dataset,
        mode if dataset == "atomic" else "workflow",
        [(out, _choose_model(options, harness, settings))],
        options,
        settings=settings,
        tasks=Selection(
            tasks if isinstance(tasks, str) else None,
            one_by_one,
            options["limit"],
            options["sample"],
            options["sample_seed"],
        ),
        harness=harness,
        judges=tuple(_judge_name(one, settings) for one in judges),
    )
    return runs[0]


def _check_judging(dataset: DatasetName, options: RunOptions) -> None:
    judges, rounds = options["judges"], options["feedback_rounds"]
    if dataset == "atomic" and (judges or rounds):
        raise UsageError("GTA-Atomic has no judge: leave `judges` and `feedback_rounds` out.")
    if rounds and len(judges) != 1:
        raise UsageError("`feedback_rounds` needs exactly one judge, whose verdicts are sent back.")
    if rounds and options["harness"] is not None:
        raise UsageError(
            "`feedback_rounds` works with built-in agents only, because a harness ends with its "
            "task: leave it out."
        )


def _judge_name(judge: str | Model, settings: Settings) -> str:
    return str(judge) if isinstance(judge, Model) else choose_model(judge, settings).name


def _choose_harness(harness: str | Harness | None) -> Harness | None:
    """Return the harness with its version; a text is a command."""
    if harness is None:
        return None
    chosen = Harness(kind="command", target=harness) if isinstance(harness, str) else harness
    if chosen.kind == "bridged":
        chosen = replace(chosen, network="open")
    return replace(chosen, version=chosen.version or find_version(chosen.kind, chosen.target))


def _choose_model(options: RunOptions, harness: Harness | None, settings: Settings) -> ChosenModel:
    model, generate, args = options["model"], options["generate"], options["model_args"]
    if (generate or args) and not isinstance(model, str):
        raise UsageError(
            "`generate` and `model_args` need a model that is given by name: "
            "model='provider/model'."
        )
    if not needs_model(options["agent"], harness, given=model is not None):
        return NO_MODEL
    if isinstance(model, Model):
        return describe_model(model)
    assert model is not None
    chosen = choose_model(model, settings)
    own = add_generation(chosen.settings, "run()", generate=generate, args=args)
    return chosen._replace(settings=own)


def describe_model(model: Model) -> ChosenModel:
    """Describe an open model as a manifest does."""
    return ChosenModel(str(model), state_generation(model))


def needs_model(agent: str | AgentFunction, harness: Harness | None, *, given: bool) -> bool:
    """Whether the system uses a model; raise UsageError if one is missing or has no use."""
    if harness is not None and harness.kind == "command" and not given:
        return False
    if harness is None:
        if not isinstance(agent, str):
            return given
        load_agent(agent)  # reports an unknown agent first
        if agent in WITHOUT_MODEL:
            if given:
                raise UsageError(f"Agent {agent!r} does not use a model; leave --model out.")
            return False
    if not given:
        needs = f"Agent {agent!r}" if harness is None else f"Harness {harness.target!r}"
        raise UsageError(f"{needs} needs a model: add --model provider/model.")
    return True


def uses_own_tools(options: SystemOptions) -> bool:
    """Whether tools are called here and now: no server, no replay and no control."""
    live = options["tape"] is None or options["tape_mode"] == "live"
    return options["tools"] == LOCAL and live and not options["controls"]


def find_tape(options: SystemOptions) -> StorePath | None:
    """Return the folder of the tape, if one was named."""
    tape = options["tape"]
    return store_path(tape) if isinstance(tape, str) else tape


def find_version(kind: HarnessKind, target: str) -> str | None:
    """Return a harness's installed version if it has one; raise if it cannot be loaded."""
    if kind == "named":
        from gta_bench.harnesses.named import read_installed_version

        return read_installed_version(target)
    if kind == "command":
        parse_command(target)
        return None
    from gta_bench.harnesses.in_process import load_function

    load_function(target)
    return None


def _check_step_mode(options: SystemOptions, harness: Harness | None) -> None:
    if not uses_own_tools(options) or options["tool_servers"]:
        raise UsageError(
            "--tools, --tool-server, --tape and --control need --mode end-to-end: step mode calls "
            "no tools."
        )
    if harness is not None and harness.kind != "bridged":
        raise UsageError(
            "A harness needs --mode end-to-end: step mode needs a model, or a Python agent with "
            "`next_step` (--agent-bridge)."
        )


def _read_tape_use(options: SystemOptions) -> TapeUse | None:
    """Return which tape to use and how, or None if tools are called live."""
    tape, mode = find_tape(options), options["tape_mode"]
    if tape is None and mode is not None:
        raise UsageError("--tape-mode needs a tape: add --tape FOLDER.")
    return None if tape is None or mode == "live" else tape_use(tape, mode or "replay")
