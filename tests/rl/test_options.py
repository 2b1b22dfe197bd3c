"""Environments by options, and the mistakes in them."""

import asyncio
import itertools
import logging
from pathlib import Path
from typing import Any

import pytest

from gta_bench.datasets.model import AtomicDataset
from gta_bench.demo import ATOMIC, WORKFLOW
from gta_bench.errors import EnvironmentProblem, GtaError, UsageError
from gta_bench.rl.chat import ChatEpisode
from gta_bench.rl.options import EpisodeMaker, EpisodeOptions, read_options
from gta_bench.tape.storage import Tape
from tests.authoring.folders import TASK, write_authored


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("{families", "not JSON"),
        ("", "not JSON"),
        ("[]", "must be a JSON object"),
        ("null", "must be a JSON object"),
        ('{"family": ["chart"]}', "Option 'family': .* Options are families, "),
        ({"families": ["chart"], "max_steps": 0}, "Option 'max_steps'"),
        ({"families": ["chart"], "reward": "judge"}, "Option 'reward'"),
        ({}, "either `families`"),
        ({"families": ["chart"], "data": "tasks"}, "either `families`"),
        ({"families": ["chart"], "tape": "a", "server": "http://b"}, "remove one of them"),
        ({"families": ["chrat"]}, "no family 'chrat'.*chart"),
        ({"families": ["bars"]}, "bars is an atomic family"),
        ({"families": ["chart"], "namespace": "test"}, "no namespace 'test'"),
        ({"families": ["chart"], "namespace": "private"}, "needs a key"),
        ({"families": ["chart"], "key_file": "missing"}, "`key_file` 'missing' cannot be read"),
        ({"families": ["chart"], "level": 4}, "no level 4"),
        ({"families": ["chart"], "forge_seed": "a b"}, "The seed 'a b'"),
        ({"families": ["chart"], "server": "here"}, "'here' is neither"),
        ({"data": "missing"}, "`data` 'missing' is neither .* nor a folder of task folders"),
        ({"data": "."}, "`data` '.' is neither"),
        ({"data": str(WORKFLOW)}, "Task .*: only a judge can decide"),
        ({"data": "tasks", "reward": "step"}, "`reward` has no effect on tasks with checks"),
        ({"data": str(ATOMIC), "similarity": "x"}, "Unknown similarity 'x'"),
        ({"data": str(ATOMIC), "forge_seed": "1"}, "`forge_seed` has no effect on `data`"),
        ({"data": str(ATOMIC), "key_file": "key"}, "`key_file` has no effect on `data`"),
        ({"families": ["chart"], "reward": "step"}, "`reward` has no effect on `families`"),
        ({"families": ["chart"], "similarity": "x"}, "`similarity` has no effect"),
        ({"families": ["chart"], "folder": "/dev/null/x"}, "`folder` '/dev/null/x' cannot be"),
        ({"families": ["chart"], "folder": "key"}, "`folder` 'key' cannot be used: File exists"),
        ({"families": ["chart"], "tape": "missing"}, "missing"),
    ],
)
def test_a_mistake_is_explained_in_one_line(
    options: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key").write_text("k", encoding="utf-8")
    write_authored(tmp_path / "tasks")
    with pytest.raises(GtaError, match=message) as raised:
        EpisodeMaker(read_options(options))
    assert "\n" not in str(raised.value)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*modules: str) -> list[str]:
        return ["docx"]

    monkeypatch.setattr("gta_bench.packages.missing_packages", missing)
    with pytest.raises(EnvironmentProblem, match=r"needs docx.*gta-bench\[forge\]"):
        EpisodeMaker(EpisodeOptions(families=("chart",)))


def test_a_seed_means_one_episode_and_a_dataset_is_listed_by_its_tasks(
    dataset: AtomicDataset, tape: Tape, tmp_path: Path
) -> None:
    options = EpisodeOptions(
        data=str(dataset.root),
        tape=str(tape.folder),
        similarity="exact-or-half",
        folder=str(tmp_path / "w"),
    )
    maker = EpisodeMaker(options)
    assert [one.task for one in maker.list_choices()] == [*dataset.tasks]
    assert [one.seed for one in maker.list_choices(3, 7)] == [7, 8, 9]

    async def start(seed: int) -> tuple[str, str]:
        episode = ChatEpisode(await maker.make())
        started = await episode.start(seed=seed)
        episode.close()
        return started.info["task"], started.prompt

    async def run() -> list[tuple[str, str]]:
        found = [await start(seed) for seed in (1, 2, 1, 2)]
        await maker.close()
        return found

    found = asyncio.run(run())
    assert found[:2] == found[2:] and found[0] != found[1]


def test_families_have_no_last_task() -> None:
    maker = EpisodeMaker(read_options('{"families": "chart,invoices"}'))
    assert maker.endless
    assert [one.seed for one in itertools.islice(maker.list_choices(), 3)] == [0, 1, 2]
    asyncio.run(maker.close())


def test_a_server_needs_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GTA_TOOLS_TOKEN", raising=False)
    maker = EpisodeMaker(EpisodeOptions(families=("chart",), server="http://127.0.0.1:9"))

    async def run() -> None:
        try:
            await maker.make()
        finally:
            await maker.close()

    with pytest.raises(EnvironmentProblem, match="GTA_TOOLS_TOKEN"):
        asyncio.run(run())


def test_a_maker_closes_while_an_episode_is_open() -> None:
    maker = EpisodeMaker(EpisodeOptions(data=str(ATOMIC), similarity="exact-or-half"))

    async def run() -> Path:
        episode = ChatEpisode(await maker.make())
        with pytest.raises(UsageError, match="named by a text or None, not 5"):
            await episode.start(task=5)  # type: ignore[arg-type]
        folder = (await episode.start(task="receipt")).info["folder"]
        await maker.close()
        episode.close()
        return folder

    assert not asyncio.run(run()).parent.exists()


def test_tools_that_do_not_work_here_are_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    absent = {"pydantic_monty"}
    caplog.set_level(logging.WARNING)

    def missing(*modules: str) -> list[str]:
        return [module for module in modules if module in absent]

    monkeypatch.setattr("gta_bench.tools.packages.missing_packages", missing)

    def make(**options: Any) -> list[str]:
        caplog.clear()
        asyncio.run(EpisodeMaker(EpisodeOptions(**options)).close())
        return [record.getMessage() for record in caplog.records if record.name.endswith("options")]

    (said,) = make(families=("budget", "sales"))
    assert said.startswith("1 of 3 tools of these tasks are not available here: Calculator (py")
    assert "Set `server`" in said and "\n" not in said
    write_authored(tmp_path / "tasks", "tools = ['ReadCSV', 'Calculator']\n" + TASK)
    (said,) = make(data=str(tmp_path / "tasks"))
    assert said.startswith("1 of 2 tools")
    assert make(families=("clean",)) == []
    assert make(families=("sales",), server="http://127.0.0.1:9") == []
    absent.clear()
    assert make(families=("budget", "sales")) == []


def test_tools_are_checked_inside_an_event_loop() -> None:
    async def run() -> None:
        await EpisodeMaker(EpisodeOptions(families=("clean",))).close()

    asyncio.run(run())
