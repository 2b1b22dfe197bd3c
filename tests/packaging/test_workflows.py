"""The files that GitHub reads: valid, without known weaknesses, and made of `make` targets."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.conftest import REPOSITORY

BIN = Path(sys.executable).parent
GITHUB = REPOSITORY / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "custom.github-workflows-require-timeout": WORKFLOWS,
    "vendor.github-actions": sorted((GITHUB / "actions").glob("*/action.yml")),
    "vendor.dependabot": [GITHUB / "dependabot.yml"],
    "vendor.github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
    "vendor.github-issue-forms": [
        file for file in sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) if file.stem != "config"
    ],
}


def run(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [BIN / program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def audit(*inputs: Path) -> subprocess.CompletedProcess[str]:
    options = ("--offline", "--no-progress", "--color=never", "--strict-collection")
    return run("zizmor", *options, *inputs)


def load(file: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return loaded


def steps() -> Iterator[dict[str, Any]]:
    for file in WORKFLOWS:
        for job in load(file)["jobs"].values():
            yield from job.get("steps", [])


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_follow_the_schema(schema: str) -> None:
    assert SCHEMAS[schema]
    checked = run("check-jsonschema", "--builtin-schema", schema, *SCHEMAS[schema])
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_zizmor_finds_nothing() -> None:
    audited = audit(GITHUB)
    assert audited.returncode == 0, audited.stdout + audited.stderr


def test_zizmor_finds_an_action_that_is_not_pinned_to_a_commit(tmp_path: Path) -> None:
    workflow = (GITHUB / "workflows" / "docs.yml").read_text(encoding="utf-8")
    planted = tmp_path / ".github" / "workflows" / "docs.yml"
    planted.parent.mkdir(parents=True)
    planted.write_text(re.sub(r"@[0-9a-f]{40} # (v[\d.]+)", r"@\1", workflow), encoding="utf-8")
    audited = audit(tmp_path)
    assert audited.returncode != 0
    assert "unpinned-uses" in audited.stdout


def test_workflows_call_make_targets_that_exist() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    commands = [step["run"] for step in steps() if step.get("run", "").startswith("make ")]
    targets = {target for command in commands for target in command.split()[1:]}
    assert targets >= {"check", "coverage", "docs", "test", "test-core", "test-slow"}
    assert targets <= {*re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)}


def test_the_groups_of_slow_tests_are_all_of_them() -> None:
    groups = load(GITHUB / "workflows" / "ci.yml")["jobs"]["slow"]["strategy"]["matrix"]["include"]
    files = {*REPOSITORY.glob("tests/**/test_*.py")}
    covered = [file for group in groups for file in selected(group["select"], files)]
    assert sorted(covered) == sorted(files), "each file is in one group"


def selected(options: str, files: set[Path]) -> set[Path]:
    """The files that pytest would collect with these paths and `--ignore` options."""
    chosen: set[Path] = set()
    for option in options.split():
        path = REPOSITORY / option.removeprefix("--ignore=")
        assert path.exists(), option
        below = {file for file in files if file.is_relative_to(path)}
        chosen = chosen - below if option.startswith("--ignore=") else chosen | below
    return chosen


def test_only_the_jobs_that_publish_may_ask_for_an_identity() -> None:
    release = load(GITHUB / "workflows" / "release.yml")
    assert release["permissions"] == {}
    jobs = {name for name, job in release["jobs"].items() if "id-token" in job["permissions"]}
    assert jobs == {"publish", "docs"}
    assert release["jobs"]["publish"]["environment"] == "pypi"
    assert release["jobs"]["docs"]["needs"] == "publish"
    assert "secrets." not in (GITHUB / "workflows" / "release.yml").read_text(encoding="utf-8")
