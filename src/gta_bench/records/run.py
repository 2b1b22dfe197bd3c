"""A run: one system on one dataset, what held while it ran, and what came of each unit."""

from collections.abc import Mapping
from typing import Literal

from pydantic import AwareDatetime

from gta_bench.records.atomic import AtomicTask
from gta_bench.records.base import Record
from gta_bench.records.calls import CallRecord
from gta_bench.records.steps import Trace
from gta_bench.records.tape import TapeUse

DatasetName = Literal["atomic", "workflow"]
Mode = Literal["step", "end-to-end"]
Images = Literal["path", "attached"]


IDENTITY = (
    *("dataset", "dataset_digest", "mode", "tasks", "epochs", "prompts"),
    *("controls", "control_seed"),
)


class System(Record):
    """What is being measured: a model and the agent that drives it."""

    model: str
    agent: str
    images: Images = "path"
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None


class RunManifest(Record):
    """`run.json`: everything one must know to repeat a run, or to compare it.

    `similarity` is the one that the scores inside the logs were made with.
    """

    format: Literal[1] = 1
    created: AwareDatetime
    dataset: DatasetName
    dataset_digest: str
    mode: Mode
    system: System
    tasks: tuple[str, ...]
    epochs: int = 1
    prompts: Mapping[str, str] = {}
    packages: Mapping[str, str] = {}
    similarity: str = "wordllama"
    imported_from: str | None = None
    tape: TapeUse | None = None
    controls: tuple[str, ...] = ()
    control_seed: int = 0
    notes: tuple[str, ...] = ()

    def difference(self, other: "RunManifest") -> str | None:
        """The first thing that makes the two another run, or None where one continues the other."""
        for name in IDENTITY:
            if getattr(self, name) != getattr(other, name):
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
