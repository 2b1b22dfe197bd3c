"""Whole runs of commands: what a harness can do wrong, one task each, and what is kept of it."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.confine.limits import MIB
from gta_bench.errors import RunError, UsageError
from gta_bench.harnesses.choice import CellLimits, Harness
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep
from gta_bench.records.units import WorkflowUnit
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import read_units
from tests.builders import parameter, tool, workflow_task, write_workflow
from tests.needs import needs, require_programs

HOSTILE = Path(__file__).with_name("hostile.py")
DEEDS = (
    *("good", "daemons", "disk", "noise"),
    *("vandal", "network", "neighbor", "suicide", "wrong", "banner"),
)


def gta(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def deed(name: str) -> dict[str, object]:
    return workflow_task(
        tools=[tool("Calculator", parameter("expression"))],
        files=[{"type": "text", "path": "resources/note.txt", "url": None}],
        dialogs=[{"role": "user", "content": name}],
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    (root / "resources").mkdir()
    (root / "resources" / "note.txt").write_text("The note.")
    tasks = {str(number): deed(name) for number, name in enumerate((*DEEDS, "endless"))}
    return write_workflow(root, tasks, [tool("Calculator", parameter("expression"))])


@pytest.fixture(scope="module")
def out(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of every deed that ends; the good task keeps the limits easily."""
    require_programs("bwrap")
    out = tmp_path_factory.mktemp("runs") / "hostile"
    other = out / "files" / "0" / "inputs" / "note.txt"
    # Without its first slash, since a command may read what it names.
    command = f"python3 {HOSTILE} {{task_file}} {{workspace}} {str(other)[1:]}"
    limits = ("--harness-seconds", "300", "--harness-disk", "32", "--tasks", f":{len(DEEDS)}")
    result = gta("run", "workflow", "--data", data, "--harness", command, "--out", out, *limits)
    assert result.exit_code == 0, result.output
    assert other.exists(), "the neighbor was there to be found"
    return out


@pytest.fixture(scope="module")
def units(out: Path) -> dict[str, WorkflowUnit]:
    manifest = read_manifest(out)
    found = read_units(
        log_folder(out), manifest.spec.tasks, manifest.spec.epochs, WorkflowUnit
    ).units
    return {unit.task.request: unit for unit in found}


def problem(unit: WorkflowUnit) -> str | None:
    return next((step.reason for step in unit.trace if isinstance(step, MalformedStep)), None)


def test_no_deed_is_taken_for_a_failure_of_ours(units: dict[str, WorkflowUnit]) -> None:
    assert list(units) == list(DEEDS)
    assert {unit.failure for unit in units.values()} == {None}


def test_a_good_task_among_them_keeps_files_calls_and_answer(
    units: dict[str, WorkflowUnit], out: Path
) -> None:
    unit = units["good"]
    assert problem(unit) is None
    assert unit.answer == "It is 2"
    assert [file.path for file in unit.deliverables] == [
        "outputs/answer.md",
        "outputs/deep/note.txt",
    ]
    assert ArtefactStore(out / ARTEFACTS).read(unit.deliverables[0].digest) == b"42"
    assert [(call.tool, call.status) for call in unit.calls] == [("Calculator", "done")] * 2
    calls = [step for step in unit.trace if isinstance(step, CallStep)]
    assert [step.error.type if step.error else None for step in calls] == [None, "API_ERROR", None]


@needs("bwrap")
def test_a_harness_that_never_ends_is_stopped_and_what_it_had_is_kept(
    data: Path, tmp_path: Path
) -> None:
    command = f"python3 {HOSTILE} {{task_file}} {{workspace}} nowhere"
    limits = ("--harness-seconds", "10", "--tasks", str(len(DEEDS)))
    out = tmp_path / "endless"
    result = gta("run", "workflow", "--data", data, "--harness", command, "--out", out, *limits)
    assert result.exit_code == 0, result.output
    (unit,) = read_units(log_folder(out), [str(len(DEEDS))], 1, WorkflowUnit).units
    assert problem(unit) == "The harness was stopped: it had not ended after 10 seconds."
    assert [file.path for file in unit.deliverables] == ["outputs/begun.txt"]
    assert unit.answer == ""


def test_an_empty_final_text_is_an_empty_answer(units: dict[str, WorkflowUnit]) -> None:
    """mini-swe-agent left an empty text when it gave up, and its banner was the answer: "2.4.6"."""
    assert units["banner"].answer == ""


def test_daemons_end_with_their_task(units: dict[str, WorkflowUnit]) -> None:
    assert units["daemons"].answer == "done"
    commands = [path for path in Path("/proc").glob("[0-9]*/cmdline")]
    left = []
    for path in commands:
        try:
            left += [path] if b"gta-daemon" in path.read_bytes() else []
        except OSError:
            continue
    assert left == []


def test_a_harness_that_fills_the_disk_is_stopped_and_nothing_of_it_stays(
    units: dict[str, WorkflowUnit], out: Path
) -> None:
    unit = units["disk"]
    reason = problem(unit)
    assert reason is not None
    assert "it wrote more than 33554432 bytes" in reason
    assert unit.deliverables == ()
    assert list((out / "files" / "3" / "outputs").iterdir()) == []


def test_a_harness_that_prints_a_gigabyte_is_stopped(units: dict[str, WorkflowUnit]) -> None:
    reason = problem(units["noise"])
    assert reason is not None
    assert f"it printed more than {MIB} bytes" in reason
    assert sum(len(step.model_dump_json()) for step in units["noise"].trace) < 10_000


def test_inputs_cannot_be_deleted_and_links_are_not_followed(
    units: dict[str, WorkflowUnit], out: Path
) -> None:
    unit = units["vandal"]
    said = unit.answer.splitlines()
    assert said[:2] == ["inputs Device or resource busy", "outputs Device or resource busy"]
    assert said[2:] == ["note.txt Read-only file system", "4"]
    assert (out / "files" / "5" / "inputs" / "note.txt").read_text() == "The note."
    assert unit.deliverables == ()
    assert unit.strays == ("loop", "passwd")


def test_only_loopback_is_there(units: dict[str, WorkflowUnit]) -> None:
    said = units["network"].answer.splitlines()
    assert said == ["Network is unreachable", "Network is unreachable", "['lo']"]


def test_no_other_task_and_no_other_process_is_seen(units: dict[str, WorkflowUnit]) -> None:
    said = units["neighbor"].answer.splitlines()
    assert said == ["False False", "True"]


def test_a_harness_that_kills_everything_kills_its_cell_alone(
    units: dict[str, WorkflowUnit],
) -> None:
    assert problem(units["suicide"]) == "The harness ended its own cell."


def test_a_failed_harness_is_recorded_with_its_words(units: dict[str, WorkflowUnit]) -> None:
    assert problem(units["wrong"]) == "The harness ended with status 1."
    words = [step.content for step in units["wrong"].trace if isinstance(step, MalformedStep)]
    assert words == ["I give up."]
    assert not any(isinstance(step, AnswerStep) for step in units["wrong"].trace)


def test_the_manifest_names_the_harness_and_its_network(out: Path) -> None:
    manifest = read_manifest(out)
    assert manifest.spec.system.agent == "harness"
    assert str(manifest.spec.system.harness).startswith(f"python3 {HOSTILE}")
    assert manifest.spec.network == "tools"
    assert manifest.notes == ("The harness had 300 s for each task.",)
    assert manifest.spec.loop is None
    assert manifest.spec.limits is not None
    limits = manifest.spec.limits.model_dump()
    assert (limits["seconds"], limits["cost_usd"], limits["disk_bytes"]) == (300, None, 32 * MIB)
    assert manifest.prompts["harnesses/task.md"]


@needs("pasta")
def test_the_open_network_makes_it_another_run_and_finished_tasks_are_not_run_again(
    out: Path, data: Path
) -> None:
    command = str(read_manifest(out).spec.system.harness)
    options: list[str | Path] = ["--data", data, "--harness", command, "--out", out]
    options += ["--tasks", f":{len(DEEDS)}", "--harness-disk", "32"]
    less = gta("run", "workflow", *options, "--harness-seconds", "200")
    assert "another setting (limits: seconds 300, " in str(less.exception)
    options += ["--harness-seconds", "300"]
    result = gta("run", "workflow", *options, "--network", "open")
    assert isinstance(result.exception, RunError)
    assert "another setting (network: tools there, open here)" in str(result.exception)
    before = sorted(log_folder(out).glob("*.eval"))
    assert gta("run", "workflow", *options).exit_code == 0
    assert sorted(log_folder(out).glob("*.eval")) == before


def test_an_open_network_is_flagged() -> None:
    harness = Harness(kind="command", target="true", network="open", limits=CellLimits(cost_usd=2))
    assert harness.notes == (
        "The harness had 1800 s and $2 for each task.",
        "The harness had the open network, through pasta and only to outside addresses: its "
        "results are not comparable with others.",
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--harness", "no-such-program {task_file}"), "program 'no-such-program' not found"),
        (("--harness", "'"), "is not a valid command"),
        (("--harness", ""), "--harness needs a command"),
        (("--harness", "true", "--harness-name", "codex"), "Use only one of"),
        (("--harness-name", "hal"), "Unknown harness 'hal'"),
        (("--agent-bridge", "nothing"), "does not have the form pkg.mod:function"),
        (("--agent-bridge", "tests.harnesses:nothing"), "cannot load"),
        (("--agent-bridge", "tests.harnesses.agents:NO_FUNCTION"), "is not a function"),
        (("--agent-bridge", "tests.harnesses.agents:bare"), "needs a model"),
        (
            ("--harness", "true", "--feedback-rounds", "1", "--judge", "x/y"),
            "works with built-in agents only",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    options: tuple[str, ...], said: str, data: Path, tmp_path: Path
) -> None:
    result = gta("run", "workflow", "--data", data, "--out", tmp_path / "run", *options)
    assert isinstance(result.exception, UsageError)
    assert said in str(result.exception)


def test_step_mode_takes_no_harness(atomic_dir: Path, tmp_path: Path) -> None:
    options = ("--mode", "step", "--data", atomic_dir, "--out", tmp_path / "run")
    result = gta("run", "atomic", *options, "--harness", "true")
    assert isinstance(result.exception, UsageError)
    assert "needs --mode end-to-end" in str(result.exception)
