"""OpenEnv 0.10.0, NeMo Gym 0.4.0 and verifiers 0.4.0 as far as the plugins touch them.

The real packages are met in tests/measure/test_rl_frameworks.py.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


# What OpenEnv has in openenv.core.env_server:
class Action(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    metadata: dict[str, Any] = Field(default_factory=dict)


class Observation(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    done: bool = False
    reward: bool | int | float | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class State(BaseModel):
    model_config = ConfigDict(extra="allow", validate_assignment=True)

    episode_id: str | None = None
    step_count: int = 0


class Environment(ABC, Generic[A, B, C]):
    SUPPORTS_CONCURRENT_SESSIONS = False

    def __init__(self, transform: Any = None, rubric: Any = None) -> None: ...

    @abstractmethod
    def reset(self, seed: int | None = None, episode_id: str | None = None) -> B: ...

    @abstractmethod
    def step(self, action: A, timeout_s: float | None = None) -> B: ...

    @property
    @abstractmethod
    def state(self) -> C: ...


def create_app(
    env: Callable[[], Any],
    action_cls: type,
    observation_cls: type,
    env_name: str | None = None,
    max_concurrent_envs: int | None = None,
) -> Any:
    """What a server does at once: a session, here in its place."""
    assert issubclass(action_cls, Action) and issubclass(observation_cls, Observation)
    return env()


OPENENV: dict[str, dict[str, Any]] = {
    "openenv": {},
    "openenv.core": {},
    "openenv.core.env_server": {
        "Action": Action,
        "Environment": Environment,
        "Observation": Observation,
        "State": State,
        "create_app": create_app,
    },
}


# What NeMo Gym has in nemo_gym and resources_servers.gymnasium:
class BaseResourcesServerConfig(BaseModel):
    name: str = "gta_bench"


class NeMoGymResponse(BaseModel):
    output: list[Any]


class GymnasiumServer(BaseModel):
    config: BaseResourcesServerConfig
    session_state: dict[Any, Any] = Field(default_factory=dict)

    async def close_session(self, session_id: str | None) -> None:
        self.session_state.pop(session_id, None)


def extract_text(response: NeMoGymResponse) -> str:
    messages = (item for item in response.output if item.type == "message")
    return "".join(part.text for item in messages for part in item.content)


def respond(*calls: tuple[str, str], text: str = "") -> NeMoGymResponse:
    """A reply of a model."""
    items = [
        SimpleNamespace(type="function_call", call_id=f"c{n}", name=name, arguments=arguments)
        for n, (name, arguments) in enumerate(calls)
    ]
    part = SimpleNamespace(type="output_text", text=text)
    return NeMoGymResponse(output=[*items, SimpleNamespace(type="message", content=[part])])


NEMO_GYM: dict[str, dict[str, Any]] = {
    "nemo_gym": {},
    "nemo_gym.base_resources_server": {"BaseResourcesServerConfig": BaseResourcesServerConfig},
    "nemo_gym.openai_utils": {"NeMoGymResponse": NeMoGymResponse},
    "resources_servers": {},
    "resources_servers.gymnasium": {
        "GymnasiumServer": GymnasiumServer,
        "extract_text": extract_text,
    },
}


# What verifiers has in verifiers.v1:
class TaskData(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str | None = None
    prompt: str | None = None


class TasksetConfig(BaseModel):
    id: str = ""
    task: Any = None


class HarnessConfig(BaseModel):
    id: str = ""


class Task(Generic[A]):
    def __init__(self, data: A, config: Any = None) -> None:
        self.data = data


class Taskset(Generic[A, B]):
    INFINITE = False

    def __init__(self, config: B) -> None:
        self.config = config


class Harness(Generic[A]):
    def __init__(self, config: A) -> None:
        self.config = config


@dataclass
class Trace:
    info: dict[str, Any] = field(default_factory=dict)
    stop_condition: str | None = None


@dataclass
class ProgramResult:
    exit_code: int
    stdout: str
    stderr: str


def mark(function: A) -> A:
    return function


VERIFIERS: dict[str, dict[str, Any]] = {
    "verifiers": {},
    "verifiers.v1": {
        "Harness": Harness,
        "HarnessConfig": HarnessConfig,
        "Runtime": object,
        "Task": Task,
        "TaskData": TaskData,
        "Taskset": Taskset,
        "TasksetConfig": TasksetConfig,
        "Trace": Trace,
        "metric": mark,
        "reward": mark,
    },
    "verifiers.v1.clients": {"ModelContext": object},
    "verifiers.v1.runtimes": {"ProgramResult": ProgramResult},
}


def complete(body: bytes, *, gold: bool) -> dict[str, Any]:
    """The chat completion of a model that multiplies, or that answers nothing."""
    messages = json.loads(body)["messages"]
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    if gold and messages[-1]["role"] == "user":
        expression = messages[-1]["content"].rpartition("What is ")[2].removesuffix("?")
        function = {"name": "Calculator", "arguments": json.dumps({"expression": expression})}
        message["tool_calls"] = [{"id": "c", "type": "function", "function": function}]
    elif gold:
        message["content"] = f"It is {messages[-1]['content']}."
    return {"choices": [{"message": message}]}
