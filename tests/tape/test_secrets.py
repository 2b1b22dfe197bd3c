"""No key reaches a tape, in any way."""

import json
from pathlib import Path

import pytest

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.redaction import Redactor
from gta_bench.settings import Settings, read_secrets
from gta_bench.tape.storage import Tape
from tests.builders import PNG, atomic_task, tool, write_atomic
from tests.tape.builders import Answer, Scripted, call, recording, space, taped
from tests.tape.test_runs import run
from tests.tools.openai_server import Turn, openai_server, png

KEYS = {
    "OPENAI_API_KEY": "sk-environment-1",
    "SERPER_API_KEY": "serper/secret+2",
    "MATHPIX_APP_KEY": "mathpix-key-3",
    "HF_TOKEN": "hf_token_4",
    "MY_VISION": "named-in-gta-toml-5",
    "AWS_SECRET_ACCESS_KEY": "aws-secret-6",
    "HTTPS_PROXY": "http://user:proxy-password-7@127.0.0.1:3128",
}
SETTINGS = Settings.model_validate(
    {
        "endpoints": {
            "vision": {"url": "http://127.0.0.1:9/v1", "key_env": "MY_VISION"},
            "other": {"url": "http://me:endpoint-password-8@127.0.0.1:9/v1"},
        },
        "models": {"m": {"model": "openai/m", "base_url": "http://me:model-password-9@localhost"}},
    }
)
SECRETS = [
    *(value for name, value in KEYS.items() if name != "HTTPS_PROXY"),
    *("proxy-password-7", "endpoint-password-8", "model-password-9"),
]


def everything(folder: Path) -> bytes:
    """Names and contents of all files of a tape."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return b"".join(str(file).encode() + file.read_bytes() for file in files)


def test_every_location_of_a_key_is_known() -> None:
    assert sorted(read_secrets(SETTINGS, KEYS)) == sorted(SECRETS)


def test_short_dummies_and_other_variables_are_not_secrets() -> None:
    environment = {"A_KEY": "none", "PWD": "/home/someone", "KEYBOARD": "querty-long", "E_KEY": ""}
    assert read_secrets(Settings(), environment) == {}


@pytest.mark.parametrize("secret", SECRETS)
def test_a_key_in_arguments_reply_error_version_or_file_is_not_on_the_tape(
    tmp_path: Path, secret: str
) -> None:
    def echo(workspace: Workspace, given: object) -> str:
        workspace.write(f"{secret.partition('/')[0]}.txt", f"key={secret};".encode())
        return f"told: {json.dumps(given)} {secret} https://x/?k={secret.replace('+', '%2B')}"

    def fail(*_: object) -> str:
        raise ToolError(f"401 for {secret}")

    def missing(*_: object) -> str:
        raise ToolUnavailable(f"{secret} is refused.", fix=f"replace {secret}")

    secrets = read_secrets(SETTINGS, KEYS)
    workspace, tape = space(tmp_path / "space", menu=PNG), recording(tmp_path / "tape")
    answers: list[Answer] = [echo, fail, missing, lambda workspace, given: "plain"]
    for number, answer in enumerate(answers):
        live = Scripted(answer, version=f"v1 {secret}")
        source = taped(tape, "record", live, secrets=secrets)
        arguments = {"note": f"{number} {secret}", secret: [{secret: secret}]}
        try:
            result = call(source, workspace, **arguments)  # type: ignore[arg-type]
        except (ToolError, ToolUnavailable) as exc:
            assert secret not in str(exc)
        else:
            assert secret not in result.text
    kept = everything(tmp_path / "tape")
    assert b"[redacted:" in kept
    for form in (secret, secret.replace("/", "%2F").replace("+", "%2B")):
        assert form.encode() not in kept.replace(str(tmp_path).encode(), b"")


def test_a_redacted_file_is_what_agent_and_replay_both_see(tmp_path: Path) -> None:
    def leak(workspace: Workspace, _: object) -> str:
        return workspace.write("page.html", b"<p>sk-planted-key</p>").path

    first, second = space(tmp_path / "a"), space(tmp_path / "b")
    secrets = {"sk-planted-key": "A_KEY"}
    tape = recording(tmp_path / "tape")
    call(taped(tape, "record", Scripted(leak), secrets=secrets), first, note="x")
    call(taped(Tape.open(tmp_path / "tape"), "replay", secrets=secrets), second, note="x")
    assert first.outputs() == second.outputs()
    assert second.read("outputs/page.html") == b"<p>**************</p>"


def test_a_call_with_a_key_in_it_is_found_again(tmp_path: Path) -> None:
    workspace, secrets = space(tmp_path / "a"), {"sk-planted-key": "A_KEY"}
    live = Scripted(lambda *_: "done")
    tape = recording(tmp_path / "tape")
    call(taped(tape, "record", live, secrets=secrets), workspace, note="with sk-planted-key")
    player = taped(Tape.open(tmp_path / "tape"), "replay", secrets=secrets)
    assert call(player, workspace, note="with sk-planted-key").text == "done"


def test_the_longer_of_two_secrets_goes_first() -> None:
    redactor = Redactor({"sk-one": "A", "sk-one-two": "B"})
    assert redactor.text("sk-one-two sk-one") == "[redacted:B] [redacted:A]"
    assert redactor.value([1, None, {"sk-one": True}]) == [1, None, {"[redacted:A]": True}]


RUN_KEYS = {
    "OPENAI_API_KEY": "sk-run-openai-1",
    "SERPER_API_KEY": "run-serper-2",
    "TEST_KEY": "run-endpoint-3",
    "MODEL_KEY": "run-model-4",
}
TOML = """
[endpoints.mine]
url = "{url}/v1"
model = "tiny-vlm"
key_env = "TEST_KEY"

[tools.ImageDescription]
endpoint = "mine"

[models.m]
model = "mockllm/model"
key_env = "MODEL_KEY"
"""


def test_a_run_with_keys_everywhere_records_none_of_them(
    tmp_path: Path, loopback: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real tools, a real endpoint that repeats the key it was sent, and an agent that leaks."""
    monkeypatch.chdir(tmp_path)
    for name, value in RUN_KEYS.items():
        monkeypatch.setenv(name, value)
    names = ("Calculator", "DrawBox", "ImageDescription")
    request = {"role": "user", "content": " ".join(RUN_KEYS.values())}
    answer = {"role": "assistant", "content": "Done."}
    task = atomic_task(tools=[tool(name) for name in names], dialogs=[request, answer])
    data = write_atomic(tmp_path / "data", {"0": task}, [tool(name) for name in names])
    (data / "image" / "menu.jpg").write_bytes(png())
    with openai_server() as server:
        server.turns = [
            Turn(401, json.dumps({"error": {"message": RUN_KEYS["TEST_KEY"]}}).encode())
        ]
        server.say = f"I see {' and '.join(RUN_KEYS.values())}."
        (tmp_path / "gta.toml").write_text(TOML.format(url=server.origin), encoding="utf-8")
        agent = ("--agent", "tests.tape.agents:leaker", "--model", "m")
        run(data, tmp_path / "run", *agent, "--tape", "tape", "--tape-mode", "record")
        assert server.seen[0].headers["authorization"] == f"Bearer {RUN_KEYS['TEST_KEY']}"
    kept = everything(tmp_path / "tape")
    assert len(Tape.open(tmp_path / "tape")) == 6, "the unknown tool was not called"
    assert kept.count(b"[redacted:TEST_KEY]") > 4
    assert b"I see [redacted:OPENAI_API_KEY] and" in kept
    for value in RUN_KEYS.values():
        assert value.encode() not in kept
