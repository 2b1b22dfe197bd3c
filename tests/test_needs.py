"""What becomes of tests whose programs are missing, on a developer's machine and on CI."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from tests.conftest import REPOSITORY
from tests.needs import needs

# `flite` is missing in these runs, whatever this machine has.
SUITE = """
import pytest

from tests.needs import needs, require_programs


@pytest.fixture(scope="module")
def voice():
    require_programs("flite")


@needs("flite")
def test_marked():
    raise AssertionError("must not run")


def test_through_a_fixture(voice):
    raise AssertionError("must not run")


def test_fails_and_names_the_program():
    assert 1 + 2 == -1, "flite is not installed: No jail, no ffmpeg, no LibreOffice"


def test_skips_itself():
    pytest.skip("planted")


@pytest.mark.xfail(strict=True, reason="known")
def test_known_defect():
    raise AssertionError


def test_passes():
    pass
"""
SKIPS_AT_IMPORT = "import pytest\npytest.importorskip('no_such_module')\n"
RunSuite = Callable[..., tuple[int, dict[str, str], str]]


@pytest.fixture
def run_suite(tmp_path: Path) -> RunSuite:
    """Runs the planted tests; returns the exit code, the outcome of each, and the output."""
    (tmp_path / "test_planted.py").write_text(SUITE, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()

    def run(*options: str) -> tuple[int, dict[str, str], str]:
        own = {
            "PATH": str(tmp_path / "empty"),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(REPOSITORY),
        }
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "xdist", "-p", "tests.needs", "-rA", *options],
            cwd=tmp_path,
            env={name: os.environ[name] for name in os.environ if name != "PYTEST_ADDOPTS"} | own,
            capture_output=True,
            text=True,
            check=False,
        )
        found = re.findall(r"^([A-Z]+) (?:\[\d+\] )?(\S+)", done.stdout, re.MULTILINE)
        outcomes = {place.rpartition("::")[2]: word for word, place in found}
        return done.returncode, outcomes, done.stdout

    return run


def test_a_missing_program_skips_what_needs_it_and_changes_no_other_outcome(
    run_suite: RunSuite,
) -> None:
    """A failure whose text named a missing program was once reported as a skip."""
    code, outcomes, said = run_suite()
    assert code == pytest.ExitCode.TESTS_FAILED
    assert outcomes["test_fails_and_names_the_program"] == "FAILED"
    assert outcomes["test_known_defect"] == "XFAIL"
    assert outcomes["test_passes"] == "PASSED"
    assert "1 failed, 1 passed, 3 skipped, 1 xfailed" in said
    assert said.count(": flite is not installed: apt install flite\n") == 2


@pytest.mark.parametrize("processes", ["0", "2"])
def test_no_skips_turns_every_skip_into_a_failure_with_its_reason(
    run_suite: RunSuite, processes: str
) -> None:
    code, outcomes, said = run_suite("--no-skips", "-n", processes)
    assert code == pytest.ExitCode.TESTS_FAILED
    assert outcomes == {
        "test_marked": "ERROR",
        "test_through_a_fixture": "ERROR",
        "test_fails_and_names_the_program": "FAILED",
        "test_skips_itself": "FAILED",
        "test_known_defect": "FAILED",
        "test_passes": "PASSED",
    }
    assert "--no-skips: Skipped: flite is not installed: apt install flite" in said
    assert "--no-skips: Skipped: planted" in said
    assert "--no-skips: expected to fail: known" in said


@pytest.mark.parametrize("processes", ["0", "2"])
def test_no_skips_refuses_a_module_that_skips_itself(
    run_suite: RunSuite, tmp_path: Path, processes: str
) -> None:
    (tmp_path / "test_planted.py").write_text(SKIPS_AT_IMPORT, encoding="utf-8")
    assert run_suite()[0] == pytest.ExitCode.NO_TESTS_COLLECTED
    code, _, said = run_suite("--no-skips", "-n", processes)
    assert code != pytest.ExitCode.OK
    assert "--no-skips: Skipped: could not import 'no_such_module'" in said


def test_an_unknown_program_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown programs \['fmpeg'\]. Known programs: bwrap"):
        needs("fmpeg")


@pytest.mark.parametrize(
    "target", ["test", "test-slow", "test-core", "test-part", "test-inspect", "coverage"]
)
def test_every_target_that_runs_tests_refuses_skips_where_ci_asks_for_it(target: str) -> None:
    for asked in ("", "1"):
        command = ["make", "-n", target, f"NO_SKIPS={asked}", "VENV=none"]
        shown = subprocess.run(
            command, cwd=REPOSITORY, capture_output=True, text=True, check=True
        ).stdout.replace("\\\n", " ")
        runs = [line for line in shown.splitlines() if re.search(r"\bpytest -r", line)]
        assert len(runs) == 1, shown
        assert ("--no-skips" in runs[0]) is bool(asked)


def test_ci_asks_to_refuse_skips() -> None:
    assert "\nexport NO_SKIPS=1\n" in (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    workflow = REPOSITORY / ".github" / "workflows" / "ci.yml"
    assert yaml.safe_load(workflow.read_text(encoding="utf-8"))["env"]["NO_SKIPS"] == "1"
