"""A run: one system on one dataset, what held while it ran, and what came of each unit."""

from collections.abc import Mapping
from typing import Literal

from pydantic import AwareDatetime

from gta_bench.records.atomic import AtomicTask
from gta_bench.records.base import Record
from gta_bench.records.calls import CallRecord
from gta_bench.records.deliverables import Deliverable
from gta_bench.records.steps import AnswerStep, Trace
from gta_bench.records.tape import TapeUse
from gta_bench.records.workflow import WorkflowTask

DatasetName = Literal["atomic", "workflow"]
Mode = Literal["step", "end-to-end"]
RunMode = Literal["step", "end-to-end", "workflow"]
FeedbackLevel = Literal["pass-fail", "score", "reason"]
Images = Literal["path", "attached"]
Network = Literal["none", "tools", "open"]
# The tools of a system that was not run here, or that brings its own.
OWN_TOOLS = "own"

# What makes two runs different ones, beside their systems.
IDENTITY = (
    *("dataset", "dataset_digest", "mode", "tasks", "epochs", "prompts"),
    *("tools", "controls", "control_seed", "feedback", "network"),
)
# The same, where the older manifest knows of it: the first ones did not.
LATER_IDENTITY = ("max_turns", "limits")


class System(Record):
    """What is being measured: a model and the agent that drives it, or a harness.

    `harness` is a foreign system's name, its command or its function; `agent` is then `harness`.
    """

    model: str
    agent: str
    harness: str | None = None
    harness_version: str | None = None
    images: Images = "path"
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None


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


class RunManifest(Record):
    """`run.json`: everything one must know to repeat a run, or to compare it.

    `similarity` is the one that the scores inside the logs were made with. `tools` is `local`,
    the address of the server whose tools were called, or `own` where a system brought its own.
    `network` is what a harness could reach: our tools and its model alone, or everything; None
    where no foreign code ran. `max_turns` bounded the decisions of an agent of ours, `limits` the
    work of a foreign system.
    """

    format: Literal[1] = 1
    created: AwareDatetime
    dataset: DatasetName
    dataset_digest: str
    mode: RunMode
    system: System
    tasks: tuple[str, ...]
    epochs: int = 1
    prompts: Mapping[str, str] = {}
    packages: Mapping[str, str] = {}
    similarity: str = "wordllama"
    tools: str = "local"
    imported_from: str | None = None
    tape: TapeUse | None = None
    controls: tuple[str, ...] = ()
    control_seed: int = 0
    feedback: Feedback | None = None
    network: Network | None = None
    max_turns: int | None = None
    limits: Limits | None = None
    notes: tuple[str, ...] = ()

    def difference(self, other: "RunManifest") -> str | None:
        """The first thing that makes the two another run, or None where one continues the other."""
        for name in IDENTITY:
            if getattr(self, name) != getattr(other, name):
                return name
        for name in LATER_IDENTITY:
            if getattr(self, name) not in (None, getattr(other, name)):
                return name
        if not (other.tape is None if self.tape is None else self.tape.same_use(other.tape)):
            return "tape"
        for name in System.model_fields:
            if getattr(self.system, name) != getattr(other.system, name):
                return f"{name} {getattr(self.system, name)!r}"
        return None


class Usage(Record):
    """What a unit took; `cost_usd` is None where no price is known."""

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    retries: int = 0
    seconds: float = 0.0
    cost_usd: float | None = None


class UpstreamPair(Record):
    """Prediction and reference as an upstream file has them, with the paths of its machine."""

    trace: Trace
    gold: Trace


class Unit(Record):
    """One task in one epoch: its trace, or why there is none.

    Without `failure` a missing trace is the system's own fault; with it, it is unscored.
    """

    task: AtomicTask
    epoch: int = 1
    trace: Trace | None = None
    failure: str | None = None
    upstream: UpstreamPair | None = None
    usage: Usage = Usage()
    calls: tuple[CallRecord, ...] = ()
    models: tuple[str, ...] = ()


class WorkflowUnit(Record):
    """One Workflow task in one epoch: what the system did and delivered, or why nothing is known.

    With `failure` it is unscored through no fault of the system. Without it, an empty answer and no
    deliverable are the system's own, and are judged like any other. `strays` are names in the
    workspace that are no readable files.
    """

    task: WorkflowTask
    epoch: int = 1
    trace: Trace = ()
    deliverables: tuple[Deliverable, ...] = ()
    inputs: tuple[Deliverable, ...] = ()
    strays: tuple[str, ...] = ()
    failure: str | None = None
    usage: Usage = Usage()
    calls: tuple[CallRecord, ...] = ()
    models: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """The last answer to the user; upstream's crash texts that pose as one are none."""
        answers = [
            step.content
            for step in self.trace
            if isinstance(step, AnswerStep) and step.error is None
        ]
        return answers[-1] if answers else ""
