import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.errors import ConfigError
from gta_bench.redaction import current_redactor
from gta_bench.settings import (
    LoadedSettings,
    list_key_variables,
    read_key,
    read_otlp_variables,
    read_settings,
    settings_schema,
)

GOOD = """
[data]
atomic = "elsewhere/atomic"

[models.big]
model = "openai/gpt-5"
key_env = "BIG_KEY"

[models.open]
model = "openai-api/local/qwen"

[endpoints.vision]
url = "http://localhost:8000/v1"
key_env = "VISION_KEY"

[tools.ImageDescription]
endpoint = "vision"

[judge]
model = "big"
leaf_threshold = 8
"""


def read(tmp_path: Path, text: str, **overrides: str) -> LoadedSettings:
    file = tmp_path / "gta.toml"
    file.write_text(text, encoding="utf-8")
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    return read_settings(file, overrides=dotted)


def test_without_a_file_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = read_settings()
    assert loaded.file is None
    assert {setting.origin for setting in loaded.values} == {"default"}
    assert loaded.settings.judge.leaf_threshold == 7


def test_the_file_of_this_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gta.toml").write_text("[judge]\nrepeats = 3\n", encoding="utf-8")
    assert read_settings().settings.judge.repeats == 3


def test_the_command_line_beats_the_file_and_the_file_beats_the_default(tmp_path: Path) -> None:
    loaded = read(tmp_path, GOOD, data__atomic="mine")
    origins = {setting.key: (setting.value, setting.origin) for setting in loaded.values}
    assert origins["data.atomic"] == ("mine", "command line")
    assert origins["judge.leaf_threshold"] == (8.0, "gta.toml")
    assert origins["judge.root_threshold"] == (7.0, "default")
    assert origins["models.big.model"] == ("openai/gpt-5", "gta.toml")
    assert origins["models.big.temperature"] == (None, "default")


def test_an_override_that_was_not_given_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "gta.toml"
    file.write_text(GOOD, encoding="utf-8")
    loaded = read_settings(file, overrides={"data.atomic": None})
    assert loaded.settings.data.atomic == "elsewhere/atomic"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[data]\natomc = 'x'", "unknown key `data.atomc`; did you mean 'atomic'?"),
        ("[zzz]", "unknown key `zzz`. Known keys here: budget, data"),
        ("[models.a]\nmodel='a/b'\nkeyenv='K'", "unknown key `models.a.keyenv`; did you mean"),
        ("[data]\natomic = 3", "`data.atomic`: input should be a valid string, got 3 (int)."),
        ("data = 3", "`data`: input should be a valid dictionary"),
        ("[judge]\nrepeats = true", "`judge.repeats`: input should be a valid integer"),
        ("[judge]\nrepeats = 0", "`judge.repeats`: input should be greater than or equal to 1"),
        ("[judge]\nleaf_threshold = 11", "`judge.leaf_threshold`: input should be less than"),
        ("[models.a]\ntemperature = 1", "`models.a.model` is missing."),
        ("[models.'a b']\nmodel = 'a/b'", "`models.a b`: string should match pattern"),
        (
            "[endpoints.v]\nurl = 'vision'",
            "`endpoints.v.url`: an address must begin with http:// or https://",
        ),
        (
            "[endpoints.v]\nurl='http://h'\n[tools.OCR]\nendpoint = 'w'",
            "`tools.OCR.endpoint` is 'w', which is not in [endpoints]. Known endpoints: v.",
        ),
        ("[judge]\nmodel = 'big'", "`judge.model` is 'big', which is neither provider/model nor"),
        ("[data", "is not valid TOML: Expected ']'"),
    ],
)
def test_a_mistake_in_the_file_is_met_by_one_line_with_file_and_key(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text, data__workflow="w")
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'gta.toml'}: ")
    assert message in said
    assert "\n" not in said


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone.toml: cannot be read: No such file"):
        read_settings(tmp_path / "gone.toml")


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "gta.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"is not UTF-8 text \(byte 0\)"):
        read_settings(tmp_path / "gta.toml")


def test_a_wrong_value_of_the_command_line_is_named_without_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"command line: `budget\.max_connections`"):
        read_settings(overrides={"budget.max_connections": 0})


def test_keys_are_named_by_their_variable_and_never_stored(tmp_path: Path) -> None:
    loaded = read(tmp_path, GOOD)
    assert list_key_variables(loaded.settings) == {
        "BIG_KEY": "models.big",
        "VISION_KEY": "endpoints.vision",
    }
    assert read_key("BIG_KEY", {"BIG_KEY": "s3cret"}) == "s3cret"
    assert read_key("BIG_KEY", {"BIG_KEY": ""}) is None
    assert read_key("BIG_KEY", {}) is None


def test_the_schema_for_editors_describes_every_table() -> None:
    schema = settings_schema()
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert sorted(properties) == [
        "budget",
        "data",
        "datasets",
        "endpoints",
        "judge",
        "models",
        "scoring",
        "tool_servers",
        "tools",
    ]
    assert schema["additionalProperties"] is False


NUMBERS = st.integers(1, 50)
TABLES = st.fixed_dictionaries(
    {},
    optional={
        "judge": st.fixed_dictionaries({}, optional={"repeats": NUMBERS}),
        "budget": st.fixed_dictionaries(
            {}, optional={"max_connections": NUMBERS, "hours": st.floats(0.5, 100)}
        ),
        "models": st.dictionaries(
            st.from_regex(r"[a-z][a-z0-9_-]{0,6}", fullmatch=True),
            st.fixed_dictionaries({"model": st.just("openai/x")}),
            max_size=3,
        ),
    },
)


def toml(tables: dict[str, dict[str, object]]) -> str:
    lines = []
    for table, entries in tables.items():
        nested = {key: value for key, value in entries.items() if isinstance(value, dict)}
        plain = {key: value for key, value in entries.items() if not isinstance(value, dict)}
        lines += [f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in plain.items())]
        lines += [toml({f"{table}.{name}": value}) for name, value in nested.items()]
    return "\n".join(lines)


@given(TABLES, st.none() | NUMBERS)
def test_whatever_is_written_holds_and_says_so_unless_the_command_line_beats_it(
    tmp_path_factory: pytest.TempPathFactory, tables: dict[str, Any], connections: int | None
) -> None:
    file = tmp_path_factory.mktemp("settings") / "gta.toml"
    file.write_text(toml(tables), encoding="utf-8")
    loaded = read_settings(file, overrides={"budget.max_connections": connections})
    held = {setting.key: setting for setting in loaded.values}
    for table, entries in tables.items():
        for key, value in entries.items():
            if not isinstance(value, dict) and f"{table}.{key}" != "budget.max_connections":
                assert held[f"{table}.{key}"] == (f"{table}.{key}", value, "gta.toml")
    for name in tables.get("models", {}):
        assert held[f"models.{name}.model"].origin == "gta.toml"
    if connections is not None:
        assert held["budget.max_connections"][1:] == (connections, "command line")


def test_a_variable_names_the_folder_of_the_data_unless_the_file_or_the_command_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GTA_DATA", "/srv/data")
    file = tmp_path / "mine.toml"
    file.write_text('[data]\natomic = "written"\n', encoding="utf-8")

    def found(*arguments: Any, **overrides: Any) -> dict[str, tuple[Any, str]]:
        loaded = read_settings(*arguments, overrides={"data.workflow": overrides.get("workflow")})
        return {one.key: (one.value, one.origin) for one in loaded.values if "data." in one.key}

    assert found()["data.atomic"] == ("/srv/data/gta_atomic", "GTA_DATA")
    assert found()["data.workflow"] == ("/srv/data/gta_workflow", "GTA_DATA")
    assert found(file)["data.atomic"] == ("written", "gta.toml")
    assert found(file)["data.workflow"] == ("/srv/data/gta_workflow", "GTA_DATA")
    assert found(file, workflow="given")["data.workflow"] == ("given", "command line")
    monkeypatch.setenv("GTA_DATA", "")
    assert found()["data.atomic"] == ("data/gta_atomic", "default")


def test_the_hub_is_the_endpoint_of_the_environment_unless_the_file_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror.example.org")

    def found() -> tuple[Any, str]:
        values = {one.key: (one.value, one.origin) for one in read_settings().values}
        return values["data.huggingface"]

    assert found() == ("http://mirror.example.org", "HF_ENDPOINT")
    Path("gta.toml").write_text('[data]\nhuggingface = "https://other.example.org"\n')
    assert found() == ("https://other.example.org", "gta.toml")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"git": "a", "hf": "b/c"}, "either `git` or `hf`"),
        ({"revision": "v1"}, "need `git` or `hf`"),
        ({"git": "a", "folder": "/b"}, "inside of the repository"),
    ],
)
def test_a_dataset_comes_from_one_place(entry: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_settings(overrides={"datasets.acme": {"path": "x", **entry}})


def test_addresses_of_opentelemetry_are_complete_and_their_headers_are_redacted() -> None:
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/",
        "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://logs/x",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20k3y-of-7-letters, x-a=1,broken",
        "OTEL_EXPORTER_OTLP_LOGS_HEADERS": "x-b=2",
        "OTEL_RESOURCE_ATTRIBUTES": "a=b",
    }
    found = read_otlp_variables(environment=variables)
    assert found.traces == "http://collector:4318/v1/traces" and found.logs == "http://logs/x"
    assert found.trace_headers == {"authorization": "Bearer k3y-of-7-letters", "x-a": "1"}
    assert found.log_headers == {"x-b": "2"}
    assert found.resource == {"service.name": "gta-bench", "a": "b"}
    assert "k3y" not in current_redactor().text("sent k3y-of-7-letters")


@pytest.mark.parametrize("given", ["http://h/otel", "http://h/otel/", "http://h/otel/v1/traces"])
def test_a_given_address_replaces_those_of_the_environment(given: str) -> None:
    variables = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://elsewhere"}
    found = read_otlp_variables(given, variables)
    assert (found.traces, found.logs) == ("http://h/otel/v1/traces", "http://h/otel/v1/logs")
    assert read_otlp_variables(None, {}).traces is None


@pytest.mark.parametrize("address", ["ftp://x", "http://user:pw@x/v1", "http://x/?key=k", "x:4318"])
def test_an_address_of_opentelemetry_contains_no_key_and_is_not_repeated(address: str) -> None:
    with pytest.raises(ConfigError, match="OTEL_EXPORTER_OTLP_HEADERS") as raised:
        read_otlp_variables(address, {})
    assert address not in str(raised.value)
