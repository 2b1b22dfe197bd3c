"""Every console block of README and docs is run as written; the output it shows must come."""

import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import workflow_task, write_json, write_workflow
from tests.conftest import REPOSITORY
from tests.file_server import serving

ATOMIC_ARCHIVE = "/open-compass/GTA/releases/download/v0.1.0/gta_dataset.zip"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
WITH_BLOCKS = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]


def commands(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Each `$ ` line of the page's console blocks, with the output lines shown below it."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *output = part.rstrip("\n").split("\n")
            yield command, output


def pattern(shown: str) -> str:
    """The shown line as a pattern; `…` stands for anything."""
    return ".*".join(re.escape(part.strip()) for part in re.split("…", shown))


@pytest.fixture(scope="module")
def archive(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The release's archive, as a server would give it."""
    file = tmp_path_factory.mktemp("release") / "gta_dataset.zip"
    source = data_dir / "gta_atomic"
    with zipfile.ZipFile(file, "w") as opened:
        for member in sorted(source.rglob("*")):
            opened.write(member, f"gta_dataset/{member.relative_to(source)}")
    return file.read_bytes()


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: page.name)
def test_console_blocks_run_as_written(
    page: Path, tmp_path: Path, archive: bytes, loopback: None
) -> None:
    with serving() as server:
        server.files[ATOMIC_ARCHIVE] = archive
        settings = f'[data]\ngithub = "{server.url}"\n'
        (tmp_path / "gta.toml").write_text(settings, encoding="utf-8")
        write_results(tmp_path)
        for command, shown in commands(page):
            program, *arguments = shlex.split(command)
            assert program == "gta", f"{page.name}: {command}"
            result = subprocess.run(
                [sys.executable, "-m", "gta_bench.cli", *arguments],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
            )
            said = result.stdout + result.stderr
            assert result.returncode == 0, f"{command}\n{said}"
            for line in shown:
                assert re.search(pattern(line), said), f"{command}: {line!r} not in\n{said}"


def write_results(folder: Path) -> None:
    """A small Workflow dataset, and finished results of it as a folder and as a pack."""
    write_workflow(folder / "mini", {name: workflow_task() for name in ("0", "1", "2")})
    for name in (
        "0/final.txt",
        "0/files/report.md",
        "0/files/data/a.csv",
        "1/final.txt",
        "1/files/b.md",
    ):
        file = folder / "results" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("Done.", encoding="utf-8")
    write_json(folder / "results" / "0" / "meta.json", {"seconds": 95, "cost_usd": 0.4})
    steps = [[{"role": "assistant", "content": "Done."}]]
    files = ["results/0/files/report.md", "../secret.txt"]
    entry = {"task_id": 0, "assistant_outputs": steps, "attached_files": files}
    write_json(folder / "pack.json", {"schema_version": 1, "tasks": [entry]})


def test_readme_has_console_blocks() -> None:
    assert REPOSITORY / "README.md" in WITH_BLOCKS


LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_of_the_repository_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"
