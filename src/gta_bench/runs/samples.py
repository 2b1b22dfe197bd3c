"""What an Inspect sample keeps of a unit: the task in its metadata, all else in its store."""

from collections.abc import Iterable, Mapping
from typing import Any

from inspect_ai.util import Store, StoreModel
from pydantic import BaseModel

from gta_bench.errors import UsageError
from gta_bench.records.calls import CallRecord
from gta_bench.records.digests import TaskDigests
from gta_bench.records.files import Deliverable
from gta_bench.records.steps import Trace
from gta_bench.records.units import StopKind, TaskT, UpstreamPair, Usage

# Keys of a sample's metadata.
TASK = "gta_task"
UPSTREAM = "gta_upstream"


class UnitData(BaseModel):
    """What a unit left behind.

    `steps` is None where no prediction was made. `messages` are those of the dialogue in JSON, as
    the model's provider gave them, with which a later round of feedback goes on; earlier versions
    kept the dialogue as `turns`. `stops` says how replies ended that did not end in the ordinary
    way. `usage` is what a foreign system states
    about itself; without it the usage follows from the sample's model calls. `digests` are missing
    in logs of the first versions.
    """

    steps: Trace | None = None
    calls: tuple[CallRecord, ...] = ()
    deliverables: tuple[Deliverable, ...] = ()
    inputs: tuple[Deliverable, ...] = ()
    strays: tuple[str, ...] = ()
    messages: tuple[dict[str, Any], ...] = ()
    turns: tuple[dict[str, Any], ...] = ()
    stops: tuple[StopKind, ...] = ()
    delivered: bool = True
    usage: Usage | None = None
    digests: TaskDigests | None = None


class UnitStore(StoreModel, UnitData):
    """The same, bound to the store of a sample: solvers write to `store_as(UnitStore)`.

    It is slow to read, as Inspect builds a validator each time that a field is read. Whoever reads
    many units uses `read_unit_data`.
    """


def read_unit_data(store: Iterable[tuple[str, Any]]) -> UnitData:
    """What a sample's store holds, in the form of this version or of the first ones.

    The first versions wrote plain keys (`gta_steps`), where `UnitStore` writes `UnitStore:steps`.
    """
    found = dict(store)
    values = {
        name: found[key]
        for name in UnitData.model_fields
        for key in (f"gta_{name}", f"{UnitStore.__name__}:{name}")
        if key in found
    }
    return UnitData.model_validate(values)


def write_unit_data(data: UnitData) -> dict[str, Any]:
    """The store of a sample that was not evaluated here."""
    store = Store()
    UnitStore(store=store, **dict(data))
    return dict(store.items())


def read_task(metadata: Mapping[str, Any], kind: type[TaskT]) -> TaskT:
    """The task of a sample, from its metadata."""
    if TASK not in metadata:
        raise UsageError(
            "The sample has no record of its task: another solver took the place of ours "
            "(`--solver`). Give the task an agent, `-T agent=pkg.mod:function`."
        )
    return kind.model_validate(metadata[TASK])


def read_upstream(metadata: Mapping[str, Any]) -> UpstreamPair | None:
    """The prediction and reference of an imported sample, as its file had them."""
    pair = metadata.get(UPSTREAM)
    return None if pair is None else UpstreamPair.model_validate(pair)
