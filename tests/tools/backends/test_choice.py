import asyncio
from pathlib import Path

import pytest

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolUnavailable
from gta_bench.settings import EndpointSettings, Settings, ToolSettings
from gta_bench.tools.backends.choice import ENDPOINT, BackedTool, ToolBackend
from gta_bench.tools.contract import (
    Availability,
    Available,
    Equipment,
    Made,
    ToolInput,
    Unavailable,
    text,
)


class Nothing(ToolInput):
    pass


class Remote(ToolBackend[Nothing]):
    name = ENDPOINT

    def check(self) -> Availability:
        return Unavailable("no endpoint is set.", "Set one.")

    async def run(self, workspace: Workspace, given: Nothing) -> Made:
        return Made((text("remote"),), backend="remote")


class Small(Remote):
    name = "small"

    def check(self) -> Availability:
        return Available("small model 1")

    async def run(self, workspace: Workspace, given: Nothing) -> Made:
        return Made((text("small"),), backend=self.label)


class Large(Small):
    name = "large"

    def check(self) -> Availability:
        return Available("large model 1")


class Pair(BackedTool[Nothing]):
    name = "Pair"
    category = "logic"
    description = "Has several backends."
    version = "1"
    input_type = Nothing
    backends = (Remote, Small, Large)


class Lonely(BackedTool[Nothing]):
    name = "Lonely"
    category = "logic"
    description = "Has one backend, which does not work."
    version = "1"
    input_type = Nothing
    backends = (Remote,)


def settings(**chosen: str) -> Settings:
    return Settings(
        endpoints={"mine": EndpointSettings(url="http://127.0.0.1:1")},
        tools={"Pair": ToolSettings.model_validate(chosen)},
    )


def backend(tool: BackedTool[Nothing], tmp_path: Path) -> str:
    return asyncio.run(tool.apply(Workspace.create(tmp_path, {}), Nothing())).backend


def test_without_settings_the_first_backend_that_works_is_used(tmp_path: Path) -> None:
    tool = Pair(Equipment(Settings()))
    assert tool.check() == Available("small model 1")
    assert backend(tool, tmp_path) == "small model 1"


def test_the_settings_choose_a_backend_by_name(tmp_path: Path) -> None:
    tool = Pair(Equipment(settings(backend="large")))
    assert tool.check() == Available("large model 1")
    assert backend(tool, tmp_path) == "large model 1"


@pytest.mark.parametrize("chosen", [{"endpoint": "mine"}, {"backend": "endpoint"}])
def test_a_chosen_endpoint_is_never_replaced_by_a_small_model(chosen: dict[str, str]) -> None:
    """Otherwise a run with a missing key would measure the wrong tool."""
    assert Pair(Equipment(settings(**chosen))).check() == Unavailable(
        "no endpoint is set.", "Set one."
    )


def test_a_backend_may_be_chosen_beside_an_endpoint() -> None:
    tool = Pair(Equipment(settings(endpoint="mine", backend="small")))
    assert tool.check() == Available("small model 1")


def test_an_unknown_backend_is_told_with_the_known_ones(tmp_path: Path) -> None:
    tool = Pair(Equipment(settings(backend="huge")))
    state = tool.check()
    assert isinstance(state, Unavailable)
    assert "no backend 'huge'" in state.reason
    assert "endpoint, small, large" in state.fix
    with pytest.raises(ToolUnavailable, match="no backend 'huge'"):
        backend(tool, tmp_path)


def test_where_nothing_works_every_way_to_mend_it_is_told(tmp_path: Path) -> None:
    tool = Lonely(Equipment(Settings()))
    assert tool.check() == Unavailable("no endpoint is set.", "Set one.")
    with pytest.raises(ToolUnavailable, match="Set one"):
        backend(tool, tmp_path)


def test_a_backend_that_does_not_work_has_no_label() -> None:
    with pytest.raises(ToolUnavailable, match="no endpoint is set"):
        _ = Remote(Equipment(Settings()), "Pair").label
