"""Every console block of README and docs is run as written; the output it shows must come."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.builders import write_json
from tests.docs.blocks import ALL, PAGES, Block
from tests.file_server import serving
from tests.slow.test_failing_starts import WITHOUT

RELEASES = "/open-compass/GTA/releases/download"
ARCHIVES = {
    f"{RELEASES}/v0.1.0/gta_dataset.zip": ("gta_atomic", "gta_dataset"),
    f"{RELEASES}/v0.2.0/gta_workflow_dataset.zip": ("gta_workflow", "gta_workflow_dataset"),
}
# These are run by tests/packaging/test_first_hour.py, with a real model.
FIRST_HOUR = {"README.md", "first-model.md", "first-harness.md", "finished-results.md"}
# Its files are edited between commands: test_own_tasks_tutorial.py.
STEP_BY_STEP = {"own-tasks.md"}
WITH_BLOCKS = [
    page
    for page in PAGES
    if any((one.page, one.language) == (page, "console") for one in ALL)
    and page.name not in FIRST_HOUR | STEP_BY_STEP
]
# These take many processes, and minutes; they are run by hand.
LONG = {"cluster.md", "rejudging.md", "tape.md", "writing-a-tool.md"}
Said = tuple[int, str]


def commands(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Each `$ ` line of the page's console blocks, with the output lines shown below it."""
    for block in ALL:
        if (block.page, block.language) == (page, "console"):
            yield from split_commands(block)


def split_commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each `$ ` line of a console block, with the output lines shown below it."""
    for part in re.split(r"^\$ ", block.text.replace("\\\n", " "), flags=re.M)[1:]:
        command, *output = part.rstrip("\n").split("\n")
        yield command, output


def pattern(shown: str) -> str:
    """The shown line as a pattern; `…` stands for anything."""
    return ".*".join(re.escape(part.strip()) for part in re.split("…", shown))


@pytest.fixture(scope="module")
def archives(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The releases' archives, as a server would give them."""
    folder = tmp_path_factory.mktemp("releases")
    return {
        address: _packed(data_dir / source, folder / name, name)
        for address, (source, name) in ARCHIVES.items()
    }


def _packed(source: Path, file: Path, inside: str) -> bytes:
    with zipfile.ZipFile(file, "w") as opened:
        for member in sorted(source.rglob("*")):
            opened.write(member, f"{inside}/{member.relative_to(source)}")
    return file.read_bytes()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Said]:
    """`gta demo`, which several pages begin with: run once, and copied for each of them.

    Without the local model, which the pages do not need and which may or may not be here.
    """
    program = WITHOUT.format("xllamacpp")

    @cache
    def once() -> tuple[Path, Said]:
        folder = tmp_path_factory.mktemp("demo")
        return folder / "gta-demo", _ran([sys.executable, "-c", program, "demo"], folder)

    def copied(folder: Path) -> Said:
        made, said = once()
        shutil.copytree(made, folder / "gta-demo")
        return said

    return copied


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.measure if page.name in LONG else ())
        for page in WITH_BLOCKS
    ],
    ids=lambda page: page.name,
)
def test_console_blocks_run_as_written(
    page: Path,
    tmp_path: Path,
    archives: dict[str, bytes],
    demo: Callable[[Path], Said],
    loopback: None,
) -> None:
    with serving() as server:
        server.files.update(archives)
        settings = f'[data]\ngithub = "{server.url}"\n'
        (tmp_path / "gta.toml").write_text(settings, encoding="utf-8")
        write_files(page, tmp_path)
        for command, shown in commands(page):
            words = shlex.split(command)
            code, said = demo(tmp_path) if words == ["gta", "demo"] else run(words, tmp_path)
            assert code == 0, f"{page.name}: {command}\n{said}"
            for line in shown:
                assert re.search(pattern(line), said), f"{command}: {line!r} not in\n{said}"


def run(words: list[str], folder: Path) -> Said:
    """A command of the page in its folder; what pip installs is seen by those after it."""
    program, *arguments = words
    if program == "pip":
        assert arguments[0] == "install"
        options = ["--quiet", "--no-deps", "--disable-pip-version-check", "--target", "site"]
        return _ran([sys.executable, "-m", "pip", "install", *options, *arguments[1:]], folder)
    assert program == "gta", f"{program} is not run by this test"
    return _ran([sys.executable, "-m", "gta_bench", *arguments], folder)


def _ran(command: list[str], folder: Path) -> Said:
    paths = [str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return result.returncode, result.stdout + result.stderr


def write_files(page: Path, folder: Path) -> None:
    """The files that the page tells to make, by the titles of its blocks."""
    for block in ALL:
        if block.page == page and block.title is not None:
            file = folder / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")


def write_results(folder: Path) -> None:
    """Finished results of one task of GTA-Workflow, as a folder and as a pack."""
    for name in ("7/final.txt", "7/files/report.md", "7/files/data/a.csv"):
        file = folder / "results" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("Done.", encoding="utf-8")
    write_json(folder / "results" / "7" / "meta.json", {"seconds": 95, "cost_usd": 0.4})
    steps = [[{"role": "assistant", "content": "Done."}]]
    files = ["results/7/files/report.md", "../secret.txt"]
    entry = {"task_id": 7, "assistant_outputs": steps, "attached_files": files}
    write_json(folder / "pack.json", {"schema_version": 1, "tasks": [entry]})
