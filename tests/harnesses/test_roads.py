"""One result, brought in by four roads, is the same run: answers, files and scores are equal."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.records.units import WorkflowUnit
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import log_folder, read_manifest, read_workflow_scores
from gta_bench.runs.logs import read_units
from gta_bench.runs.verdicts import read_verdicts
from tests.chat_server import ChatServer
from tests.harnesses.roads import task_ids, write_folder, write_pack
from tests.judging.builders import honest
from tests.judging.stored import settings_file

ROADS = ("pack", "absolute", "folder", "flat")


def gta(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code in (0, 1), result.output
    return result


def units(run: Path) -> dict[str, WorkflowUnit]:
    manifest = read_manifest(run)
    found = read_units(log_folder(run), manifest.spec.tasks, manifest.spec.epochs, WorkflowUnit)
    assert found.not_run == ()
    return {unit.task.id: unit for unit in found.units}


@pytest.fixture(scope="module")
def runs(
    data_dir: Path, workflow_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Path]:
    """The 20 stored predictions as five runs; all are scored by the verdicts that are stored."""
    stored = data_dir / "predictions" / "workflow_gemini25pro_lagent_20"
    base = tmp_path_factory.mktemp("roads")
    made = {name: base / name for name in ("opencompass", *ROADS)}
    common: list[str | Path] = [
        "--data",
        workflow_dir,
        "--tasks",
        ",".join(task_ids(stored)),
        "--out",
    ]
    gta("import", "opencompass", stored, "--dataset", "workflow", *common, made["opencompass"])
    answers = {task: unit.answer for task, unit in units(made["opencompass"]).items()}
    pack = write_pack(base / "pack.json", stored)
    gta("import", "pack", pack, "--root", stored, *common, made["pack"])
    absolute = write_pack(base / "absolute.json", stored, absolute=True)
    gta("import", "pack", absolute, "--root", stored, *common, made["absolute"])
    for name in ("folder", "flat"):
        source = write_folder(base / f"{name}-source", stored, answers, flat=name == "flat")
        gta("import", "folder", source, *common, made[name])
    verdicts = (made["opencompass"] / "verdicts.jsonl").read_bytes()
    for run in made.values():
        (run / "verdicts.jsonl").write_bytes(verdicts)
        gta("score", run)
    return made


@pytest.mark.parametrize("road", ROADS)
def test_answers_files_and_inputs_are_equal(runs: Mapping[str, Path], road: str) -> None:
    first, other = units(runs["opencompass"]), units(runs[road])
    assert len(first) == len(other) == 20
    store = ArtefactStore(runs[road] / ARTEFACTS)
    for task, unit in first.items():
        assert other[task].answer.strip() == unit.answer.strip(), task
        assert other[task].deliverables == unit.deliverables, task
        assert other[task].inputs == unit.inputs, task
        assert all(len(store.read(file.digest)) == file.size for file in unit.deliverables)
    assert sum(len(unit.deliverables) for unit in first.values()) == 21


@pytest.mark.parametrize("road", ROADS)
def test_judged_scores_are_equal(runs: Mapping[str, Path], road: str) -> None:
    assert judged(runs[road]) == judged(runs["opencompass"])


def judged(run: Path) -> Any:
    """All that the judge's verdicts make; which tools were called is not known of a folder.

    Nor, therefore, whether a tool's error is why a leaf failed: only which leaves failed is equal.
    """
    (table,) = read_workflow_scores(run).judges
    assert (table.judge, table.compat.n, len(table.tasks)) == ("upstream", 20, 20)
    assert table.failures
    failed = {"cause", "detail"}
    return table.model_dump(
        exclude={
            "tool_categories": True,
            "tasks": {"__all__": {"tool_categories"}},
            "failures": {"__all__": failed},
        }
    )


def test_a_pack_keeps_the_calls_and_the_time_that_it_names(runs: Mapping[str, Path]) -> None:
    unit = units(runs["pack"])["108"]
    assert unit.calls
    assert unit.usage.seconds == 12.5
    system = read_manifest(runs["pack"]).spec.system
    assert (system.harness, system.agent) == ("lagent", "imported")


# A picture and a document, no file, a crash for an answer; a browser is not needed.
JUDGED = "94,14,61"


@pytest.mark.slow
def test_a_judge_is_asked_the_same_on_every_road(
    data_dir: Path, workflow_dir: Path, runs: Mapping[str, Path], judge: ChatServer, tmp_path: Path
) -> None:
    requests: list[Any] = []

    def reply(request: dict[str, Any]) -> str:
        requests.append(request)
        return honest(request)

    judge.reply = reply
    stored = data_dir / "predictions" / "workflow_gemini25pro_lagent_20"
    base = runs["pack"].parent
    sources: dict[str, tuple[str | Path, ...]] = {
        "opencompass": ("opencompass", stored, "--dataset", "workflow"),
        "pack": ("pack", base / "pack.json", "--root", stored),
        "folder": ("folder", base / "folder-source"),
    }
    config = settings_file(tmp_path, judge.url)
    asked, values = [], []
    for name, source in sources.items():
        run = tmp_path / name
        gta("import", *source, "--data", workflow_dir, "--tasks", JUDGED, "--out", run)
        result = gta("--config", config, "score", run, "--judge", "local")
        assert "leaves asked" in result.stderr, result.output
        asked.append(sorted(json.dumps(request, sort_keys=True) for request in requests))
        values.append(
            {key: row.verdict for key, row in read_verdicts(run).items() if key.judge != "upstream"}
        )
        requests.clear()
    assert asked[0]
    assert asked[0] == asked[1] == asked[2]
    assert values[0] == values[1] == values[2]
