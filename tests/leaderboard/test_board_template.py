"""The template of a board: valid files, and the way of a bundle from a pull request to the site.

The steps of its workflows run as GitHub runs them, with `gta` itself and local repositories. Only
the downloads are left out.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from gta_bench.leaderboard.entries import read_published_entries
from tests.cli.test_run import gta
from tests.conftest import REPOSITORY
from tests.leaderboard.bundles import changed, replaced, workflow_data, workflow_run
from tests.packaging.test_workflows import audit, load, run

TEMPLATE = REPOSITORY / "examples" / "board"
WORKFLOWS = TEMPLATE / ".github" / "workflows"
GTA = "#!{python}\nfrom gta_bench.cli import main\nmain()\n"


def test_the_workflows_are_valid_and_have_no_known_weakness() -> None:
    files = sorted(WORKFLOWS.glob("*.yml"))
    assert [file.name for file in files] == ["check.yml", "publish.yml"]
    for schema in ("vendor.github-workflows", "custom.github-workflows-require-timeout"):
        checked = run("check-jsonschema", "--builtin-schema", schema, *files)
        assert checked.returncode == 0, checked.stdout + checked.stderr
    audited = audit(TEMPLATE)
    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert "1 ignored" in audited.stdout + audited.stderr, "the trigger, which the README explains"


def test_actions_have_the_pins_of_our_own_workflows() -> None:
    own = "".join(file.read_text() for file in (REPOSITORY / ".github").rglob("*.yml"))
    for file in WORKFLOWS.glob("*.yml"):
        for job in load(file)["jobs"].values():
            for step in job["steps"]:
                assert step.get("uses", "") in own


def test_the_job_that_reads_bundles_cannot_write_and_runs_nothing_of_the_pull_request() -> None:
    check = load(WORKFLOWS / "check.yml")
    assert check["permissions"] == {}
    assert check["jobs"]["check"]["permissions"] == {"contents": "read"}
    text = (WORKFLOWS / "check.yml").read_text()
    (checkout,) = (
        one for one in check["jobs"]["check"]["steps"] if "checkout" in one.get("uses", "")
    )
    assert "ref" not in checkout["with"]
    assert "git checkout" not in text and "head.ref" not in text and "secrets" not in text


class Board(NamedTuple):
    """The repository of a board on the server, and the runner that its actions run on."""

    origin: Path
    runner: Path
    environment: Mapping[str, str]

    def git(self, *arguments: str, place: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=place or self.runner,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def propose(self, number: int, place: Path, change: Callable[[Path], None]) -> None:
        """Open a pull request from a clone of somebody else."""
        self.git("clone", "-q", str(self.origin), str(place), place=self.origin)
        change(place)
        self.git("add", "-A", "-f", place=place)
        self.git("commit", "-qm", "Submit", place=place)
        self.git("push", "-q", "origin", f"HEAD:refs/pull/{number}/head", place=place)

    def step(self, workflow: str, job: str, name: str, **inputs: str) -> tuple[int, str]:
        """Do a step of a workflow on a fresh checkout of main; its code and output."""
        if not inputs.get("keep"):
            self.git("fetch", "-q", "origin", "main")
            self.git("checkout", "-qf", "--detach", "origin/main")
        steps = load(WORKFLOWS / workflow)["jobs"][job]["steps"]
        (script,) = (one["run"] for one in steps if one.get("name") == name)
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.runner,
            env={**self.environment, **inputs},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def check(self, number: int) -> tuple[int, str]:
        """What the check of a pull request ends with, and the comment that it would post."""
        place = {"SERVER": str(self.origin.parent), "REPOSITORY": self.origin.name}
        code, said = self.step(
            "check.yml", "check", "Fetch the pull request", NUMBER=str(number), **place
        )
        assert code == 0, said
        (self.runner / "comment.md").unlink(missing_ok=True)
        code, said = self.step("check.yml", "check", "Check", keep="1")
        comment = self.runner / "comment.md"
        assert comment.is_file(), said
        return code, comment.read_text(encoding="utf-8")

    def merge(self, number: int, place: Path) -> None:
        self.git("push", "-q", "origin", "HEAD:main", place=place)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("board")


@pytest.fixture(scope="module")
def dataset(folder: Path) -> Path:
    return workflow_data(folder / "data")


@pytest.fixture(scope="module")
def honest(folder: Path, dataset: Path) -> Path:
    """A bundle of all tasks, of which every tenth fails, as its submitter makes it."""
    run, out = workflow_run(dataset, folder / "run"), folder / "honest.zip"
    options: list[str | Path] = [
        "--data",
        dataset,
        "--key",
        folder / "key.pem",
        "--system",
        "My <agent> @all",
    ]
    result = gta("leaderboard", "submit", run, "--out", out, *options)
    assert result.exit_code == 0, result.output
    return out


@pytest.fixture
def board(tmp_path: Path, dataset: Path) -> Board:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "gta"
    program.write_text(GTA.format(python=sys.executable))
    program.chmod(0o755)
    environment = {
        "PATH": f"{tmp_path / 'bin'}:{os.defpath}",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HOME": str(tmp_path),
        "GIT_AUTHOR_NAME": "somebody",
        "GIT_AUTHOR_EMAIL": "somebody@example.org",
        "GIT_COMMITTER_NAME": "somebody",
        "GIT_COMMITTER_EMAIL": "somebody@example.org",
    }
    made = Board(tmp_path / "board.git", tmp_path / "runner", environment)
    made.git("init", "-q", "--bare", "-b", "main", str(made.origin), place=tmp_path)
    first = tmp_path / "first"
    shutil.copytree(TEMPLATE, first)
    made.git("init", "-q", "-b", "main", place=first)
    made.git("add", "-A", place=first)
    made.git("commit", "-qm", "Begin a board", place=first)
    made.git("push", "-q", str(made.origin), "main", place=first)
    made.git("clone", "-q", str(made.origin), str(made.runner), place=tmp_path)
    (made.runner / "data").mkdir()
    (made.runner / "data" / "gta_workflow").symlink_to(dataset)
    return made


def adds(bundle: Path, name: str = "my-model.zip") -> Callable[[Path], None]:
    def change(place: Path) -> None:
        shutil.copy(bundle, place / "submissions" / name)

    return change


@pytest.mark.slow
def test_an_honest_bundle_comes_from_a_pull_request_to_the_built_board(
    board: Board, honest: Path, tmp_path: Path
) -> None:
    board.propose(1, tmp_path / "submitter", adds(honest))
    code, comment = board.check(1)
    assert code == 0, comment
    assert "## Submission accepted" in comment
    assert (
        r"My \<agent\> @<!-- -->all | GTA-Workflow, models | Root SR 89.39 (82.9 to 93.6)"
        in comment
    )
    assert "Merging adds 1 row of the tier self-reported." in comment
    board.merge(1, tmp_path / "submitter")
    address = "https://github.com/me/board"
    code, said = board.step("publish.yml", "build", "Build", ADDRESS=address)
    assert code == 0, said
    assert "Wrote 66 rows." in said
    front = (board.runner / "site" / "index.html").read_text(encoding="utf-8")
    assert front.count('<li class="interval published') == 65
    assert front.count('<li class="interval self-reported') == 1
    assert f'<a href="{address}">' in front
    # The same run again, under another name of the file.
    board.propose(2, tmp_path / "again", adds(honest, "other.zip"))
    code, comment = board.check(2)
    assert code == 1
    assert "- **entry**: the board already has" in comment


@pytest.mark.slow
def test_a_forged_bundle_is_refused_with_a_line_for_each_problem(
    board: Board, honest: Path, tmp_path: Path
) -> None:
    better = replaced("runs/1/verdicts.jsonl", '"value":2.0', '"value":9.0')
    forged = changed(honest, tmp_path / "forged.zip", better, signed=True)
    board.propose(1, tmp_path / "submitter", adds(forged))
    code, comment = board.check(1)
    assert code == 1
    lines = comment.splitlines()
    assert lines[:2] == [
        "<!-- gta-bench:leaderboard -->",
        "## Submission refused: 5 problems",
    ]
    assert "- **scores**: Root SR is 89.39 in the entry and 100.00 in the logs" in lines
    assert "- **scores**: scores.json of run 1 does not follow from its logs" in lines
    assert sum(line.startswith("- **") for line in lines) == 5
    # Pushed to main without the check, it is not published either.
    board.merge(1, tmp_path / "submitter")
    code, said = board.step("publish.yml", "build", "Build", ADDRESS="https://github.com/me/board")
    assert code != 0
    assert "my-model.zip is rejected (scores: " in said
    assert not (board.runner / "site").exists()


def changes_the_check(place: Path) -> None:
    (place / "check.sh").write_text("#!/bin/bash\necho fine > comment.md\n")


def adds_an_entry(place: Path) -> None:
    stated = read_published_entries()[0].model_copy(update={"id": "me", "status": "reproduced"})
    (place / "submissions" / "me.json").write_text(stated.model_dump_json())


def adds_a_link(place: Path) -> None:
    (place / "submissions" / "my-model.zip").symlink_to("/etc/passwd")


def adds_another_name(place: Path) -> None:
    (place / "submissions" / "[x](http:evil).zip").write_text("x")


@pytest.mark.parametrize(
    "change", [changes_the_check, adds_an_entry, adds_a_link, adds_another_name]
)
def test_only_new_bundles_are_submissions(
    board: Board, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    board.propose(1, tmp_path / "submitter", change)
    code, comment = board.check(1)
    assert code == 1
    assert "- **files**: a submission only adds files such as `submissions/my-model.zip`" in comment
    assert "evil" not in comment


@pytest.mark.slow
def test_a_file_that_is_no_archive_is_refused(board: Board, tmp_path: Path) -> None:
    def change(place: Path) -> None:
        (place / "submissions" / "my-model.zip").write_text('{"id": "entry"}')

    board.propose(1, tmp_path / "submitter", change)
    code, comment = board.check(1)
    assert code == 1
    assert "- **archive**: it is not a zip archive" in comment
