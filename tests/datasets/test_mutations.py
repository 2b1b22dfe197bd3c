"""Real files, damaged at random: a record or a DatasetError with its place, nothing else."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.checks import verify
from gta_bench.datasets.stats import atomic_stats, workflow_stats
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import DatasetError

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["../up", "/etc/passwd", "inputs/x", "\ud800", "image/image_1.jpg", ""])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)
FILES = {"atomic": ("dataset.json", "toolmeta.json"), "workflow": ("end.json", "toolmeta.json")}


def slots(node: Any) -> list[tuple[Any, Any]]:
    """Every place of a JSON tree: its container and its key."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    found = [(node, key) for key in keys]
    for key in keys:
        if isinstance(node[key], dict | list):
            found += slots(node[key])
    return found


def mutate(draw: st.DrawFn, tree: Any) -> Any:
    for _ in range(draw(st.integers(1, 3))):
        places = slots(tree)
        if not places:
            return draw(JSON)
        container, key = draw(st.sampled_from(places))
        action = draw(st.sampled_from(["replace", "delete", "copy", "add"]))
        if action == "replace":
            container[key] = draw(JSON)
        elif action == "delete":
            del container[key]
        elif action == "copy":
            other, from_key = draw(st.sampled_from(places))
            if from_key in other if isinstance(other, dict) else from_key < len(other):
                container[key] = copy.deepcopy(other[from_key])
        elif isinstance(container, dict):
            container[draw(st.text(max_size=6))] = draw(JSON)
        else:
            container.insert(0, draw(JSON))
    return tree


def damage_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    start = draw(st.integers(0, len(content)))
    end = min(len(content), start + draw(st.integers(0, 40)))
    return content[:start] + draw(st.binary(max_size=8)) + content[end:]


@st.composite
def damaged_file(draw: st.DrawFn, originals: dict[str, Any]) -> tuple[str, bytes]:
    name = draw(st.sampled_from(sorted(originals)))
    if draw(st.integers(0, 4)) == 0:
        return name, damage_bytes(draw, json.dumps(originals[name]).encode())
    return name, json.dumps(mutate(draw, copy.deepcopy(originals[name]))).encode()


def small(root: Path, kind: str) -> dict[str, Any]:
    """A few real tasks with every quirk, so that one case takes milliseconds."""
    main, toolmeta = FILES[kind]
    tasks = json.loads((root / main).read_text(encoding="utf-8"))
    chosen = ("0", "34", "47", "48", "89", "115") if kind == "atomic" else list(tasks)[:4]
    return {
        main: {task: tasks[task] for task in chosen},
        toolmeta: json.loads((root / toolmeta).read_text(encoding="utf-8")),
    }


HEALTH = [*HealthCheck]


def outcome(root: Path, kind: str) -> None:
    try:
        if kind == "atomic":
            atomic = load_atomic(root)
            verify(atomic)
            atomic_stats(atomic)
        else:
            workflow = load_workflow(root)
            verify(workflow)
            workflow_stats(workflow)
    except DatasetError as error:
        assert error.file in {*FILES[kind]}
        assert error.task is None or error.field
        assert "\n" not in str(error)


def run_cases(kind: str, source: Path, root: Path, cases: int) -> None:
    originals = small(source, kind)

    @settings(max_examples=cases, deadline=None, database=None, suppress_health_check=HEALTH)
    @given(damaged_file(originals))
    def check(damaged: tuple[str, bytes]) -> None:
        for name, tree in originals.items():
            (root / name).write_text(json.dumps(tree), encoding="utf-8")
        (root / damaged[0]).write_bytes(damaged[1])
        outcome(root, kind)

    check()


@pytest.mark.parametrize("kind", ["atomic", "workflow"])
def test_damaged_files_give_records_or_an_error_with_its_place(
    tmp_path: Path, data_dir: Path, kind: str
) -> None:
    run_cases(kind, data_dir / f"gta_{kind}", tmp_path, 250)


@pytest.mark.measure
@pytest.mark.parametrize("kind", ["atomic", "workflow"])
def test_ten_thousand_damaged_files_give_records_or_an_error_with_its_place(
    tmp_path: Path, data_dir: Path, kind: str
) -> None:
    run_cases(kind, data_dir / f"gta_{kind}", tmp_path, 5_000)
