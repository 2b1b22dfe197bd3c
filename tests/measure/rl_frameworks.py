"""Episodes through one RL framework and bare, in turns; run by the Python that has the framework.

`python rl_frameworks.py FRAMEWORK EPISODES FOLDER` plays so many episodes in each way, and prints
the figures as JSON. It imports nothing of the tests, because the framework's environment has only
what the documentation installs.
"""

import asyncio
import hashlib
import itertools
import json
import os
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import uvicorn

from gta_bench.forge.catalog import FAMILIES
from gta_bench.forge.draft import TaskDraft, Work
from gta_bench.forge.writing import Order, make_task
from gta_bench.records.calls import ToolResult
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.records.tools import ToolSpec
from gta_bench.rl import forged
from gta_bench.rl.environment import Environment
from gta_bench.rl.forged import ForgedTasks, check_rewards
from gta_bench.settings import Settings
from gta_bench.tools.equipment import use_equipment

NAMES = ("chart", "invoices")  # their checks need no parser in the jail
ORDER = Order("train", "frameworks", 1)
PART = 25  # pairs of episodes before another way of playing has its turn
SEEDS = 10
INSIDE = "http://inside/v1"
# A task is made for its first episode, and known in its second one and to the policy.
make_once = lru_cache(maxsize=1)(make_task)


class Delivery:
    """A tool that delivers a work."""

    def __init__(self, work: Work, tool: str) -> None:
        self._work = work
        self._tool = tool

    def specs(self) -> Mapping[str, ToolSpec]:
        return {self._tool: ToolSpec(name=self._tool)}

    async def call(self, workspace: Any, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        for path, data in self._work.files.items():
            workspace.write(path, data)
        return ToolResult(parts=(), tool=name, tool_version="1", backend="measure")


class Gold(NamedTuple):
    """The right work on a task, and the tool that delivers it."""

    work: Work
    tool: str


def find_gold(name: str) -> Gold:
    draft: TaskDraft = make_once(
        FAMILIES[name.partition("-")[0]], ORDER, int(name.rpartition("-")[2])
    )
    return Gold([*draft.gold.values()][int(name[-1]) % 2], next(iter(draft.tools), "Calculator"))


class Table:
    """The task that is being played, for scripted models."""

    task = ""
    gold = True

    def deliver(self, task: str) -> Delivery:
        self.task = task
        gold = find_gold(task)
        return Delivery(gold.work, gold.tool)


TABLE = Table()
Make = Callable[[], Awaitable[Environment]]
# Plays the episode of a seed, with gold or with an empty answer, and returns its reward.
Play = Callable[[int, bool], Awaitable[Any]]


async def play_bare(environment: Environment, seed: int, gold: bool) -> float | None:
    task = (await environment.reset(seed=seed)).info["task"]
    answer = ""
    if gold:
        known = find_gold(task)
        await environment.step(CallStep(name=known.tool, arguments={}))
        answer = known.work.answer
    return (await environment.step(AnswerStep(content=answer))).reward


@contextmanager
def serving(app: Any) -> Iterator[int]:
    """Serve an app in a thread, on a free port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", loop="asyncio")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield port
    finally:
        server.should_exit = True
        thread.join()


@asynccontextmanager
async def use_openenv(make: Make) -> AsyncIterator[dict[str, Play]]:
    from gta_bench_openenv import GTAAction, GTAEnvironment, GTAObservation
    from openenv import GenericEnvClient
    from openenv.core.env_server import create_app

    inside = GTAEnvironment(make)

    async def play_inside(seed: int, gold: bool) -> Any:
        seen = await inside.reset_async(seed=seed)
        known = find_gold(seen.metadata["task"])
        if gold:
            await inside.step_async(GTAAction(tool=known.tool))
        answer = known.work.answer if gold else ""
        return (await inside.step_async(GTAAction(answer=answer))).reward

    app = create_app(lambda: GTAEnvironment(make), GTAAction, GTAObservation, env_name="gta")
    with serving(app) as port:

        async def play_served(seed: int, gold: bool) -> Any:
            # A session for each episode: an idle one is closed while another way has its turn.
            async with GenericEnvClient(base_url=f"http://127.0.0.1:{port}") as client:
                seen = await client.reset(seed=seed)
                known = find_gold(seen.observation["metadata"]["task"])
                if gold:
                    await client.step({"tool": known.tool})
                last = await client.step({"answer": known.work.answer if gold else ""})
                assert last.done
                return last.reward

        yield {"in process": play_inside, "served": play_served}
    inside.close()


@asynccontextmanager
async def use_nemo_gym(make: Make) -> AsyncIterator[dict[str, Play]]:
    import aiohttp
    from gta_bench_nemo_gym import GTAServer, GTAServerConfig
    from nemo_gym.openai_utils import NeMoGymResponse
    from nemo_gym.server_utils import ServerClient

    config = GTAServerConfig(
        name="gta_bench", host="127.0.0.1", port=1, entrypoint="app.py", domain="agent",
        episodes={"families": NAMES},
    )  # fmt: skip
    client = ServerClient.model_construct()
    server = GTAServer(config=config, server_client=client)
    server._make = make

    def respond(*items: dict[str, Any]) -> dict[str, Any]:
        return {
            **{"id": "r", "created_at": 0.0, "model": "m", "object": "response"},
            **{"parallel_tool_calls": True, "tool_choice": "auto", "tools": []},
            "output": list(items),
        }

    def call(tool: str) -> dict[str, Any]:
        about = {"type": "function_call", "call_id": "c", "name": tool, "arguments": "{}"}
        return respond(about)

    def answer(text: str) -> dict[str, Any]:
        part = {"type": "output_text", "text": text, "annotations": []}
        about = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
        return respond({**about, "content": [part]})

    async def play_inside(seed: int, gold: bool) -> Any:
        _, info = await server.reset({"seed": seed}, "inside")
        known = find_gold(info["task"])
        if gold:
            await server.step(NeMoGymResponse.model_validate(call(known.tool)), {}, "inside")
        text = known.work.answer if gold else ""
        last = NeMoGymResponse.model_validate(answer(text))
        _, reward, done, _, _ = await server.step(last, {}, "inside")
        assert done
        await server.close_session("inside")
        return reward

    with serving(server.setup_webserver()) as port:
        jar = aiohttp.DummyCookieJar()
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", cookie_jar=jar) as http:

            async def post(path: str, body: dict[str, Any], cookies: Any) -> tuple[Any, Any]:
                whole = {"responses_create_params": {"input": []}, **body}
                async with http.post(path, json=whole, cookies=cookies) as reply:
                    reply.raise_for_status()
                    return await reply.json(), reply.cookies

            async def play_served(seed: int, gold: bool) -> Any:
                # As gymnasium_agent does: the cookies of each reply go into the next request.
                started, cookies = await post("/reset", {"seed": seed}, None)
                known = find_gold(started["info"]["task"])
                replies = [call(known.tool)] if gold else []
                replies.append(answer(known.work.answer if gold else ""))
                for one in replies:
                    last, cookies = await post("/step", {"seed": seed, "response": one}, cookies)
                assert last["terminated"]
                return float(last["reward"])

            yield {"in process": play_inside, "served": play_served}


@asynccontextmanager
async def use_verifiers(make: Make) -> AsyncIterator[dict[str, Play]]:
    import gta_bench_episodes
    from verifiers.v1.clients import Client, EvalClientConfig, ModelContext
    from verifiers.v1.interception import server
    from verifiers.v1.utils.loaders import load_environment, resolve_env_config

    gta_bench_episodes.find_make = lambda options: make
    config = resolve_env_config(
        {
            "taskset": {"id": "gta-bench-episodes", "episodes": {"families": NAMES}, "count": 1},
            "agent": {"runtime": {"type": "subprocess"}},
        }
    )
    environment = load_environment(config)
    (first,) = environment.taskset.load()

    def reply(messages: list[dict[str, Any]]) -> dict[str, Any]:
        """A model that delivers gold, or answers nothing."""
        known = find_gold(TABLE.task)
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        if TABLE.gold and messages[-1]["role"] == "user":
            function = {"name": known.tool, "arguments": "{}"}
            message["tool_calls"] = [{"id": "c", "type": "function", "function": function}]
        elif TABLE.gold:
            message["content"] = known.work.answer
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        about = {"id": "1", "object": "chat.completion", "created": 1, "model": "scripted"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return {**about, "choices": [choice], "usage": usage}

    async def chat(scope: Any, receive: Any, send: Any) -> None:
        """The model as a chat server."""
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        said = json.dumps(reply(json.loads(body)["messages"])).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": said})

    class Inside(Client):  # type: ignore[misc]
        """The model without a server."""

        async def get_response(self, dialect: Any, body: Any, *rest: Any, **more: Any) -> Any:
            raw = reply(body["messages"])
            response = dialect.parse_response(dialect.validate_response(raw))
            response.raw = raw
            return response

    known_clients = server.resolve_client
    server.resolve_client = lambda config: (
        Inside() if config.base_url == INSIDE else known_clients(config)
    )

    with serving(chat) as port:
        url = f"http://127.0.0.1:{port}/v1"
        async with environment.serving():

            async def play(address: str, seed: int, gold: bool) -> Any:
                TABLE.gold = gold
                task = first.with_data(seed=seed)
                model = EvalClientConfig(base_url=address, api_key_var="GTA_NO_KEY")
                episode = await environment.run_episode(task, ModelContext("scripted", model))
                assert episode.ok, (episode.errors, [one.errors for one in episode.traces])
                return episode.traces[0].reward

            yield {"in process": partial(play, INSIDE), "served": partial(play, url)}


FRAMEWORKS: Mapping[str, Callable[[Make], AbstractAsyncContextManager[dict[str, Play]]]] = {
    "openenv": use_openenv,
    "nemo_gym": use_nemo_gym,
    "verifiers": use_verifiers,
}


class Spent(SimpleNamespace):
    """What one way of playing took."""

    cpu: float
    wall: float
    steps: int


def digest(folder: Path) -> str:
    """What an episode starts with: the name of its task and all its files."""
    (place,) = folder.iterdir()
    files = sorted(one for one in place.rglob("*") if one.is_file())
    total = hashlib.sha256(TABLE.task.encode())
    for one in files:
        total.update(one.name.encode() + one.read_bytes())
    return total.hexdigest()


async def run(framework: str, episodes: int, folder: Path) -> dict[str, Any]:
    seen: list[str] = []

    class Watched(Environment):
        """Notes what each episode starts with."""

        watch = False

        async def reset(self, **chosen: Any) -> Any:
            started = await super().reset(**chosen)
            if Watched.watch:
                seen.append(digest(self._folder))
            return started

    tasks = ForgedTasks([FAMILIES[name] for name in NAMES], ORDER)
    async with use_equipment(Settings()) as equipment:
        rewards = check_rewards(equipment)
        places = itertools.count()

        async def make() -> Environment:
            place = folder / str(next(places))
            return Watched(tasks, TABLE.deliver, rewards, folder=place)

        bare = await make()
        async with FRAMEWORKS[framework](make) as plays:
            every: dict[str, Play] = {"bare": lambda seed, gold: play_bare(bare, seed, gold)}
            every |= plays
            # The same seed is the same episode, in every way of playing, twice.
            Watched.watch = True
            same = True
            for seed in range(SEEDS):
                seen.clear()
                for play in (*every.values(), *every.values()):
                    make_once.cache_clear()
                    await play(seed, False)
                same = same and len(seen) == 2 * len(every) and len({*seen}) == 1
            Watched.watch = False
            spent = {name: Spent(cpu=0.0, wall=0.0, steps=0) for name in every}
            earned: dict[str, dict[bool, list[float | None]]] = {
                name: {True: [], False: []} for name in every
            }
            for part in range(episodes // (2 * PART)):
                for name, play in every.items():
                    cpu, wall = sum(os.times()[:4]), time.monotonic()
                    for seed in range(1000 + part * PART, 1000 + (part + 1) * PART):
                        for gold in (True, False):
                            earned[name][gold].append(await play(seed, gold))
                    spent[name].cpu += sum(os.times()[:4]) - cpu
                    spent[name].wall += time.monotonic() - wall
                    spent[name].steps += 3 * PART
        await bare.close()
    return {
        "framework": framework,
        "same": same,
        "load": os.getloadavg()[0],
        "left": [str(one) for place in folder.iterdir() for one in place.iterdir()],
        "ways": {
            name: {
                "episodes": sum(map(len, earned[name].values())),
                "gold": sorted({*earned[name][True]}, key=str),
                "empty": sorted({*earned[name][False]}, key=str),
                "cpu": one.steps / one.cpu,
                "wall": one.steps / one.wall,
            }
            for name, one in spent.items()
        },
    }


if __name__ == "__main__":
    forged.make_task = make_once  # type: ignore[attr-defined]
    place = Path(sys.argv[3])
    place.mkdir(parents=True, exist_ok=True)
    print(json.dumps(asyncio.run(run(sys.argv[1], int(sys.argv[2]), place))))
