"""The demo from start to report, as a newcomer runs it, with and without a real model."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from socket import create_connection, create_server
from typing import Any

import pytest
from click.testing import CliRunner, Result

import gta_bench.cli.demo as demo_command
from gta_bench.cli import app
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.checks import verify
from gta_bench.datasets.workflow import load_workflow
from gta_bench.demo import ATOMIC, WORKFLOW
from gta_bench.demo.local_model import SMOLLM2, find_local_weights, serve_model
from gta_bench.demo.script import WANTED
from gta_bench.errors import EnvironmentProblem
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.weights import fetch
from tests.llm_server import CACHE


def gta(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Result]]:
    """The demo with scripts alone; its folder and what it said."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(demo_command, "find_local_weights", lambda _: None)
        yield folder / "gta-demo", gta("demo")


def test_the_demo_says_what_is_scripted_and_where_the_report_is(
    shown: tuple[Path, Result],
) -> None:
    folder, result = shown
    assert result.exit_code == 0, result.output
    assert "The model and the judge are SCRIPTED" in result.stderr
    assert "gta tools fetch smollm2-135m" in result.stderr
    assert "gta-demo/report.html" in result.stderr
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("The system is a script, not a language model") == 2
    assert "The judge is a script" in page


def test_the_demo_uses_real_tools(shown: tuple[Path, Result]) -> None:
    folder, _ = shown
    used: dict[str, dict[str, Any]] = {}
    for run in ("atomic", "workflow"):
        scores = json.loads((folder / run / "scores.json").read_text(encoding="utf-8"))
        used |= {use["tool"]: use for use in scores["tools"]}
    assert {"OCR", "Solver", "Plot", "DrawBox", "AddText", "PdfFileGenerator"} <= used.keys()
    assert all(use["done"] and use["backends"] and not use["error"] for use in used.values())
    for file in (
        "atomic/files/chart/outputs/plot.png",
        "atomic/files/postcard/outputs/seaside-text.png",
        "workflow/files/sales/outputs/report.pdf",
        "workflow/files/picnic/outputs/invitation.html",
    ):
        assert (folder / file).stat().st_size > 400, file


def test_all_is_solved_but_what_the_script_forgets(shown: tuple[Path, Result]) -> None:
    folder, result = shown
    assert re.search(r"gta-demo/atomic +5/5 +strict +100\.00 ", result.stdout)
    found = {key.leaf: row.verdict for key, row in read_verdicts(folder / "workflow").items()}
    assert found.keys() == WANTED.keys()
    failed = {leaf for leaf, verdict in found.items() if getattr(verdict, "value", 0) < 7}
    assert failed == {"share"}
    assert "5.48" in getattr(found["share"], "reason", "")


def test_the_demo_does_not_touch_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gta-demo").mkdir()
    assert "already exists" in str(gta("demo").exception)


def test_without_its_packages_the_demo_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo_command, "PACKAGES", ("json", "no_such_package"))
    said = str(gta("demo").exception)
    assert said == (
        "gta demo needs no_such_package, which is not installed: pip install 'gta-bench[demo]'"
    )


def test_the_demos_tasks_are_sound() -> None:
    atomic, workflow = load_atomic(ATOMIC), load_workflow(WORKFLOW)
    assert [*atomic.tasks] == ["receipt", "homework", "chart", "departures", "postcard"]
    assert [*workflow.tasks] == ["sales", "picnic"]
    for dataset in (atomic, workflow):
        findings = [finding.check for finding in verify(dataset).findings]
        assert set(findings) <= {"not-the-release", "incomplete"}


def test_without_weights_there_is_no_local_model(tmp_path: Path) -> None:
    assert find_local_weights(tmp_path) is None


def test_a_model_that_does_not_start_is_told_in_one_line(tmp_path: Path, loopback: None) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no model")
    with pytest.raises(EnvironmentProblem, match="did not start"), serve_model(broken):
        pass


def test_a_model_takes_the_port_of_a_server_that_has_just_ended(
    tmp_path: Path, loopback: None
) -> None:
    (broken := tmp_path / "weights.gguf").write_bytes(b"not weights")
    with create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        busy = f"Port {port} of 127.0.0.1 cannot be used"
        with (
            pytest.raises(EnvironmentProblem, match=busy),
            serve_model(broken, port=port),
        ):
            pass
        with create_connection(("127.0.0.1", port)) as client:
            server.accept()[0].close()
            assert client.recv(1) == b""
    with (
        pytest.raises(EnvironmentProblem, match="did not start"),
        serve_model(broken, port=port),
    ):
        pass


@pytest.mark.measure
def test_the_demo_measures_a_real_model_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loopback: None
) -> None:
    fetch(SMOLLM2, CACHE, lambda _: None)
    monkeypatch.chdir(tmp_path)
    result = gta("demo")
    assert result.exit_code == 0, result.output
    assert re.search(r"gta-demo/small-model +5/5 +strict", result.stdout)
    manifest = json.loads(Path("gta-demo/small-model/run.json").read_text(encoding="utf-8"))
    assert manifest["system"]["model"] == "openai-api/local/smollm2-135m"
    assert "135 million" in manifest["notes"][0]
