"""How a model is asked: what is accepted, where it ends, and what is refused."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import GenerateConfig, get_model

from gta_bench.agents.generation import (
    add_generation,
    check_generation,
    make_generate_config,
    parse_model_args,
    read_generate_config,
    state_generation,
)
from gta_bench.agents.models import ChosenModel, choose_model, open_model
from gta_bench.errors import UsageError
from gta_bench.judging.judge import judge_entry
from gta_bench.judging.options import JudgeOptions
from gta_bench.records.judges import JudgeEntry
from gta_bench.settings import BudgetSettings, ModelSettings, Settings
from gta_bench.tasks.judging import open_judge

BARE = ModelSettings(model="openai-api/local/m", base_url="http://127.0.0.1:9/v1")


def added(options: dict[str, Any], **changes: Any) -> ModelSettings:
    return add_generation(BARE.model_copy(update=changes), "here", generate=options)


def test_an_option_with_a_key_of_its_own_ends_there_whatever_it_was_called() -> None:
    checked = added({"temperature": 0.5, "stop_seqs": ["END"], "frequency_penalty": 0.25})
    assert (checked.temperature, checked.stop) == (0.5, ["END"])
    assert checked.generate == {"frequency_penalty": 0.25}
    assert added({"stop": ["END"]}).stop == ["END"]


def test_what_is_added_beats_what_was_there_and_leaves_the_rest() -> None:
    checked = added(
        {"temperature": 0.5, "verbosity": "low"},
        temperature=1.0,
        top_p=0.9,
        generate={"verbosity": "high", "num_choices": 2},
    )
    assert (checked.temperature, checked.top_p) == (0.5, 0.9)
    assert checked.generate == {"verbosity": "low", "num_choices": 2}


def test_none_in_a_file_sets_nothing() -> None:
    assert added({"temperature": None, "verbosity": None}, temperature=1.0).temperature == 1.0


@pytest.mark.parametrize(
    ("generate", "said"),
    [
        ({"temprature": 1}, "unknown option `temprature`; did you mean 'temperature'?"),
        ({"temprature": 1}, "Known options: best_of, "),
        ({"temperature": "hot"}, "here: `temperature`: input should be a valid number, got 'hot'"),
        ({"top_p": 2}, "here: `top_p`: input should be less than or equal to 1, got 2 "),
        ({"verbosity": "loud"}, "here: `verbosity`: input should be 'low', 'medium' or 'high'"),
        ({"max_retries": 9}, "`max_retries` cannot be set here: use --max-retries or budget."),
        ({"timeout": 9}, "use --timeout or budget.timeout"),
        ({"attempt_timeout": 9}, "use --timeout or budget.timeout"),
        ({"max_connections": 9}, "use --max-connections or budget.max_connections"),
        ({"adaptive_connections": True}, "use --max-connections or budget.max_connections"),
        ({"batch": True}, "use --judge-batch or judge.batch"),
        ({"cache": True}, "the run's own logs"),
        ({"extra_headers": {"Authorization": "Bearer x"}}, "name that in `key_env`"),
        ({"reasoning_tokens": 99}, "`openai-api` does not send reasoning_tokens; use"),
        ({"top_k": 3, "extra_body": {"top_k": 4}}, "top_k is set twice"),
    ],
)
def test_a_wrong_option_is_one_line_with_what_to_do(generate: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        added(generate)
    assert said in str(caught.value)


def test_a_provider_without_top_k_is_not_said_to_have_been_asked_with_it() -> None:
    with pytest.raises(UsageError, match="`openai` has no top_k"):
        add_generation(ModelSettings(model="openai/gpt-5"), "here", generate={"top_k": 5})


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"api_key": "x"}, "use `key_env` of"),
        ({"base_url": "x"}, "use `base_url` of"),
        ({"max_retries": 1}, "use --max-retries"),
        ({"client_timeout": 1}, "use --timeout"),
        ({"webhook_secret": "x"}, "`webhook_secret` would be written to run.json"),
        ({"default_headers": {"X-Api-Key": "x"}}, "`default_headers.X-Api-Key` would be written"),
    ],
)
def test_an_argument_that_is_ours_or_secret_is_refused(args: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        add_generation(BARE, "here", args=args)
    assert said in str(caught.value)


def test_arguments_are_read_as_inspect_reads_them() -> None:
    from inspect_ai._util.config import parse_cli_args

    given = [
        "strict-tools=false",
        "number=3",
        "names=a,b",
        "text=a=b",
        "default_query={a: 1, b: [x, y]}",
        'more={"deep": {"er": true}}',
    ]
    assert parse_model_args(given) == parse_cli_args(given)
    assert parse_model_args(given)["more"] == {"deep": {"er": True}}


@pytest.mark.parametrize(
    ("given", "said"), [("stream", "name=value"), ("a={b", "not valid YAML"), ("=1", "name=value")]
)
def test_an_argument_that_cannot_be_read_is_reported(given: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_model_args([given])


def test_a_file_is_yaml_or_json(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("temperature: 0.5\nextra_body:\n  chat_template_kwargs: {deep: true}\n")
    wanted = {"temperature": 0.5, "extra_body": {"chat_template_kwargs": {"deep": True}}}
    assert read_generate_config(file) == wanted
    file.write_text('{"temperature": 5e-1, "extra_body": {"chat_template_kwargs": {"deep": true}}}')
    assert read_generate_config(file) == wanted


@pytest.mark.parametrize(("text", "said"), [("a: [", "while parsing"), ("- 1", "`name: value`")])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=rf"config\.yaml: .*{said}"):
        read_generate_config(file)


def test_gta_toml_has_the_same_options_and_says_what_is_wrong_with_them() -> None:
    settings = ModelSettings(
        model="mockllm/m", generate={"seed": 7, "verbosity": "low"}, args={"anything": [1]}
    )
    checked = choose_model("m", Settings(models={"m": settings})).settings
    assert (checked.seed, checked.generate, checked.args) == (
        7,
        {"verbosity": "low"},
        {"anything": [1]},
    )
    twice = settings.model_copy(update={"seed": 8})
    with pytest.raises(UsageError, match=r"\[models\.m\] of gta\.toml: `seed` is set twice"):
        choose_model("m", Settings(models={"m": twice}))
    wrong = settings.model_copy(update={"generate": {"verbose": True}})
    with pytest.raises(UsageError, match=r"\[models\.m\] of gta\.toml, `generate`: unknown option"):
        choose_model("m", Settings(models={"m": wrong}))


def test_checked_settings_are_the_same_when_they_are_checked_again() -> None:
    checked = added({"logit_bias": {42: 1.5}, "top_k": 3, "extra_body": {"min_p": 0.1}})
    assert check_generation(checked, "again") == checked
    config = make_generate_config(checked)
    assert config.logit_bias == {42: 1.5}
    assert config.extra_body == {"top_k": 3, "min_p": 0.1}


def test_an_unknown_argument_is_reported_with_the_known_ones() -> None:
    def opened(args: dict[str, Any]) -> None:
        checked = BARE.model_copy(update={"args": args, "key_env": "PATH"})
        open_model(ChosenModel(checked.model, checked), BudgetSettings())

    opened({"default_query": {"a": "1"}, "strict_tools": False})
    with pytest.raises(
        UsageError, match=r"'strict_tool'; did you mean 'strict_tools'\? Known arguments: "
    ):
        opened({"strict_tool": False})
    with pytest.raises(UsageError, match=r"'extra_body'.*set it in --generate-config"):
        opened({"extra_body": {}})


def test_an_open_model_is_described_without_its_secrets_and_bounds() -> None:
    config = GenerateConfig(
        temperature=0.5, max_retries=3, verbosity="low", extra_headers={"Authorization": "x"}
    )
    model = get_model("mockllm/m", config=config, memoize=False, custom_outputs=[], api_token="x")
    checked = state_generation(model)
    assert (checked.temperature, checked.generate) == (0.5, {"verbosity": "low"})
    assert "api_token" not in checked.args


def test_a_judge_with_other_options_is_another_judge_and_bounds_make_none() -> None:
    def entry(**options: Any) -> JudgeEntry:
        settings = ModelSettings(model="mockllm/m", **options)
        model = open_model(ChosenModel("mockllm/m", settings), BudgetSettings())
        return judge_entry(open_judge(model, JudgeOptions()), datetime(2026, 1, 1, tzinfo=UTC))

    plain, other = entry(max_tokens=9), entry(top_p=0.9, generate={"verbosity": "low"})
    assert (plain.name, plain.generation) == ("mockllm/m", {})
    assert plain.digest == entry().digest != other.digest
    assert other.name == "mockllm/m [top_p=0.9, verbosity=low]"
    assert other.generation == {"top_p": 0.9, "verbosity": "low"}
