"""A run: one system on one dataset, and what held while it ran."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from pydantic import (
    AwareDatetime,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from gta_bench.records.base import Record
from gta_bench.records.tape import TapeUse

DatasetName = Literal["atomic", "workflow"]
Mode = Literal["step", "end-to-end"]
RunMode = Literal["step", "end-to-end", "workflow"]
FeedbackLevel = Literal["pass-fail", "score", "reason"]
Images = Literal["path", "attached"]
Network = Literal["none", "tools", "open"]
Wording = Literal["own", "published"]
# The tools of a system that was not run here, or that brings its own.
OWN_TOOLS = "own"
DEFAULT_TURNS: Final = 10
# Far above what a reply needs; a reply that repeats itself ends there.
DEFAULT_CALLS: Final = 32


class Generation(Record):
    """How a model was asked to write; None leaves it to the provider.

    `generate` has the other options of Inspect's GenerateConfig, by their names there, and `args`
    the arguments of the model's provider.
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
    `harness_digest` is that of its files in the folder where `gta` ran, if it has any there.
    """

    model: str
    agent: str
    harness: str | None = None
    harness_version: str | None = None
    harness_digest: str | None = None
    images: Images = "path"


class LoopLimits(Record):
    """What bounds an agent of ours on one task, and in each round of feedback.

    `max_turns` counts replies of the model, `max_calls` the calls of one reply that are made.
    """

    max_turns: int = DEFAULT_TURNS
    max_calls: int = DEFAULT_CALLS


class Limits(Record):
    """What a foreign system might use on one task; None where nothing bounded it.

    Bytes and files are those that it might write, `output_bytes` what it might print.
    """

    seconds: float
    cost_usd: float | None = None
    output_bytes: int | None = None
    disk_bytes: int | None = None
    disk_files: int | None = None
    memory_bytes: int | None = None
    processes: int | None = None


class Feedback(Record):
    """A later round of a run: what of the round before went back to the system, and by whom."""

    round: int
    level: FeedbackLevel
    judge: str


# Fields of a RunSpec that can differ without making it another run: who judges and by which
# similarity the logs were scored is settled again by every command that scores.
_REPLACEABLE: Final = frozenset({"judges", "similarity"})
# Fields in which a run grows: more of them extend it.
_GROWING: Final = frozenset({"tasks", "epochs"})
# Fields that the first manifests did not record; None there says nothing.
_UNRECORDED: Final = frozenset({"max_turns", "max_calls", "limits", "harness_digest", "wording"})


class SettingDifference(NamedTuple):
    """A setting that makes two runs different ones: what each of them has."""

    name: str
    mine: Any
    other: Any


class Growth(Record):
    """A command that extended the run: which tasks it added, and the epochs before it.

    >>> from datetime import UTC, datetime
    >>> Growth(when=datetime(2026, 11, 16, tzinfo=UTC), tasks=("20", "21"), epochs=1).tasks
    ('20', '21')
    """

    when: AwareDatetime
    tasks: tuple[str, ...]
    epochs: int


class RunSpec(Record):
    """What is measured, and how: the one description of a run.

    The command line, the Python API and gta.toml build it, `run.json` stores it; resuming and
    comparing read it. A new option of a run is a field here (or in one of the records below), and
    by default another value of it is another run. Only more `tasks` and more `epochs` extend the
    run that is there.

    `similarity` is the one that the scores inside the logs were made with. `tools` is `local`,
    the address of the server whose tools were called, or `own` where a system brought its own.
    `network` is what a harness could reach: our tools and its model alone, or the outside; None
    where no foreign code ran. `loop` bounded an agent of ours, `limits` the work of a foreign
    system; each is None for the other. `judges` are the models that the command which began the
    run named as judges; who really judged is in the run's verdicts. `wording` says whose words
    `react-upstream` used; None for other agents, and in the first manifests, where it was ours.

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

    @property
    def units(self) -> int:
        """How many units the run has: every task in every epoch."""
        return len(self.tasks) * self.epochs

    def difference(self, other: "RunSpec") -> SettingDifference | None:
        """What makes the other one another run; None where it continues or extends this one."""
        for found in compare_specs(self, other):
            if found.name == "tape":
                if self.tape is None or not self.tape.same_use(other.tape):
                    return found
            elif found.name not in _REPLACEABLE | _GROWING and not (
                found.mine is None and found.name in _UNRECORDED
            ):
                return found
        return None

    def extend(self, other: "RunSpec") -> "RunSpec":
        """This run with the tasks and epochs of the other one too.

        Where the other one has all tasks, they take its order: a run that was extended lists them
        as one that had them from the beginning.
        """
        known = set(self.tasks)
        added = tuple(task for task in other.tasks if task not in known)
        whole = bool(added) and known <= set(other.tasks)
        tasks = other.tasks if whole else self.tasks + added
        return self.model_copy(update={"tasks": tasks, "epochs": max(self.epochs, other.epochs)})


# Where a log keeps what its run was: `state_run`.
STATEMENT: Final = "gta_run"


def state_run(spec: RunSpec, dataset_digest: str) -> dict[str, Any]:
    """What every log says of its run, so that `run.json` cannot say something else.

    Tasks and epochs grow, judges and similarity can be replaced, and a tape that is recorded has
    no digest yet.
    """
    said = spec.model_dump(mode="json", exclude={*_GROWING, *_REPLACEABLE})
    if spec.tape is not None and spec.tape.mode == "record":
        said["tape"]["digest"] = None
    return {"dataset_digest": dataset_digest, **said}


def compare_specs(one: RunSpec, two: RunSpec) -> Iterator[SettingDifference]:
    """Every option in which the two differ, by its name; those of the system come last."""
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
    """A setting in a few words; digests are cut."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {str(part)[:12]}" for name, part in sorted(value.items())) or "-"
    if isinstance(value, Limits):
        held = value.model_dump(exclude_none=True)
        return ", ".join(f"{name} {most:g}" for name, most in held.items())
    if isinstance(value, TapeUse):
        return f"{value.mode} {(value.digest or '')[:16]}".strip()
    if isinstance(value, tuple):
        return ", ".join(str(part) for part in value) or "none"
    return "none" if value is None else str(value)


class RunManifest(Record):
    """`run.json`: what was run (`spec`), and what else one must know to repeat or compare it.

    The file has the options of the run beside everything else, as it always had. `growth` has an
    entry for every command that extended the run. `dataset_tasks` is how many tasks the dataset
    has, of which a run may have fewer; None where that was not recorded. `edited_from` is the
    digest of the dataset that was run, where its work was judged again by edited requirements.
    `shown` is what a harness saw of the machine besides its task.
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

    def difference(self, other: "RunManifest") -> SettingDifference | None:
        """The first thing that makes the two another run; None where one extends the other."""
        same = self.spec.dataset == other.spec.dataset
        if same and self.dataset_digest != other.dataset_digest:
            digests = self.dataset_digest[:12], other.dataset_digest[:12]
            return SettingDifference("dataset_digest", *digests)
        return self.spec.difference(other.spec) or self._other_prompts(other)

    def _other_prompts(self, other: "RunManifest") -> SettingDifference | None:
        one, two = set(self.prompts.items()), set(other.prompts.items())
        return (
            None if one == two else SettingDifference("prompts", dict(one - two), dict(two - one))
        )

    def extend(self, other: "RunManifest") -> "RunManifest":
        """This run with the tasks and epochs of the other one; itself where it has them all."""
        spec = self.spec.extend(other.spec)
        if spec == self.spec:
            return self
        known = set(self.spec.tasks)
        added = tuple(task for task in spec.tasks if task not in known)
        grown = Growth(when=other.created, tasks=added, epochs=self.spec.epochs)
        notes = dict.fromkeys((*self.notes, *other.notes))
        return self.model_copy(
            update={"spec": spec, "growth": (*self.growth, grown), "notes": tuple(notes)}
        )

    def with_spec(self, **changes: Any) -> "RunManifest":
        """The manifest with other options."""
        return self.model_copy(update={"spec": self.spec.model_copy(update=changes)})
