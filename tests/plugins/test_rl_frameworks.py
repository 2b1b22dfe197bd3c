"""The three RL plugins against the published interfaces: gold earns 1, an empty answer 0."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from gta_bench.datasets.atomic import load_atomic
from gta_bench.errors import UsageError
from gta_bench.rl.options import EpisodeMaker, EpisodeOptions
from gta_bench.tape.reference import write_reference_tape
from tests.builders import write_atomic
from tests.plugins.published_rl import (
    NEMO_GYM,
    OPENENV,
    VERIFIERS,
    HarnessConfig,
    ProgramResult,
    TaskData,
    Trace,
    complete,
    respond,
)
from tests.plugins.stand_ins import imported
from tests.tape.datasets import CALCULATOR, multiplication

CALL = ("Calculator", '{"expression": "2*7"}')


@pytest.fixture
def options(tmp_path: Path) -> EpisodeOptions:
    tasks = {str(number): multiplication(number) for number in (2, 3)}
    data = write_atomic(tmp_path / "data", tasks, [CALCULATOR])
    write_reference_tape(load_atomic(data), tmp_path / "tape")
    return EpisodeOptions(
        data=str(data),
        tape=str(tmp_path / "tape"),
        reward="tool-use",
        similarity="exact-or-half",
        folder=str(tmp_path / "work"),
    )


@pytest.fixture
def openenv(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with imported("openenv", OPENENV, monkeypatch) as module:
        yield module


@pytest.fixture
def nemo_gym(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with imported("nemo_gym", NEMO_GYM, monkeypatch) as module:
        yield module


@pytest.fixture
def episodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with imported("verifiers", VERIFIERS, monkeypatch, plugin="gta_bench_episodes") as module:
        yield module


def test_openenv_plays_with_and_without_an_event_loop(
    openenv: Any, options: EpisodeOptions, tmp_path: Path
) -> None:
    environment = openenv.GTAEnvironment(EpisodeMaker(options).make)
    with pytest.raises(UsageError, match="call reset first"):
        environment.step(openenv.GTAAction(answer="14"))
    seen = environment.reset(task="2")
    assert seen.text.endswith("What is 2*7?") and not seen.done and seen.reward is None
    assert [tool["name"] for tool in seen.tools] == ["Calculator"]
    with pytest.raises(UsageError, match="either a `tool` or an `answer`"):
        environment.step(openenv.GTAAction())
    called = environment.step(openenv.GTAAction(tool=CALL[0], arguments=json.loads(CALL[1])))
    assert called.text == "14" and not called.done
    last = environment.step(openenv.GTAAction(answer="It is 14."))
    assert last.done and called.reward + last.reward == pytest.approx(1)
    assert last.metadata["parts"]["outcome"] == 1 and not last.metadata["truncated"]
    assert (environment.state.episode_id, environment.state.step_count) == ("2", 2)
    assert environment.reset(seed=4).text == environment.reset(seed=4).text
    assert environment.step(openenv.GTAAction(answer="")).reward == 0
    environment.close()
    assert not any((tmp_path / "work").iterdir())


def test_openenv_serves_and_explains_a_mistake(
    openenv: Any, options: EpisodeOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: dict[str, Any] = {}
    monkeypatch.setattr(openenv.uvicorn, "run", lambda app, **more: served.update(more, app=app))
    monkeypatch.setattr("sys.argv", ["gta-openenv", options.model_dump_json(), "--port", "81"])
    openenv.main()
    assert (served["host"], served["port"]) == ("127.0.0.1", 81)
    assert isinstance(served["app"], openenv.GTAEnvironment)
    monkeypatch.setattr("sys.argv", ["gta-openenv", '{"families": ["chrat"]}'])
    with pytest.raises(SystemExit, match="gta-openenv: There is no family 'chrat'"):
        openenv.main()
    monkeypatch.setattr("sys.argv", ["gta-openenv", options.model_dump_json(), "--port", "99999"])
    with pytest.raises(SystemExit, match="gta-openenv: --port 99999: ports are 0 to 65535"):
        openenv.main()


def test_nemo_gym_plays_a_session_for_each_rollout(
    nemo_gym: Any, options: EpisodeOptions, tmp_path: Path
) -> None:
    config = nemo_gym.GTAServerConfig(episodes=options.model_dump())
    server = nemo_gym.GTAServer(config=config)

    async def play() -> None:
        prompt, info = await server.reset({"task": "2"}, "one")
        assert prompt.endswith("What is 2*7?") and info["task"] == "2"
        other, _ = await server.reset({"seed": 4}, "two")
        assert other == (await server.reset({"seed": 4}, "two"))[0]
        _, first, done, _, info = await server.step(respond(CALL), {}, "one")
        assert info["tool_outputs"] == [{"call_id": "c0", "output": "14"}] and not done
        _, second, done, truncated, _ = await server.step(respond(text="It is 14."), {}, "one")
        assert done and not truncated and first + second == pytest.approx(1)
        assert (await server.step(respond(text=""), {}, "two"))[1] == 0
        for session in ("one", "two"):
            await server.close_session(session)
        with pytest.raises(UsageError, match="call /reset first"):
            await server.step(respond(text=""), {}, "one")

    asyncio.run(play())
    assert not any((tmp_path / "work").iterdir())
    with pytest.raises(UsageError, match="either `families`"):
        nemo_gym.GTAServer(config=nemo_gym.GTAServerConfig())


def test_rows_of_nemo_gym_name_an_episode_and_its_tools(
    nemo_gym: Any,
    options: EpisodeOptions,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from gta_bench_nemo_gym import rows

    out = tmp_path / "rows.jsonl"
    command = ["gta-nemo-gym-rows", options.model_dump_json(), "--out", str(out)]
    monkeypatch.setattr("sys.argv", command)
    rows.main()
    assert capsys.readouterr().out.startswith("2 rows")
    found = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["task"] for row in found] == ["2", "3"] and "seed" not in found[0]
    assert found[0]["responses_create_params"]["tools"][0]["name"] == "Calculator"
    monkeypatch.setattr("sys.argv", [*command, "--count", "3", "--first", "5"])
    rows.main()
    found = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["seed"] for row in found] == [5, 6, 7]
    monkeypatch.setattr("sys.argv", [command[0], '{"families": ["chart"]}', *command[2:]])
    with pytest.raises(SystemExit, match="set --count"):
        rows.main()


@pytest.mark.parametrize(("gold", "reward"), [(True, 1.0), (False, 0.0)])
def test_verifiers_plays_with_the_model_of_the_rollout(
    episodes: Any,
    options: EpisodeOptions,
    gold: bool,
    reward: float,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json=complete(request.content, gold=gold))

    results, trace = launch(episodes, options, answer, monkeypatch)
    assert results.exit_code == 0
    assert asked[0].url == "http://127.0.0.1:9/v1/chat/completions"
    assert asked[0].headers["authorization"] == "Bearer secret"
    task = episodes.EpisodeTask(TaskData())
    assert asyncio.run(task.reward(trace)) == pytest.approx(reward)
    assert asyncio.run(task.parts(trace))["gta_steps"] == len(asked) == (2 if gold else 1)
    assert not any((tmp_path / "work").iterdir())


def launch(
    episodes: Any,
    options: EpisodeOptions,
    answer: Any,
    monkeypatch: pytest.MonkeyPatch,
    stop: str | None = None,
) -> tuple[ProgramResult, Trace]:
    """Play the first episode of the taskset; `stop` is the limit of verifiers that ends it."""
    client = httpx.AsyncClient

    def connect(**more: Any) -> httpx.AsyncClient:
        return client(**more | {"transport": httpx.MockTransport(answer)})

    monkeypatch.setattr(episodes.httpx, "AsyncClient", connect)
    taskset = episodes.EpisodeTaskset(episodes.EpisodeConfig(episodes=options))
    first, second = taskset.load()
    assert not taskset.INFINITE and (first.data.name, second.data.name) == ("2", "3")
    trace = Trace(stop_condition=stop)
    harness = episodes.EpisodeHarness(HarnessConfig())
    model = SimpleNamespace(model="m")
    played = harness.launch(model, trace, None, "http://127.0.0.1:9/v1", "secret", {}, first.data)
    return asyncio.run(played), trace


def test_verifiers_hears_of_a_model_that_fails_and_of_another_taskset(
    episodes: Any, options: EpisodeOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed, trace = launch(episodes, options, lambda request: httpx.Response(429), monkeypatch)
    assert failed.exit_code == 1 and "429" in failed.stderr
    assert trace.info == {}
    _, ended = launch(
        episodes, options, lambda request: httpx.Response(400), monkeypatch, "max_turns"
    )
    assert ended.info["gta_bench"]["reward"] == 0
    harness = episodes.EpisodeHarness(HarnessConfig())
    other = asyncio.run(harness.launch(None, trace, None, "", "", {}, TaskData()))
    assert "gta-bench-episodes belongs" in other.stderr
    with pytest.raises(ValueError, match=r"leave out --env\.agent\.harness\.id"):
        asyncio.run(episodes.EpisodeTask(TaskData()).reward(Trace()))
    endless = episodes.EpisodeConfig(episodes=EpisodeOptions(families=("chart",)))
    assert episodes.EpisodeTaskset(endless).INFINITE
    with pytest.raises(ValueError, match="There is no family 'chrat'"):
        episodes.EpisodeConfig(episodes=EpisodeOptions(families=("chrat",)))
