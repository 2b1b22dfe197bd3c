"""The action for GitHub: its file is valid, and its steps do what it says, with `gta` itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.decisions.test_gate import passing
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
    program = tmp_path / "bin" / "gta"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/bash\necho "$@"\nif [ "$CODE" != 2 ]; then\n'
        'while [ "$1" != --markdown ]; do shift; done\n'
        'mkdir -p "$(dirname "$2")"\necho "## Gate" > "$2"\nfi\nexit "$CODE"\n'
    )
    program.chmod(0o755)
    return tmp_path


def do_step(place: Path, code: int, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the last step as GitHub does, with `inputs` as its environment."""
    step = load(ACTION)["runs"]["steps"][-1]
    assert {*step["env"]} == {"BASE", "NEW", "OPTIONS", "FAIL_ON", "FOLDER"}
    defaults = {"BASE": "my base.json", "NEW": "runs/new", "OPTIONS": "", "FAIL_ON": "worse"}
    script = place / "step.sh"
    script.write_text(step["run"])
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
        cwd=place,
        env={
            **defaults,
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
    assert ran.stdout.startswith("gate my base.json runs/new --margin 15 --sequential --junit out/")
    assert (place / "output").read_text() == f"decision={decision}\nexit-code={code}\n"
    assert (place / "summary").read_text() == "## Gate\n"
    assert ("::error" in ran.stdout) == (ends != 0)


def test_a_refused_command_and_a_wrong_input_fail(place: Path) -> None:
    refused = do_step(place, 2)
    assert refused.returncode == 2
    assert not (place / "summary").exists()
    wrong = do_step(place, 0, FAIL_ON="never")
    assert wrong.returncode == 2
    assert "choose worse or undecided" in wrong.stdout


def test_the_installed_gta_takes_the_options_of_the_step(place: Path) -> None:
    """Two baselines, so that no run is needed; only the page of a run is not written."""
    (place / "bin" / "gta").write_text(
        f'#!/bin/bash\nexec {sys.executable} -m gta_bench "${{@:1:$#-2}}"\n'
    )
    for name, passed in (("base.json", [1] * 20), ("new.json", [0] * 8 + [1] * 12)):
        (place / name).write_text(passing(*passed, name=name).model_dump_json())
    paths = ":".join(path for path in sys.path if path)
    ran = do_step(place, 0, BASE="base.json", NEW="new.json", PYTHONPATH=paths)
    assert ran.returncode == 10, ran.stdout + ran.stderr
    assert "## Gate: worse" in (place / "summary").read_text()
    assert (place / "out" / "gta-gate.xml").is_file()
