"""What a sample keeps of a unit survives the log that Inspect writes."""

from pathlib import Path
from typing import Any, get_args

import pytest
from inspect_ai.log import read_eval_log
from pydantic import BaseModel, JsonValue

from gta_bench.datasets.atomic import load_atomic
from gta_bench.records.steps import CallStep
from gta_bench.records.units import AtomicUnit
from gta_bench.runs.directory import log_folder, open_run
from gta_bench.runs.imported import write_imported
from gta_bench.runs.logs import list_logs, read_units
from gta_bench.runs.samples import UnitData, UnitStore
from tests.builders import manifest, write_atomic


@pytest.mark.parametrize("arguments", [None, {"x": None}, [None], "{broken", 1, {}])
def test_the_arguments_of_a_call_survive_its_log(tmp_path: Path, arguments: JsonValue) -> None:
    """Inspect leaves out nulls of records; a call with null as arguments broke the whole run."""
    task = load_atomic(write_atomic(tmp_path / "data")).tasks["0"]
    trace = (CallStep(name="OCR", arguments=arguments),)
    run = tmp_path / "run"
    write_imported(run, open_run(run, manifest(tasks=("0",))), [AtomicUnit(task=task, trace=trace)])
    (unit,) = read_units(log_folder(run), ("0",), 1, AtomicUnit).units
    assert unit.trace == trace
    (log,) = list_logs(log_folder(run))
    (sample,) = read_eval_log(log).samples or []
    assert sample.store_as(UnitStore).steps == trace


def test_no_field_of_a_record_in_a_store_depends_on_a_null_that_inspect_leaves_out() -> None:
    fields = dict(_nullable(UnitData, set()))
    assert "CallStep.arguments" in fields
    assert {name: default for name, default in fields.items() if default is not None} == {}


def _nullable(kind: Any, seen: set[Any]) -> Any:
    """Every field that may be null, with its default, in a record and all records inside it."""
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in seen:
        seen.add(kind)
        for name, field in kind.model_fields.items():
            if type(None) in get_args(field.annotation) or field.annotation == JsonValue:
                yield f"{kind.__name__}.{name}", field.default
            yield from _nullable(field.annotation, seen)
    for part in get_args(kind):
        yield from _nullable(part, seen)
