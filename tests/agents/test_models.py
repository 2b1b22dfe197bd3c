import asyncio
import logging
from typing import Any

import pytest

from gta_bench.agents.models import NO_MODEL, ChosenModel, choose_model, open_model
from gta_bench.errors import EnvironmentProblem, UsageError
from gta_bench.settings import BudgetSettings, ModelSettings, Settings
from tests.chat_server import chat_server

SETTINGS = Settings(
    models={"small": ModelSettings(model="mockllm/small", temperature=0.5, max_tokens=64)}
)


def test_a_short_name_stands_for_the_model_of_the_settings() -> None:
    chosen = choose_model("small", SETTINGS)
    assert chosen.name == "mockllm/small"
    assert chosen.settings.temperature == 0.5


def test_a_full_name_needs_no_settings() -> None:
    assert choose_model("openai/gpt-5", SETTINGS).name == "openai/gpt-5"


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"'tiny'.*known there: small"):
        choose_model("tiny", SETTINGS)


def test_a_model_is_asked_within_the_budget() -> None:
    budget = BudgetSettings(max_connections=3, max_retries=2, timeout=9)
    config = open_model(choose_model("small", SETTINGS), budget).config
    assert (config.max_connections, config.max_retries, config.attempt_timeout) == (3, 2, 9)
    assert (config.temperature, config.max_tokens) == (0.5, 64)


@pytest.mark.parametrize(("seconds", "waits"), [(300, None), (7200, 7200)])
def test_a_slow_server_may_take_longer_than_the_client_would_wait(
    seconds: int, waits: float | None
) -> None:
    settings = ModelSettings(model="openai-api/local/m", base_url="http://127.0.0.1:9/v1")
    chosen = ChosenModel(settings.model, settings)
    api: Any = open_model(chosen, BudgetSettings(timeout=seconds)).api
    assert api.client_timeout == waits
    assert (api.client.timeout == waits) == (waits is not None)


@pytest.mark.usefixtures("loopback")
def test_without_retries_a_model_is_asked_once(caplog: pytest.LogCaptureFixture) -> None:
    """Inspect warned of a request that it did not know: its hooks were there twice."""
    with chat_server() as server:
        server.forever = "500"
        settings = ModelSettings(model="openai-api/local/m", base_url=server.url)
        chosen = ChosenModel(settings.model, settings)
        model = open_model(chosen, BudgetSettings(max_retries=0))

        async def ask() -> None:
            try:
                await model.generate("Hello")
            finally:
                await model.api.aclose()

        with pytest.raises(Exception, match="InternalServerError"):
            asyncio.run(ask())
        assert server.asked == 1
    assert [one.message for one in caplog.records if one.levelno >= logging.WARNING] == []
    assert "max_retries" not in model.model_args


def test_the_agents_that_ask_nothing_have_a_model_that_is_none() -> None:
    assert open_model(NO_MODEL, BudgetSettings()).name == "none"


def test_an_unknown_provider_is_one_line() -> None:
    with pytest.raises(UsageError, match="nobody"):
        open_model(choose_model("nobody/x", SETTINGS), BudgetSettings())


def test_a_key_that_is_not_set_is_one_line_with_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GTA_TEST_KEY_A", raising=False)
    settings = Settings(models={"a": ModelSettings(model="mockllm/a", key_env="GTA_TEST_KEY_A")})
    with pytest.raises(EnvironmentProblem, match="export GTA_TEST_KEY_A"):
        open_model(choose_model("a", settings), BudgetSettings())


def test_a_provider_without_its_key_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(EnvironmentProblem, match="cannot be used here"):
        open_model(choose_model("openai/gpt-5", SETTINGS), BudgetSettings())


def test_a_known_price_makes_the_cost_known() -> None:
    from inspect_ai.model import get_model_info

    settings = ModelSettings(model="mockllm/priced", input_price=2.0, output_price=8.0)
    open_model(
        choose_model("mockllm/priced", Settings())._replace(settings=settings), BudgetSettings()
    )
    info = get_model_info("mockllm/priced")
    assert info is not None
    assert info.cost is not None
    assert (info.cost.input, info.cost.output) == (2.0, 8.0)


@pytest.mark.parametrize(("variable", "key"), [(None, "none"), ("secret", "secret")])
def test_a_server_of_ones_own_needs_no_key(
    variable: str | None, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_OWN_API_KEY", raising=False)
    if variable is not None:
        monkeypatch.setenv("MY_OWN_API_KEY", variable)
    own = ModelSettings(model="openai-api/my-own/x", base_url="http://127.0.0.1:9/v1")
    model = open_model(choose_model("own", Settings(models={"own": own})), BudgetSettings())
    assert model.api.api_key == key
