"""The description of a run (one system on one dataset) and its manifest."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from pydantic import (
    AwareDatetime,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from gta_bench.errors import format_count
from gta_bench.records.base import Record
from gta_bench.records.tape import TapeUse
from gta_bench.records.tool_servers import ServerPin, describe_drift
from gta_bench.records.views import Displayed

DatasetName = Literal["atomic", "workflow"]
Mode = Literal["step", "end-to-end"]
RunMode = Literal["step", "end-to-end", "workflow"]
FeedbackLevel = Literal["pass-fail", "score", "reason"]
Images = Literal["path", "attached"]
Network = Literal["none", "tools", "open"]
Wording = Literal["own", "published"]
# The tools of a system that was not run here, or that has its own.
OWN_TOOLS = "own"
# The names of agents that were passed as Python functions begin with this.
OWN_AGENT: Final = "own:"
# The names of differences in the user's own code begin with this.
CODE: Final = "code."
DEFAULT_TURNS: Final = 10
# Far more than a reply needs; it stops replies that repeat themselves.
DEFAULT_CALLS: Final = 32


class Generation(Record):
    """Generation options of a model; None means the provider's default.

    `generate` has the other options of Inspect's GenerateConfig, and `args` the arguments of the
    model's provider.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None
    stop: tuple[str, ...] | None = None
    reasoning_effort: str | None = None
    generate: Mapping[str, JsonValue] = {}
    args: Mapping[str, JsonValue] = {}


class System(Generation):
    """What is being measured: a model and the agent that drives it, or a harness.

    `harness` is a foreign system's name, its command or its function; `agent` is then `harness`.
    `harness_digest` covers its files in the folder where `gta` ran, if it has any there. `code` has
    the digests of a user's own agent and of what it uses, by name; an agent that was passed as a
    Python function has a name that begins with `own:`.
    """

    model: str
    agent: str
    harness: str | None = None
    harness_version: str | None = None
    harness_digest: str | None = None
    images: Images = "path"
    code: Mapping[str, str] = {}

    @property
    def has_own_agent(self) -> bool:
        """Whether the agent is the user's own code: a function, or `pkg.mod:function`."""
        return ":" in self.agent


class LoopLimits(Record):
    """Limits of our agents on one task, and in each round of feedback.

    `max_turns` limits the replies of the model, `max_calls` the tool calls made for one reply.
    """

    max_turns: int = DEFAULT_TURNS
    max_calls: int = DEFAULT_CALLS


class Limits(Record):
    """Limits of a foreign system on one task; None means unlimited.

    `disk_bytes` and `disk_files` limit what it writes, `output_bytes` what it prints.
    """

    seconds: float
    cost_usd: float | None = None
    output_bytes: int | None = None
    disk_bytes: int | None = None
    disk_files: int | None = None
    memory_bytes: int | None = None
    processes: int | None = None


class Feedback(Record):
    """A later round of a run: what the system learns about the previous round, from which judge."""

    round: int
    level: FeedbackLevel
    judge: str


# Fields of a RunSpec that can differ without making it another run: every command that scores sets
# the judges and the similarity again.
_REPLACEABLE: Final = frozenset({"judges", "similarity"})
# Fields in which a run can grow: larger values extend it.
_GROWING: Final = frozenset({"tasks", "epochs", "server_pins"})
# Fields that the first manifests did not record; None there means unknown.
_UNRECORDED: Final = frozenset({"max_turns", "max_calls", "limits", "harness_digest", "wording"})


class SettingDifference(NamedTuple):
    """A setting in which two runs differ, with both values."""

    name: str
    mine: Any
    other: Any


class Growth(Record):
    """A command that extended the run: the tasks it added, and the number of epochs before it.

    >>> from datetime import UTC, datetime
    >>> Growth(when=datetime(2026, 11, 16, tzinfo=UTC), tasks=("20", "21"), epochs=1).tasks
    ('20', '21')
    """

    when: AwareDatetime
    tasks: tuple[str, ...]
    epochs: int


class RunSpec(Displayed, Record):
    """What is measured, and how: the single description of a run.

    The command line, the Python API and gta.toml build it and `run.json` stores it; resuming and
    comparing use it. A new option of a run is a field here (or in one of the records below), and by
    default another value means another run. Only more `tasks` and more `epochs` extend a run.

    `similarity` is the text model of the scores inside the logs. `tools` is `local`, the address of
    the tool server, or `own` if a system has its own. `network` is what a harness could reach: only
    our tools and its model, or the Internet; None if no foreign code ran. `loop` limits our own
    agents, `limits` a foreign system; each is None for the other. `judges` are the judge models
    named by the command that began the run; the judges that were used are in its verdicts.
    `wording` says whose prompts `react-upstream` used; None for other agents, and in the first
    manifests, where it was ours. `tool_servers` are the servers whose tools every task gets, and
    `server_pins` has the tools of all servers that are used.

    >>> RunSpec(
    ...     dataset="atomic",
    ...     mode="step",
    ...     system=System(model="openai/gpt-5", agent="toolcalling"),
    ...     tasks=("0", "1"),
    ... ).units
    2
    """

    dataset: DatasetName
    mode: RunMode
    system: System
    tasks: tuple[str, ...]
    epochs: int = 1
    tools: str = "local"
    network: Network | None = None
    loop: LoopLimits | None = None
    limits: Limits | None = None
    tape: TapeUse | None = None
    controls: tuple[str, ...] = ()
    control_seed: int = 0
    feedback: Feedback | None = None
    judges: tuple[str, ...] = ()
    similarity: str = "wordllama"
    wording: Wording | None = None
    tool_servers: tuple[str, ...] = Field(default=(), exclude_if=lambda servers: not servers)
    server_pins: Mapping[str, ServerPin] = Field(default={}, exclude_if=lambda pins: not pins)

    @property
    def units(self) -> int:
        """The number of units: every task in every epoch."""
        return len(self.tasks) * self.epochs

    def describe(self) -> str:
        """The system, the dataset and the number of tasks and epochs."""
        system = self.system
        mode = "" if self.mode == self.dataset else f" {self.mode}"
        who = system.harness or system.agent
        name = who if system.model == "none/none" else f"{system.model} · {who}"
        return (
            f"{name} on {self.dataset}{mode}: "
            f"{format_count(len(self.tasks), 'task')}, {format_count(self.epochs, 'epoch')}"
        )

    def difference(self, other: "RunSpec") -> SettingDifference | None:
        """The first difference that makes it another run; None if it continues or extends it."""
        for found in compare_specs(self, other):
            if found.name == "tape":
                differs = self.tape is None or not self.tape.same_use(other.tape)
            elif found.name == "server_pins":
                differs = bool(self.drift(other))
            elif found.name.startswith(CODE) and not self.system.code:
                differs = False  # recorded by later versions only
            else:
                unknown = found.mine is None and found.name in _UNRECORDED
                differs = found.name not in _REPLACEABLE | _GROWING and not unknown
            if differs:
                return found
        return None

    def drift(self, other: "RunSpec") -> list[str]:
        """How the tools of tool servers changed from this run to the other one, tool by tool."""
        return describe_drift(self.server_pins, other.server_pins)

    def extend(self, other: "RunSpec") -> "RunSpec":
        """This run with the tasks and epochs of the other one added.

        If the other one has all tasks, its order is used, so that an extended run lists its tasks
        like a run that had them from the beginning.
        """
        known = set(self.tasks)
        added = tuple(task for task in other.tasks if task not in known)
        whole = bool(added) and known <= set(other.tasks)
        tasks = other.tasks if whole else self.tasks + added
        pins = {**other.server_pins, **self.server_pins}
        return self.model_copy(
            update={
                "tasks": tasks,
                "epochs": max(self.epochs, other.epochs),
                "server_pins": dict(sorted(pins.items())),
            }
        )


# The key under which a log keeps the result of `state_run`.
STATEMENT: Final = "gta_run"


def state_run(spec: RunSpec, dataset_digest: str) -> dict[str, Any]:
    """The settings that every log records about its run, to detect a changed `run.json`.

    Leaves out what can change later: tasks, epochs, judges, similarity, and the digest of a tape
    that is still being recorded.
    """
    settings = spec.model_dump(mode="json", exclude={*_GROWING, *_REPLACEABLE})
    if spec.tape is not None and spec.tape.mode == "record":
        settings["tape"]["digest"] = None
    if not spec.system.code:
        del settings["system"]["code"]  # as earlier versions recorded it
    return {"dataset_digest": dataset_digest, **settings}


def compare_specs(one: RunSpec, two: RunSpec) -> Iterator[SettingDifference]:
    """Every setting in which the two differ, by name; those of the system come last."""
    for name in RunSpec.model_fields:
        left, right = getattr(one, name), getattr(two, name)
        if name == "loop":
            yield from _differences(LoopLimits, left, right)
        elif name != "system" and left != right:
            yield SettingDifference(name, left, right)
    yield from _differences(System, one.system, two.system)


def _differences(kind: type[Record], one: Any, two: Any) -> Iterator[SettingDifference]:
    for name in kind.model_fields:
        left, right = getattr(one, name, None), getattr(two, name, None)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            for key in sorted({*left, *right}):
                if left.get(key) != right.get(key):
                    yield SettingDifference(f"{name}.{key}", left.get(key), right.get(key))
        elif left != right:
            yield SettingDifference(name, left, right)


def show_setting(value: object) -> str:
    """A setting as a short text; digests are shortened."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {str(part)[:12]}" for name, part in sorted(value.items())) or "-"
    if isinstance(value, Limits):
        limits = value.model_dump(exclude_none=True)
        return ", ".join(f"{name} {most:g}" for name, most in limits.items())
    if isinstance(value, TapeUse):
        return f"{value.mode} {(value.digest or '')[:16]}".strip()
    if isinstance(value, tuple):
        return ", ".join(str(part) for part in value) or "none"
    return "none" if value is None else str(value)


class RunManifest(Displayed, Record):
    """`run.json`: what was run (`spec`), and everything else needed to repeat or compare it.

    In the file, the fields of `spec` are on the top level. `growth` has an entry for every command
    that extended the run. `dataset_tasks` is the number of tasks in the dataset, of which a run may
    have fewer; None if not recorded. `edited_from` is the digest of the dataset that was run, if
    the results were judged again with edited requirements. `shown` lists what a harness saw of the
    machine besides its task. `canaries` are lines of the dataset's files that no output may have.
    `study` has the SHA-256 digests of the study's file if the run is part of a study: more than one
    if the file was changed while the run grew.
    """

    format: Literal[1] = 1
    created: AwareDatetime
    spec: RunSpec
    dataset_digest: str
    dataset_tasks: int | None = None
    prompts: Mapping[str, str] = {}
    packages: Mapping[str, str] = {}
    imported_from: str | None = None
    edited_from: str | None = None
    notes: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    growth: tuple[Growth, ...] = ()
    canaries: tuple[str, ...] = Field((), exclude_if=lambda canaries: not canaries)
    study: tuple[str, ...] = Field(default=(), exclude_if=lambda study: not study)

    @model_validator(mode="before")
    @classmethod
    def _gather_spec(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "spec" in data:
            return data
        facts = dict(data)
        loop = {name: facts.pop(name) for name in LoopLimits.model_fields if name in facts}
        names = [name for name in RunSpec.model_fields if name in facts and name != "loop"]
        spec = {name: facts.pop(name) for name in names}
        spec["loop"] = None if loop.get("max_turns") is None else loop
        return {**facts, "spec": spec}

    @model_serializer(mode="wrap")
    def _spread_spec(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        facts = dump(self)
        spec = facts.pop("spec")
        loop = spec.pop("loop") or dict.fromkeys(LoopLimits.model_fields)
        return {**facts, **spec, **loop}

    def describe(self) -> str:
        """What was run, and when."""
        return f"{self.spec.describe()}, {self.created:%Y-%m-%d %H:%M}"

    def difference(self, other: "RunManifest") -> SettingDifference | None:
        """The first difference that makes it another run; None if it continues or extends it."""
        if self.imported_from != other.imported_from:
            return SettingDifference("imported_from", self.imported_from, other.imported_from)
        same = self.spec.dataset == other.spec.dataset
        if same and self.dataset_digest != other.dataset_digest:
            digests = self.dataset_digest[:12], other.dataset_digest[:12]
            return SettingDifference("dataset_digest", *digests)
        one, two = set(self.prompts.items()), set(other.prompts.items())
        prompts = SettingDifference("prompts", dict(one - two), dict(two - one))
        return self.spec.difference(other.spec) or (None if one == two else prompts)

    def extend(self, other: "RunManifest") -> "RunManifest":
        """This run with the tasks and epochs of the other one; unchanged if it has them all."""
        spec = self.spec.extend(other.spec)
        if spec == self.spec:
            return self
        known = set(self.spec.tasks)
        added = tuple(task for task in spec.tasks if task not in known)
        grown = Growth(when=other.created, tasks=added, epochs=self.spec.epochs)
        both = {
            name: tuple(dict.fromkeys((*getattr(self, name), *getattr(other, name))))
            for name in ("notes", "study")
        }
        return self.model_copy(update={"spec": spec, "growth": (*self.growth, grown), **both})

    def with_spec(self, **changes: Any) -> "RunManifest":
        """A copy with other values in its `spec`."""
        return self.model_copy(update={"spec": self.spec.model_copy(update=changes)})
