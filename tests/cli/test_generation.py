"""What a server gets of the generation options, beside what the manifest says."""

import json
from pathlib import Path
from typing import Any

import pytest

import gta_bench
from gta_bench.settings import ModelSettings, ScoringSettings, Settings
from tests.builders import atomic_task, write_atomic
from tests.chat_server import chat_server
from tests.cli.test_run import gta

FLAGS = {
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 40,
    "presence_penalty": 1.5,
    "max_tokens": 512,
    "seed": 7,
    "reasoning_effort": "low",
}
STOP = ["END", "STOP"]
BODY: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GTA_TEST_KEY_A", "none")
    write_atomic(tmp_path / "data" / "gta_atomic", {"0": atomic_task()})


def write_settings(url: str, more: str = "") -> None:
    Path("gta.toml").write_text(
        f'[scoring]\nsimilarity = "exact-or-half"\n[models.m]\nmodel = "openai-api/local/m"\n'
        f'base_url = "{url}"\nkey_env = "GTA_TEST_KEY_A"\n{more}',
        encoding="utf-8",
    )


def run(*options: str, out: str = "runs/x") -> Any:
    words = ("run", "atomic", "--mode", "step", "--model", "m", "--no-preflight")
    return gta(*words, *options, "--out", out)


def flags() -> list[str]:
    given = [
        word
        for name, value in FLAGS.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    return [*given, *(word for text in STOP for word in ("--stop", text))]


def system(out: str = "runs/x") -> dict[str, Any]:
    return dict(json.loads((Path(out) / "run.json").read_text(encoding="utf-8"))["system"])


def test_the_request_has_what_the_manifest_says(loopback: None) -> None:
    """The table of docs/how-to/generation.md."""
    requests: list[dict[str, Any]] = []

    def reply(request: dict[str, Any]) -> str:
        requests.append(request)
        return "It is 7."

    config = {"frequency_penalty": 0.25, "extra_body": BODY}
    Path("config.yaml").write_text(json.dumps(config), encoding="utf-8")
    with chat_server(reply) as server:
        write_settings(server.url, "temperature = 1.0\nmax_tokens = 9\n")
        more = ("--generate-config", "config.yaml", "-M", "default_headers={X-Team: blue}")
        result = run(*flags(), *more, "-M", "strict_tools=false")
        headers = server.last_headers
    assert result.exit_code == 0, result.output
    assert len(requests) == 2
    for request in requests:
        assert {name: request[name] for name in FLAGS} == FLAGS
        assert request["stop"] == STOP
        assert request["frequency_penalty"] == 0.25
        assert request["chat_template_kwargs"] == BODY["chat_template_kwargs"]
        assert request["tools"][0]["function"]["strict"] is False
    assert headers["x-team"] == "blue"
    held = system()
    assert {name: held[name] for name in FLAGS} == FLAGS
    assert held["stop"] == STOP
    assert held["generate"] == config
    assert held["args"] == {"default_headers": {"X-Team": "blue"}, "strict_tools": False}


def test_gta_toml_reaches_the_server_and_the_command_line_beats_it(loopback: None) -> None:
    requests: list[dict[str, Any]] = []

    def reply(request: dict[str, Any]) -> str:
        requests.append(request)
        return "It is 7."

    tables = (
        'temperature = 1.0\ntop_p = 0.9\nstop = ["END"]\n'
        "[models.m.generate]\nfrequency_penalty = 0.25\nextra_body = { min_p = 0.1 }\n"
        "[models.m.args]\ndefault_query = { team = 'blue' }\n"
    )
    Path("config.yaml").write_text("top_p: 0.8\ntemperature: 0.7\n", encoding="utf-8")
    with chat_server(reply) as server:
        write_settings(server.url, tables)
        assert gta("config", "check").exit_code == 0
        result = run("--temperature", "0", "--generate-config", "config.yaml")
        assert result.exit_code == 0, result.output
        again = run("--temperature", "0.1", "--generate-config", "config.yaml")
        other = run("--temperature", "0", "--generate-config", "config.yaml", "-M", "stream=true")
    request = requests[0]
    assert (request["temperature"], request["top_p"], request["stop"]) == (0, 0.8, ["END"])
    assert (request["frequency_penalty"], request["min_p"]) == (0.25, 0.1)
    assert request["tools"][0]["function"]["strict"] is True
    assert "temperature: 0.0 there, 0.1 here" in str(again.exception)
    assert "args.stream: none there, True here" in str(other.exception)


def test_python_has_the_same_options(loopback: None) -> None:
    requests: list[dict[str, Any]] = []

    def reply(request: dict[str, Any]) -> str:
        requests.append(request)
        return "It is 7."

    with chat_server(reply) as server:
        model = ModelSettings(
            model="openai-api/local/m", base_url=server.url, key_env="GTA_TEST_KEY_A"
        )
        gta_bench.run(
            "atomic",
            "runs/x",
            model="m",
            mode="step",
            generate={"temperature": 0.5, "extra_body": BODY},
            model_args={"strict_tools": False},
            settings=Settings(
                models={"m": model}, scoring=ScoringSettings(similarity="exact-or-half")
            ),
        )
    assert requests[0]["temperature"] == 0.5
    assert requests[0]["chat_template_kwargs"] == BODY["chat_template_kwargs"]
    held = gta_bench.manifest("runs/x").spec.system
    assert (held.temperature, held.generate) == (0.5, {"extra_body": BODY})
    assert held.args == {"strict_tools": False}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--temprature", "1"), "No such option"),
        (("--reasoning-effort", "lots"), "is not one of"),
        (("-M", "strict_tool=false"), "did you mean 'strict_tools'?"),
        (("--stop", "END", "--stop", ""), "`stop.1`: string should have at least 1 character"),
        (("-M", "stream"), "use the form name=value"),
        (("-M", "max_retries=3"), "use --max-retries"),
        (("--generate-config", "missing.yaml"), "does not exist"),
        (("--generate-config", "wrong.yaml"), "wrong.yaml: unknown option `tempreature`"),
        (("--generate-config", "ours.yaml"), "use --timeout or budget.timeout"),
        (("--top-k", "5", "--model", "openai/gpt-5"), "`openai` has no top_k"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(options: tuple[str, ...], said: str) -> None:
    write_settings("http://127.0.0.1:9/v1")
    Path("wrong.yaml").write_text("tempreature: 1", encoding="utf-8")
    Path("ours.yaml").write_text("timeout: 1", encoding="utf-8")
    result = run(*options)
    assert said in f"{result.output}{result.exception}"
    assert result.exit_code != 0
    assert not Path("runs").exists()


def test_a_run_without_a_model_has_no_generation_options() -> None:
    write_settings("http://127.0.0.1:9/v1")
    result = gta("run", "atomic", "--mode", "step", "--agent", "gold", "--seed", "1", "--out", "r")
    assert "This system does not use a model" in str(result.exception)
    assert not Path("r").exists()
