"""Commands without the packages of an extra: the exact install command, and nothing is written."""

import json
import sys
from pathlib import Path

import pytest

from gta_bench.demo import ATOMIC, WORKFLOW
from gta_bench.errors import EnvironmentProblem
from gta_bench.similarity.catalog import load_similarity
from tests.cli.test_run import gta

# Modules that only extras bring.
OPTIONAL = (
    *("cryptography", "duckdb", "fastapi", "httpx2", "inspect_swe", "matplotlib", "mcp"),
    *("openpyxl", "pdfplumber", "pptx", "pypandoc", "pypdf", "pypdfium2", "rapidocr", "ray"),
    *("scipy", "sentence_transformers", "sympy", "uvicorn"),
)
STEP = f"run atomic --mode step --agent gold --data {ATOMIC} --out new"
TOOLS = f"run atomic --mode end-to-end --model mockllm/model --data {ATOMIC} --out new"
DELIVER = f"run workflow --data {WORKFLOW} --out new"
COMMANDS = {
    "compare run run": "report",
    "report run --html new": "report",
    "results export run --out new": "report",
    "judge calibrate run": "report",
    "leaderboard build --out new": "report",
    "leaderboard submit run --out new": "report",
    "demo --out new": "demo",
    "tools serve": "serve",
    f"{TOOLS} --tools mcp+http://127.0.0.1:9": "serve",
    f"{DELIVER} --harness true": "serve",
    f"{DELIVER} --model mockllm/model --judge mockllm/judge": "workflow",
    "score run --judge mockllm/judge": "workflow",
    "judge label run": "workflow",
    f"{STEP} --cluster auto": "cluster",
    f"{STEP} --similarity run": "similarity",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an imported Workflow run."""
    folder = tmp_path_factory.mktemp("finished")
    results = folder / "results" / "sales"
    results.mkdir(parents=True)
    (results / "final.txt").write_text("486 umbrellas.", encoding="utf-8")
    source, out = folder / "results", folder / "run"
    made = gta("import", "folder", source, "--data", WORKFLOW, "--out", out)
    assert made.exit_code == 0, made.output
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_package_is_named_with_its_extra_before_anything_is_written(
    finished: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(finished)
    for module in OPTIONAL:
        monkeypatch.setitem(sys.modules, module, None)
    result = gta(*command.split())
    assert isinstance(result.exception, EnvironmentProblem), result.output
    said = str(result.exception)
    install = f"not installed: pip install 'gta-bench[{COMMANDS[command]}]'"
    assert said.endswith((f", which is {install}", f", which are {install}"))
    assert "\n" not in said
    assert not (finished / "new").exists()


def test_the_published_similarity_is_named_with_the_command_that_fetches_it(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished)
    monkeypatch.setenv("HOME", str(tmp_path))
    load_similarity.cache_clear()
    result = gta(*STEP.split(), "--similarity", "all-mpnet-base-v2")
    assert isinstance(result.exception, EnvironmentProblem), result.output
    assert str(result.exception).endswith("are missing. Run `gta tools fetch all-mpnet-base-v2`.")
    assert not (finished / "new").exists()


def test_a_report_without_scipy_has_no_intervals_and_says_so_to_programs_too(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished)
    assert gta("score", "run").exit_code == 0
    monkeypatch.setitem(sys.modules, "scipy", None)
    (found,) = json.loads(gta("report", "run", "--format", "json").stdout)
    assert (found["intervals"], found["repeats"]) == (None, None)
    assert "for intervals of these scores: pip install 'gta-bench[report]'" in found["remarks"]
