"""The action for GitHub: its file is valid, and its steps do what it says, with `gta` itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import atomic_task, write_atomic
from tests.cli.test_run import gta
from tests.conftest import REPOSITORY
from tests.packaging.test_workflows import audit, load, run

ACTION = REPOSITORY / "action.yml"


def test_the_file_follows_the_schema_and_has_no_known_weakness() -> None:
    checked = run("check-jsonschema", "--builtin-schema", "vendor.github-actions", ACTION)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    audited = audit(ACTION)
    assert audited.returncode == 0, audited.stdout + audited.stderr


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A `gta` that prints, writes its summary and ends with a code, beside the real programs."""
    (tmp_path / "bin").mkdir()
    write_program(
        tmp_path / "bin" / "gta",
        'printf "%s|" "$@"\necho\nif [ "$CODE" != 2 ]; then\n'
        'while [ "$1" != --markdown ]; do shift; done\n'
        'mkdir -p "$(dirname "$2")"\necho "## Gate" > "$2"\nfi\nexit "$CODE"\n',
    )
    return tmp_path


def write_program(file: Path, script: str) -> None:
    file.write_text(f"#!/bin/bash\n{script}")
    file.chmod(0o755)


GATE = {"BASE": "my base.json", "NEW": "runs/new", "OPTIONS": "", "FAIL_ON": "worse"}
FAILED = "decision=failed\nexit-code=2\n"
COMMENT = {"GH_TOKEN": "t", "NUMBER": "7"}
JOB = {
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "me/agent",
    "GITHUB_RUN_ID": "99",
}


def do_step(
    place: Path, code: int, defaults: dict[str, str] = GATE, **inputs: str
) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub does, with `inputs` as its environment."""
    name = "Gate" if defaults is GATE else "Comment"
    (step,) = (one for one in load(ACTION)["runs"]["steps"] if one["name"] == name)
    assert {*step["env"]} == {*defaults, "FOLDER"}
    script = place / "step.sh"
    script.write_text(step["run"])
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
        cwd=place,
        env={
            **defaults,
            **JOB,
            "FOLDER": "out",
            "PATH": f"{place / 'bin'}:{os.defpath}",
            "CODE": str(code),
            "GITHUB_OUTPUT": str(place / "output"),
            "GITHUB_STEP_SUMMARY": str(place / "summary"),
            **inputs,
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("code", "fail_on", "decision", "ends"),
    [
        (0, "worse", "not worse", 0),
        (10, "worse", "worse", 10),
        (11, "worse", "undecided", 0),
        (11, "undecided", "undecided", 11),
        (3, "worse", "failed", 3),
        (1, "worse", "failed", 1),
    ],
)
def test_every_exit_code_has_its_outcome(
    place: Path, code: int, fail_on: str, decision: str, ends: int
) -> None:
    ran = do_step(place, code, FAIL_ON=fail_on, OPTIONS="--margin 15  --sequential")
    assert ran.returncode == ends, ran.stdout + ran.stderr
    assert "\ngate|my base.json|runs/new|--junit|./out/gta-gate.xml|" in ran.stdout
    assert "|./out/gta-gate.html|--margin|15|--sequential|\n" in ran.stdout
    assert (place / "output").read_text() == f"decision={decision}\nexit-code={code}\n"
    assert (place / "summary").read_text() == "## Gate\n"
    assert ("::error" in ran.stdout) == (ends != 0)


def test_links_of_the_summary_lead_to_the_artifacts_of_the_job(place: Path) -> None:
    write_program(
        place / "bin" / "gta",
        'mkdir -p out\necho "| a | [open](gta-gate.html#a-1) | [b](other.html#c) |" > "$7"\n',
    )
    assert do_step(place, 0).returncode == 0
    stored = "https://github.com/me/agent/actions/runs/99#artifacts"
    assert (place / "summary").read_text() == f"| a | [open]({stored}) | [b](other.html#c) |\n"
    assert "gta-gate.html#a-1" in (place / "out" / "gta-gate.md").read_text()


def test_options_are_quoted_as_in_a_shell_and_an_open_quote_fails(place: Path) -> None:
    run = '--seed "a\\"b" --run --\n workflow --harness "my agent {task_file} \'$HOME\'"'
    ran = do_step(place, 0, OPTIONS=run)
    wanted = """|--seed|a"b|--run|--|workflow|--harness|my agent {task_file} '$HOME'|\n"""
    assert wanted in ran.stdout
    (place / "output").unlink()
    broken = do_step(place, 0, OPTIONS='--harness "my agent')
    assert broken.returncode == 2
    assert "gate|" not in broken.stdout
    assert "::error title=gta gate::A quote in options has no end." in broken.stdout
    assert (place / "output").read_text() == FAILED


def test_an_exit_without_a_decision_is_a_failure(place: Path) -> None:
    """`gta gate --help` ends with 0, which would mean that nothing got worse."""
    write_program(place / "bin" / "gta", "echo Usage: gta gate\n")
    ran = do_step(place, 0, OPTIONS="--help")
    assert ran.returncode == 2
    assert "::error title=gta gate::Nothing was decided" in ran.stdout
    assert (place / "output").read_text() == FAILED


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ("", "api|--method|POST|repos/me/agent/issues/7/comments|"),
        ("31\n12\n", "api|--method|PATCH|repos/me/agent/issues/comments/31|"),
    ],
)
def test_the_comment_is_written_once_and_then_replaced(place: Path, known: str, said: str) -> None:
    (place / "out").mkdir()
    write_program(place / "bin" / "gh", f'printf "%s|" "$@" >> calls\nprintf "{known}"\n')
    assert do_step(place, 0, COMMENT).stdout == "", "there is nothing to say"
    (place / "out" / "gta-gate-linked.md").write_text("<!-- gta-bench:gate -->\n## Gate\n")
    ran = do_step(place, 0, COMMENT)
    assert (ran.returncode, ran.stdout) == (0, "")
    calls = (place / "calls").read_text()
    assert calls.startswith("api|graphql|--paginate|-f|query=query($owner: String!")
    assert "|-f|owner=me|-f|name=agent|-F|number=7|--jq|" in calls
    assert "select(.viewerDidAuthor and" in calls
    assert calls.endswith(f"{said}-F|body=@out/gta-gate-linked.md|")


def test_a_token_that_may_not_comment_does_not_fail_the_job(place: Path) -> None:
    write_program(place / "bin" / "gh", "exit 1\n")
    (place / "out").mkdir()
    (place / "out" / "gta-gate-linked.md").write_text("## Gate\n")
    ran = do_step(place, 0, COMMENT)
    assert ran.returncode == 0
    assert "::warning title=gta gate::No comment was written" in ran.stdout


def test_a_refused_command_and_a_wrong_input_fail(place: Path) -> None:
    refused = do_step(place, 2)
    assert refused.returncode == 2
    assert not (place / "summary").exists()
    wrong = do_step(place, 0, FAIL_ON="never")
    assert wrong.returncode == 2
    assert "choose worse or undecided" in wrong.stdout


def test_what_the_gate_prints_is_no_command_of_the_workflow(place: Path) -> None:
    write_program(place / "bin" / "gta", "printf '::error::owned'\nexit 10\n")
    first, printed, after, *_ = do_step(place, 10).stdout.splitlines()
    word = first.removeprefix("::stop-commands::")
    assert len(word) == 32
    assert (printed, after) == ("::error::owned", f"::{word}::")
    assert do_step(place, 10).stdout.splitlines()[0] != first


def test_files_of_an_earlier_job_are_not_shown_again(place: Path) -> None:
    assert do_step(place, 0).returncode == 0
    (place / "summary").unlink()
    assert do_step(place, 2).returncode == 2
    assert not (place / "summary").exists()
    assert not (place / "out" / "gta-gate.md").exists()


def test_the_installed_gta_does_the_step_in_a_clean_folder(place: Path) -> None:
    data = write_atomic(place / "data", {str(number): atomic_task() for number in range(10)})
    options = ("--mode", "step", "--similarity", "exact-or-half", "--data", data)
    for agent in ("gold", "silent"):
        made = gta("run", "atomic", *options, "--agent", agent, "--out", place / agent)
        assert made.exit_code == 0, made.output
    write_program(place / "bin" / "gta", f'exec {sys.executable} -m gta_bench "$@"\n')
    paths = ":".join(path for path in sys.path if path)
    ran = do_step(place, 0, BASE="gold", NEW="silent", PYTHONPATH=paths, FOLDER="-new/gate")
    assert ran.returncode == 10, ran.stdout + ran.stderr
    summary = (place / "summary").read_text()
    assert "## Gate: worse" in summary
    assert "[open](https://github.com/me/agent/actions/runs/99#artifacts)" in summary
    files = sorted(file.name for file in (place / "-new" / "gate").iterdir())
    assert files == ["gta-gate-linked.md", "gta-gate.html", "gta-gate.md", "gta-gate.xml"]
