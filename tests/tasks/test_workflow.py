import json
import math
import re
from pathlib import Path

import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai.model import ChatMessage, ModelOutput, get_model

from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import UsageError
from gta_bench.records.units import WorkflowUnit
from gta_bench.running.system_run import execute
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import files_folder, log_folder
from gta_bench.runs.logs import read_units
from gta_bench.runs.samples import UnitStore
from gta_bench.tasks.workflow import deliver, workflow
from tests.builders import PNG, workflow_task, write_workflow
from tests.planning import Planned
from tests.tasks.test_atomic_step import said
from tests.tasks.workflow_runs import (
    WRITER,
    one_page,
    scripted,
    shown,
    wanted,
    write_dataset,
    write_page,
)

LEAF = re.compile(r"^leaf: (\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("workflow") / "data")


def play(run: Planned, out: Path, model: object) -> tuple[WorkflowUnit, ...]:
    execute(*run, out, lambda well: None, model=model)  # type: ignore[arg-type]
    spec = run.manifest.spec
    return read_units(log_folder(out), spec.tasks, spec.epochs, WorkflowUnit).units


def test_what_the_system_wrote_is_kept_by_content_with_its_name(data: Path, tmp_path: Path) -> None:
    units = play(wanted(data), tmp_path / "run", scripted(one_page("a quokka")))
    store = ArtefactStore(tmp_path / "run" / ARTEFACTS)
    for unit in units:
        assert [file.path for file in unit.deliverables] == ["outputs/page.html"]
        assert b"a quokka" in store.read(unit.deliverables[0].digest)
        assert unit.answer == "Done."
        assert unit.calls[0].tool == "HtmlFileGenerator"
        assert (unit.failure, unit.usage.model_calls) == (None, 2)
    assert len({unit.deliverables[0].digest for unit in units}) == 1


def test_inputs_are_kept_too_and_strays_are_named(tmp_path: Path) -> None:
    task = workflow_task(files=[{"path": "a.png", "type": None, "url": None}])
    data = write_workflow(tmp_path / "data", {"1": task}, toolmeta=[WRITER])
    (data / "a.png").write_bytes(PNG)
    out = tmp_path / "run"

    def reply(messages: list[ChatMessage]) -> ModelOutput:
        (files_folder(out) / "1" / "outputs" / "folder").mkdir(exist_ok=True)
        return said("I made a folder.")

    unit = play(wanted(data), out, scripted(reply))[0]
    assert [file.path for file in unit.inputs] == ["inputs/a.png"]
    assert ArtefactStore(out / ARTEFACTS).read(unit.inputs[0].digest) == PNG
    assert unit.strays == ("folder",)
    assert unit.digests == task_digests(load_workflow(data), "1")


def test_the_silent_agent_delivers_nothing_and_that_is_its_own_fault(
    data: Path, tmp_path: Path
) -> None:
    units = play(wanted(data, agent="silent", max_turns=2), tmp_path / "run", None)
    for unit in units:
        assert (unit.answer, unit.deliverables, unit.failure) == ("", (), None)
        assert [step.step for step in unit.trace] == ["malformed", "malformed"]


def test_gold_has_nothing_to_replay(data: Path) -> None:
    with pytest.raises(UsageError, match="GTA-Workflow has none"):
        wanted(data, agent="gold")
    with pytest.raises(UsageError, match="GTA-Workflow has none"):
        deliver(str(data), agent="gold")


def test_a_missing_input_is_no_fault_of_the_system(tmp_path: Path) -> None:
    task = workflow_task(files=[{"path": "gone.png", "type": None, "url": None}])
    data = write_workflow(tmp_path / "data", {"1": task})
    unit = play(wanted(data), tmp_path / "run", scripted(one_page("x")))[0]
    assert "gone.png" in (unit.failure or "")


def test_the_same_run_again_asks_no_model(data: Path, tmp_path: Path) -> None:
    run = wanted(data, tasks="1")
    first = play(run, tmp_path / "run", scripted(one_page("a quokka")))

    def refuse(messages: list[ChatMessage]) -> ModelOutput:
        raise AssertionError("asked again")

    assert play(run, tmp_path / "run", scripted(refuse)) == first


def test_a_task_is_offered_all_tools_of_the_dataset_or_its_own(tmp_path: Path) -> None:
    own = workflow_task(tools=["Calculator", "Unknown"])
    data = write_workflow(tmp_path / "data", {"1": workflow_task(), "2": own}, toolmeta=[WRITER])
    offered: list[list[str]] = []

    def reply(messages: list[ChatMessage], tools: list[object], *_: object) -> ModelOutput:
        offered.append([tool.name for tool in tools])  # type: ignore[attr-defined]
        return said("Nothing to do.")

    model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    play(wanted(data), tmp_path / "run", model)
    assert sorted(offered) == [["Calculator"], ["HtmlFileGenerator"]]


def test_inspect_runs_the_task_by_itself(data: Path, tmp_path: Path) -> None:
    log = inspect_eval(
        workflow(data=str(data)),
        model=scripted(lambda messages: write_page("x") if len(messages) < 3 else said("Done.")),
        log_dir=str(tmp_path / "logs"),
        display="none",
        log_realtime=False,
    )[0]
    assert log.status == "success"
    assert log.samples is not None
    assert log.samples[0].store_as(UnitStore).deliverables[0].path == "outputs/page.html"


@pytest.mark.slow
def test_the_model_of_the_role_judge_scores_inside_the_evaluation(
    data: Path, tmp_path: Path
) -> None:
    def judge(messages: list[ChatMessage]) -> ModelOutput:
        asked = LEAF.findall(messages[-1].text)[-1]
        score = 10 if "quokka" in shown(messages) and asked.startswith("cp1-1~") else 2
        return said(json.dumps({"leaf": asked, "used": [], "reason": "seen", "score": score}))

    log = inspect_eval(
        workflow(data=str(data)),
        model=scripted(one_page("quokka")),
        model_roles={"judge": scripted(judge)},
        log_dir=str(tmp_path / "logs"),
        sample_id="1",
        display="none",
        log_realtime=False,
    )[0]
    assert log.results is not None
    metrics = {name: one.value for name, one in log.results.scores[0].metrics.items()}
    assert metrics == {
        "root_score": 4,
        "root_sr": 0,
        "leaf_sr": pytest.approx(100 / 3),
    }


def test_a_judge_that_says_nothing_useful_leaves_the_sample_unscored(
    data: Path, tmp_path: Path
) -> None:
    log = inspect_eval(
        workflow(data=str(data), agent="silent", max_turns=1),
        model_roles={"judge": scripted(lambda messages: said("8/10"))},
        log_dir=str(tmp_path / "logs"),
        sample_id="1",
        display="none",
        log_realtime=False,
    )[0]
    assert log.samples is not None
    assert log.samples[0].scores is not None
    score = log.samples[0].scores["judged_root"]
    assert math.isnan(score.as_float())
    assert score.metadata is not None
    assert {row["verdict"]["cause"] for row in score.metadata["verdicts"]} == {"reply_not_json"}
