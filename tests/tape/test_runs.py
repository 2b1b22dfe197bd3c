"""Complete runs: recorded and replayed, from the reference, on a machine without backends."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.records.scores import RunScores
from gta_bench.records.units import AtomicUnit
from gta_bench.runs.directory import log_folder, read_manifest, read_scores
from gta_bench.runs.logs import read_units
from gta_bench.tape.storage import TAPE, tape_digest
from tests.conftest import REPOSITORY
from tests.tape.agents import DATA

SIMILARITY = ("--similarity", "exact-or-half")


def gta(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def run(data: Path, out: Path, *arguments: str | Path) -> Result:
    os.environ[DATA] = str(data)  # for the agents of these tests, here and in `bare`
    options = ("--mode", "end-to-end", "--data", data, "--out", out, *SIMILARITY)
    result = gta("run", "atomic", *options, *arguments)
    assert result.exit_code == 0, result.output
    return result


def bare(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command where no backend is installed, no program is found and the network is off."""
    return subprocess.run(
        [sys.executable, "-m", "tests.tape.bare", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PATH": "", "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"},
        capture_output=True,
        text=True,
        check=False,
    )


def units(out: Path) -> Sequence[AtomicUnit]:
    manifest = read_manifest(out)
    return read_units(log_folder(out), manifest.spec.tasks, manifest.spec.epochs, AtomicUnit).units


def counts(scores: RunScores) -> object:
    """The scores without what a clock says and without which calls came from a tape."""
    return [unit.model_dump(exclude={"disturbance"}) for unit in scores.units]


AGENT = ("--agent", "tests.tape.agents:busy", "--model", "mockllm/model", "--tasks", "0:4")


@pytest.fixture(scope="module")
def equipped(atomic_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GTA-Atomic with three more tools in every task, which the busy agent calls."""
    folder = tmp_path_factory.mktemp("equipped")
    for path in atomic_dir.iterdir():
        (folder / path.name).symlink_to(path)
    known = json.loads((folder / "toolmeta.json").read_text(encoding="utf-8"))
    tasks = json.loads((folder / "dataset.json").read_text(encoding="utf-8"))
    for task in tasks.values():
        names = {tool["name"] for tool in task["tools"]}
        more = {"Calculator", "DrawBox", "GoogleSearch"} - names
        task["tools"] += [known[name] for name in sorted(more)]
    (folder / "dataset.json").unlink()
    (folder / "dataset.json").write_text(json.dumps(tasks), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def recorded(equipped: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four tasks recorded with real tools: `run` and `tape` of that folder."""
    folder = tmp_path_factory.mktemp("recorded")
    tape = ("--tape", folder / "tape", "--tape-mode", "record")
    run(equipped, folder / "run", *AGENT, *tape)
    return folder


def test_a_recorded_run_replays_identically_without_backends_and_network(
    recorded: Path, equipped: Path, tmp_path: Path
) -> None:
    options = ("--mode", "end-to-end", "--data", equipped, *SIMILARITY, *AGENT)
    replay = ("--tape", recorded / "tape", "--out", tmp_path / "replay")
    result = bare("run", "atomic", *options, *replay, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    then, now = units(recorded / "run"), units(tmp_path / "replay")
    assert len(then) == 4
    assert [unit.trace for unit in now] == [unit.trace for unit in then]
    assert counts(read_scores(tmp_path / "replay")) == counts(read_scores(recorded / "run"))
    statuses = {call.status for unit in then for call in unit.calls}
    assert statuses == {"done", "error", "unavailable"}
    for unit, again in zip(then, now, strict=True):
        assert [(one.backend, one.status) for one in unit.calls] == [
            (one.backend, one.status) for one in again.calls
        ]
        assert all(one.taped == "replayed" for one in again.calls if one.status == "done")
    files = sorted((recorded / "run" / "files").glob("*/outputs/*"))
    assert len(files) == 8
    for file in files:
        copy = tmp_path / "replay" / file.relative_to(recorded / "run")
        assert copy.read_bytes() == file.read_bytes()


def test_the_manifest_has_the_digest_of_the_tape(recorded: Path) -> None:
    tape = read_manifest(recorded / "run").spec.tape
    assert tape is not None
    assert (tape.mode, tape.origin) == ("record", "live")
    assert tape.digest == tape_digest(recorded / "tape")


def test_the_same_command_again_records_nothing_twice(recorded: Path, equipped: Path) -> None:
    before = (recorded / "tape" / TAPE).read_bytes()
    tape = ("--tape", recorded / "tape", "--tape-mode", "record")
    run(equipped, recorded / "run", *AGENT, *tape)
    run(equipped, recorded / "again", *AGENT, *tape)
    assert (recorded / "tape" / TAPE).read_bytes() == before


def test_a_call_that_was_not_recorded_is_made_live_if_asked(
    recorded: Path, equipped: Path, tmp_path: Path
) -> None:
    before = (recorded / "tape" / TAPE).read_bytes()
    other = ("--agent", "gold", "--tasks", "21", "--tape", recorded / "tape")
    run(equipped, tmp_path / "strict", *other)
    assert {call.taped for unit in units(tmp_path / "strict") for call in unit.calls} == {"missing"}
    run(equipped, tmp_path / "else", *other, "--tape-mode", "replay-else-live", "--tasks", "48")
    assert {call.taped for unit in units(tmp_path / "else") for call in unit.calls} == {None}
    assert (recorded / "tape" / TAPE).read_bytes() == before


@pytest.fixture(scope="module")
def reference(atomic_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference") / "tape"
    result = gta("tape", "from-reference", "--data", atomic_dir, "--out", folder)
    assert result.exit_code == 0, result.output
    assert "557 calls" in result.stderr
    return folder


@pytest.mark.slow
def test_the_reference_replayed_has_154_of_156_answers_and_uses_no_tool(
    reference: Path, atomic_dir: Path, tmp_path: Path
) -> None:
    options = ("--mode", "end-to-end", "--data", atomic_dir, *SIMILARITY, "--agent", "gold")
    result = bare(
        "run", "atomic", *options, "--tape", reference, "--out", tmp_path / "gold", cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert "tool replies come from the reference dialogues" in result.stderr
    played = {unit.task.id: unit for unit in units(tmp_path / "gold")}
    scored = {unit.task: unit.strict for unit in read_scores(tmp_path / "gold").units}
    whitelist = [
        task
        for task, unit in played.items()
        if unit.task.answer and unit.task.answer.kind == "whitelist"
    ]
    wrong = [task for task in whitelist if scored[task].answer_sum != 1]
    assert (len(whitelist), wrong) == (156, ["115", "211"])
    failed = {
        (task, call.tool, call.status)
        for task, unit in played.items()
        for call in unit.calls
        if call.status != "done"
    }
    assert failed == {("34", "DrawBox", "unavailable"), ("35", "DrawBox", "unavailable")}
    backends = {call.backend for unit in played.values() for call in unit.calls} - {""}
    assert backends == {"reference dialogue"}
    assert read_scores(tmp_path / "gold").not_on_tape == ()
    _equal_calls_get_their_own_replies(played)


def _equal_calls_get_their_own_replies(played: dict[str, AtomicUnit]) -> None:
    for one, two, tool in (
        ("50", "51", "ImageDescription"),
        ("103", "204", "Calculator"),
        ("107", "108", "OCR"),
        ("155", "225", "TextToBbox"),
    ):
        for task in (one, two):
            trace, unit = played[task].trace or (), played[task]
            said = [part.content for step in trace if step.step == "reply" for part in step.parts]
            wanted = [turn.content for turn in unit.task.dialogue if turn.turn == "reply"]
            assert said == wanted, (task, tool)


def test_a_changed_argument_is_refused_and_the_report_shows_the_nearest_recorded_call(
    reference: Path, atomic_dir: Path, tmp_path: Path
) -> None:
    agent = ("--agent", "tests.tape.agents:reference_call", "--model", "mockllm/model")
    result = run(atomic_dir, tmp_path / "run", *agent, "--tasks", "2", "--tape", reference)
    assert "1 call had no recorded reply" in result.stderr
    unit = units(tmp_path / "run")[0]
    assert unit.calls[0].status == "unavailable"
    assert "Nearest recorded call: " in unit.calls[0].message
    trace = json.dumps([step.model_dump(mode="json") for step in unit.trace or ()])
    assert "gave no reply." in trace
    assert "Nearest" not in trace, "the nearest call may be the reference's: no agent sees it"
