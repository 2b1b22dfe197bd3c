import json
from pathlib import Path
from typing import Any

import pytest

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.model import AtomicDataset
from gta_bench.datasets.upstream import read_predictions
from gta_bench.errors import DatasetError
from gta_bench.records.scores import StepScores
from gta_bench.records.steps import CallStep
from gta_bench.records.units import AtomicUnit
from gta_bench.runs.directory import log_folder, open_run
from gta_bench.runs.imported import write_imported
from gta_bench.runs.logs import read_units
from gta_bench.similarity.catalog import load_similarity, score_units
from tests.builders import atomic_task, manifest, write_atomic, write_json
from tests.upstream_files import reference_predictions

ANSWER = {"role": "assistant", "content": "It costs 7."}


def call(path: str) -> dict[str, Any]:
    function = {"name": "OCR", "arguments": {"image": path}}
    return {"role": "assistant", "tool_calls": [{"type": "function", "function": function}]}


def entry(path: str = "/data/image/menu.jpg", **changes: Any) -> dict[str, Any]:
    steps = [call(path), ANSWER]
    return {"prediction": steps, "gold": steps, "origin_prompt": [], **changes}


@pytest.fixture
def dataset(tmp_path: Path) -> AtomicDataset:
    tasks = {name: atomic_task() for name in ("a", "b", "c")}
    return load_atomic(write_atomic(tmp_path / "data", tasks))


def test_entries_meet_the_tasks_at_their_position(tmp_path: Path, dataset: AtomicDataset) -> None:
    write_json(tmp_path / "p.json", {"2": entry(), "0": entry()})
    found = read_predictions(tmp_path / "p.json", dataset, "step")
    assert [(unit.task.id, unit.trace is None) for unit in found.units] == [
        ("a", False),
        ("b", True),
        ("c", False),
    ]
    assert found.findings == ()


@pytest.mark.parametrize(
    "path", ["/data/image/menu.jpg", "image/menu.jpg", "C:/x/image/menu.jpg", "./image/menu.jpg"]
)
def test_a_file_of_the_dataset_is_known_by_whatever_folder_it_lay_in(
    tmp_path: Path, dataset: AtomicDataset, path: str
) -> None:
    write_json(tmp_path / "p.json", {"0": entry(path)})
    unit = read_predictions(tmp_path / "p.json", dataset, "step").units[0]
    assert unit.trace is not None
    assert unit.trace[0] == CallStep(name="OCR", arguments={"image": "inputs/menu.jpg"})
    assert unit.upstream is not None
    assert unit.upstream.trace[0] == CallStep(name="OCR", arguments={"image": path})


def test_other_arguments_stay_as_they_are(tmp_path: Path, dataset: AtomicDataset) -> None:
    step = call("x")
    step["tool_calls"][0]["function"]["arguments"] = {"k": 3, "image": "elsewhere/menu.png"}
    raw = call("x")
    raw["tool_calls"][0]["function"]["arguments"] = "not an object"
    write_json(tmp_path / "p.json", {"0": entry(prediction=[step, raw])})
    unit = read_predictions(tmp_path / "p.json", dataset, "step").units[0]
    assert [item.arguments for item in unit.trace or () if isinstance(item, CallStep)] == [
        {"k": 3, "image": "elsewhere/menu.png"},
        "not an object",
    ]


def test_parts_follow_each_other(tmp_path: Path, dataset: AtomicDataset) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    write_json(folder / "gta_bench_1.json", {"0": entry()})
    write_json(folder / "gta_bench_0.json", {"0": entry(), "1": entry()})
    found = read_predictions(folder, dataset, "step")
    assert all(unit.trace is not None for unit in found.units)


def test_a_missing_part_is_refused(tmp_path: Path, dataset: AtomicDataset) -> None:
    """The published pipeline stops at the gap in silence and scores what came before it."""
    folder = tmp_path / "model"
    folder.mkdir()
    write_json(folder / "gta_bench_0.json", {"0": entry()})
    write_json(folder / "gta_bench_2.json", {"0": entry()})
    with pytest.raises(DatasetError, match="part 1 of 2 is missing"):
        read_predictions(folder, dataset, "step")


def test_a_folder_without_parts_is_refused(tmp_path: Path, dataset: AtomicDataset) -> None:
    with pytest.raises(DatasetError, match="no prediction file or part"):
        read_predictions(tmp_path, dataset, "step")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"x": entry()}, "task 'x', field '.key.': the key is not a position"),
        ({"7": entry()}, "there is no task at position 7; the dataset has 3 tasks"),
        ({"0": 5}, "field 'prediction': A trace is a list of steps, not null"),
        ({"0": {"prediction": []}}, "field 'gold': A trace is a list"),
        ({"0": entry(prediction=[[ANSWER]])}, "Is it a file of the other --mode?"),
        ({"0": entry(gold=[{"role": "assistant", "tool_calls": 5}])}, "field 'gold'"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(
    tmp_path: Path, dataset: AtomicDataset, content: Any, problem: str
) -> None:
    write_json(tmp_path / "p.json", content)
    with pytest.raises(DatasetError, match=problem):
        read_predictions(tmp_path / "p.json", dataset, "step")


def test_an_end_to_end_file_holds_the_steps_of_the_one_user_turn(
    tmp_path: Path, dataset: AtomicDataset
) -> None:
    steps = [[call("image/menu.jpg"), {"role": "tool", "content": None}, ANSWER]]
    write_json(tmp_path / "p.json", {"0": {"prediction": steps, "gold": steps}})
    found = read_predictions(tmp_path / "p.json", dataset, "end-to-end")
    assert [step.step for step in found.units[0].trace or ()] == ["call", "reply", "answer"]
    assert found.findings == ()


def test_a_call_that_a_stand_in_answered_failed_under_strict_only(
    tmp_path: Path, dataset: AtomicDataset
) -> None:
    """Where its server lacks a tool, the published pipeline answers itself and calls it done."""
    reply = {"role": "tool", "content": [{"type": "text", "content": "Dummy Result"}]}
    real = {"role": "tool", "content": [{"type": "text", "content": "7 euros"}]}
    steps = [call("image/menu.jpg"), reply, call("image/menu.jpg"), real, ANSWER]
    write_json(tmp_path / "p.json", {"0": {"prediction": [steps], "gold": [steps[2:]]}})
    found = read_predictions(tmp_path / "p.json", dataset, "end-to-end")
    unit = found.units[0]
    assert unit.trace is not None and unit.upstream is not None
    errors = [step.error for step in unit.trace if isinstance(step, CallStep)]
    assert [error and error.type for error in errors] == ["UNAVAILABLE", None]
    assert all(step.error is None for step in unit.upstream.trace if isinstance(step, CallStep))
    dummies = [finding for finding in found.findings if finding.check == "dummy-reply"]
    assert [(one.task, one.message[:28]) for one in dummies] == [
        ("a", "1 of 2 calls reached no tool")
    ]


def odd(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same steps with what the published evaluator never looks at."""
    more = {"type": "function", "function": {"name": "Plot", "arguments": {}}}
    first, reply, answer = steps
    first = {**first, "tool_calls": [*first["tool_calls"], more]}
    return [first, {**reply, "content": [{"type": "smell", "content": 3}]}, answer]


def test_a_file_that_the_published_evaluator_scores_is_scored_alike(
    tmp_path: Path, dataset: AtomicDataset
) -> None:
    """Two calls in a step, a second user turn or an unknown kind of reply refused the file."""
    reply = {"role": "tool", "content": [{"type": "text", "content": "7 euros"}]}
    steps = [call("image/menu.jpg"), reply, ANSWER]
    write_json(tmp_path / "p.json", {"0": {"prediction": [steps], "gold": [steps]}})
    turns = [odd(steps), [ANSWER]]
    write_json(tmp_path / "odd.json", {"0": {"prediction": turns, "gold": [steps, steps]}})
    similarity = load_similarity("exact-or-half")
    plain, strange = (
        read_predictions(tmp_path / name, dataset, "end-to-end") for name in ("p.json", "odd.json")
    )
    expected, found = (
        score_units(one.units, "end-to-end", similarity).compat for one in (plain, strange)
    )
    assert found == expected
    assert found.tool_call == 1
    assert [finding.message for finding in strange.findings] == [
        "step 0: of 2 calls only the first is scored.",
        "step 1: a part of the reply has an unknown type; it is read as text.",
        "the first user turn is scored; 1 further user turn dropped.",
    ]


@pytest.mark.parametrize("error", [None, "boom", {}])
def test_the_key_of_an_error_alone_makes_a_call_fail(
    tmp_path: Path, dataset: AtomicDataset, error: Any
) -> None:
    steps = [{**call("image/menu.jpg"), "error": error}, ANSWER]
    write_json(tmp_path / "p.json", {"0": entry(prediction=steps)})
    units = read_predictions(tmp_path / "p.json", dataset, "step").units
    compat = score_units(units, "step", load_similarity("exact-or-half")).compat
    assert (compat.tool_call, compat.tool_call_error) == (1, 1)


def test_a_number_that_json_does_not_have_and_missing_arguments_equal_nothing(
    tmp_path: Path, dataset: AtomicDataset
) -> None:
    strange = call("image/menu.jpg")
    strange["tool_calls"][0]["function"]["arguments"]["k"] = float("nan")
    bare = call("image/menu.jpg")
    del bare["tool_calls"][0]["function"]["arguments"]
    entries = {str(n): entry(prediction=[one, ANSWER]) for n, one in enumerate((strange, bare))}
    (tmp_path / "p.json").write_text(json.dumps(entries), encoding="utf-8")
    units = read_predictions(tmp_path / "p.json", dataset, "step").units
    compat = score_units(units, "step", load_similarity("exact-or-half")).compat
    assert isinstance(compat, StepScores)
    assert (compat.n, compat.tool_acc, compat.arg_acc) == (2, 100, 0)
    run = tmp_path / "run"
    write_imported(run, open_run(run, manifest(tasks=("a", "b", "c"))), units)
    kept = read_units(log_folder(run), ("a", "b", "c"), 1, AtomicUnit).units
    assert score_units(kept, "step", load_similarity("exact-or-half")).compat == compat


def test_references_that_are_not_the_datasets_are_findings(
    tmp_path: Path, dataset: AtomicDataset
) -> None:
    other = [call("image/menu.jpg"), {"role": "assistant", "content": "It costs 8."}]
    content = {"0": entry(gold=other), "1": entry(gold=other[:1])}
    write_json(tmp_path / "p.json", content)
    found = read_predictions(tmp_path / "p.json", dataset, "step").findings
    assert [(finding.task, finding.field) for finding in found] == [("a", "gold.1"), ("b", "gold")]


@pytest.mark.parametrize("mode", ["step", "end-to-end"])
def test_the_release_fed_back_has_no_finding(tmp_path: Path, atomic_dir: Path, mode: Any) -> None:
    file = tmp_path / "p.json"
    file.write_text(json.dumps(reference_predictions(atomic_dir, mode)), encoding="utf-8")
    found = read_predictions(file, load_atomic(atomic_dir), mode)
    assert found.findings == ()
    assert all(unit.trace for unit in found.units)
