"""Commands of the docs' shell blocks, done on the demo's tasks: a script stands in for each model.

test_blocks.py has every command read; here those are executed that end by themselves and need no
cluster, store, server or program of somebody else. What is not executed is listed with the reason.
"""

import glob
import json
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.demo import ATOMIC, WORKFLOW
from tests.chat_server import ChatServer, chat_server
from tests.conftest import REPOSITORY
from tests.docs.blocks import Block, of
from tests.docs.command_lines import gta_commands
from tests.docs.test_console_blocks import FIRST_HOUR, write_files
from tests.needs import needs

pytestmark = pytest.mark.measure

NOT_DONE = {
    "--cluster": "Ray: tests/slow/test_shards.py",
    "/shared/": "the same",
    "--workers": "a console block does it",
    "s3://": "a store: tests/slow/test_stores.py",
    "data fetch": "the published repository: tests/datasets",
    "tools serve": "a server, which does not end: tests/served",
    "--tools http": "needs that server: tests/served",
    "--harness-name": "a program of somebody else: tests/slow/test_real_harnesses.py",
    "--data tickets": "servers of somebody else: tests/slow/test_real_servers.py",
    "my-agent": "the reader's own program; others stand beside it",
    "view runs": "an app, which does not end: tests/slow/test_app.py",
    "judge label": "a page, which does not end: tests/slow/test_label_page.py",
    "judge calibrate": "needs people's labels: tests/cli/test_judge_quality.py",
    "judge drift": "needs two dates: tests/cli/test_judge_quality.py",
    "opencompass": "needs published results: tests/cli",
    "--predictions": "the same",
    "runs/m ": "the same",
    "tasks-2": "two versions of a dataset: tests/cli/test_dataset_versions.py",
    "data add": "a repository and a hub: tests/cli/test_own_datasets.py",
}
MODEL, JUDGES = "stand-in", ("scripted/honest", "scripted/frame")
SETTINGS = """
[scoring]
similarity = "exact-or-half"
[models.stand-in]
model = "openai-api/local/stand-in"
base_url = "{url}"
key_env = "LOCAL_KEY"
"""
WITH_HARNESSES = {"harnesses.md"}
EXTENSION = REPOSITORY / "examples" / "extension" / "README.md"  # tests/test_extension.py
PAGES = list(
    dict.fromkeys(
        block.page
        for block in of("sh")
        if block.page != EXTENSION and block.page.name not in FIRST_HOUR
    )
)


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    """A model that says the same to everybody."""
    with chat_server() as opened:
        yield opened


@pytest.fixture
def place(
    server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loopback: None
) -> Path:
    """The datasets where they are looked for, finished results, the examples."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCAL_KEY", "none")
    shutil.copytree(ATOMIC, tmp_path / "data" / "gta_atomic")
    shutil.copytree(WORKFLOW, tmp_path / "data" / "gta_workflow")
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    (tmp_path / "gta.toml").write_text(SETTINGS.format(url=server.url), encoding="utf-8")
    made = CliRunner().invoke(app, ["task", "new", "tasks/q3-sales"])
    assert made.exit_code == 0, made.output
    answer = tmp_path / "results" / "sales" / "final.txt"
    answer.parent.mkdir(parents=True)
    answer.write_text("486 umbrellas.", encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def made_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test leaves a run for commands on runs that the reader has already."""
    return tmp_path_factory.mktemp("before") / "run"


@pytest.fixture
def finished(place: Path, made_before: Path) -> Path:
    """A judged run of GTA-Workflow's kind."""
    if not made_before.exists():
        options = ["--model", MODEL, "--judge", JUDGES[0], "--out", str(made_before)]
        ran = CliRunner().invoke(app, ["run", "workflow", *options])
        assert ran.exit_code == 0, ran.output
    return made_before


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=needs("bwrap") if page.name in WITH_HARNESSES else ())
        for page in PAGES
    ],
    ids=lambda page: str(page.relative_to(REPOSITORY)),
)
def test_commands_of_shell_blocks_are_done(page: Path, place: Path, finished: Path) -> None:
    stand_ins = Path("gta.toml").read_text(encoding="utf-8")
    write_files(page, place)
    with Path("gta.toml").open("r+", encoding="utf-8") as settings:
        if stand_ins not in settings.read():
            settings.write(stand_ins)
    for block, words in _commands(page):
        said = " ".join([*words, ""])
        if any(part in said for part in NOT_DONE):
            continue
        for name in _runs(words):
            if not Path(name).exists():
                _copy_as_another(finished, Path(name))
        ran = CliRunner().invoke(app, list(_with_stand_ins(words)))
        assert ran.exit_code == 0, f"{block.place}: gta {said}\n{ran.output}{ran.exception!r}"


def _copy_as_another(run: Path, name: Path) -> None:
    """A run of its own: one that began at another time."""
    shutil.copytree(run, name)
    manifest = json.loads((name / "run.json").read_text("utf-8"))
    began = datetime.fromisoformat(manifest["created"])
    later = began + timedelta(seconds=len(str(name)) + sum(map(ord, name.name)))
    manifest["created"] = later.isoformat()
    (name / "run.json").write_text(json.dumps(manifest), "utf-8")


def test_every_reason_is_still_one() -> None:
    lines = [" ".join([*words, ""]) for page in PAGES for _, words in _commands(page)]
    assert [part for part in NOT_DONE if not any(part in line for line in lines)] == []


def _commands(page: Path) -> Iterator[tuple[Block, list[str]]]:
    for block in of("sh"):
        if block.page == page:
            yield from ((block, words) for words in gta_commands(block.text))


def _runs(words: list[str]) -> list[str]:
    """The runs that a command reads: named, but not by --out."""
    pairs = zip(["", *words], words, strict=False)
    return [word for before, word in pairs if word.startswith("runs/") and before != "--out"]


def _with_stand_ins(words: list[str]) -> Iterator[str]:
    """The command with models that need no key, tasks of the demo, and names for stars."""
    judges = iter(JUDGES)
    if words[:2] == ["judge", "attack"] and "--carrier" not in words:
        words = [*words, "--carrier", "text"]  # all 33 of them: tests/judge_quality/attacks
    for before, word in zip(["", *words], words, strict=False):
        if before == "--model":
            yield MODEL
        elif before in ("--judge", "--cheap", "--strong"):
            yield next(judges)
        elif before == "--task":
            yield "sales"
        elif "*" in word:
            yield from sorted(glob.glob(word))  # noqa: PTH207
        else:
            yield word
