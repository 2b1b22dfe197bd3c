"""What an Inspect sample stores of a unit: the task in its metadata, all else in its store."""

from collections.abc import Iterable, Mapping
from typing import Any

from inspect_ai.util import Store, StoreModel
from pydantic import BaseModel

from gta_bench.errors import UsageError
from gta_bench.records.calls import CallRecord
from gta_bench.records.digests import TaskDigests
from gta_bench.records.files import Deliverable
from gta_bench.records.steps import Trace
from gta_bench.records.tool_servers import ServerState
from gta_bench.records.units import StopKind, TaskT, UpstreamPair, Usage

# Keys of a sample's metadata.
TASK = "gta_task"
UPSTREAM = "gta_upstream"


class UnitData(BaseModel):
    """The results of a unit.

    `steps` is None if no prediction was made. `messages` is the dialogue in JSON, as the model's
    provider returned it; a later round of feedback continues it. Earlier versions stored the
    dialogue as `turns`. `stops` tells how replies ended that did not end normally. `usage` is what
    a harness states about itself; without it, usage follows from the sample's model calls.
    `digests` are missing in logs of the first versions.
    """

    steps: Trace | None = None
    calls: tuple[CallRecord, ...] = ()
    deliverables: tuple[Deliverable, ...] = ()
    inputs: tuple[Deliverable, ...] = ()
    strays: tuple[str, ...] = ()
    states: tuple[ServerState, ...] = ()
    messages: tuple[dict[str, Any], ...] = ()
    turns: tuple[dict[str, Any], ...] = ()
    stops: tuple[StopKind, ...] = ()
    delivered: bool = True
    usage: Usage | None = None
    digests: TaskDigests | None = None


class UnitStore(StoreModel, UnitData):
    """The same, bound to the store of a sample: solvers write to `store_as(UnitStore)`.

    Reading is slow, because Inspect builds a validator whenever a field is read. To read many
    units, use `read_unit_data`.
    """


def read_unit_data(store: Iterable[tuple[str, Any]]) -> UnitData:
    """Read a sample's store, in the form of this version or of the first ones.

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
    """Return the store of a sample that was not evaluated here."""
    store = Store()
    UnitStore(store=store, **dict(data))
    return dict(store.items())


def read_task(metadata: Mapping[str, Any], kind: type[TaskT]) -> TaskT:
    """Read the task of a sample from its metadata."""
    if TASK not in metadata:
        raise UsageError(
            "The sample has no record of its task: `--solver` replaced our solver. Pass an agent "
            "to the task instead: `-T agent=pkg.mod:function`."
        )
    return kind.model_validate(metadata[TASK])


def read_upstream(metadata: Mapping[str, Any]) -> UpstreamPair | None:
    """Read the prediction and reference of an imported sample, as in its file."""
    pair = metadata.get(UPSTREAM)
    return None if pair is None else UpstreamPair.model_validate(pair)
