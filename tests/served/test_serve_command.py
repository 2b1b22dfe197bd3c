import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.errors import UsageError
from gta_bench.serving.choice import ServerAddress, parse_tools
from gta_bench.serving.tokens import RunTokens, new_token

pytestmark = pytest.mark.usefixtures("loopback")


def serve(*arguments: str) -> str:
    """The one line in which a start that fails ends."""
    result = CliRunner().invoke(app, ["tools", "serve", *arguments])
    assert result.exit_code != 0
    assert "GTA_TOOLS_TOKEN=" not in result.output
    return str(result.exception)


def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = serve("--port", str(taken.getsockname()[1]))
    assert "Address already in use; choose another port with --port." in said


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.test"])
def test_an_address_that_others_reach_needs_a_token(host: str) -> None:
    assert "Other machines can reach" in serve("--host", host)


def test_tokens_are_checked(tmp_path: Path) -> None:
    assert "NO_SUCH_TOKEN is not set" in serve("--token-env", "NO_SUCH_TOKEN")
    file = tmp_path / "tokens"
    file.write_text("", encoding="utf-8")
    assert "is empty" in serve("--token-file", str(file))
    file.write_text("short", encoding="utf-8")
    assert "20 or more printable" in serve("--token-file", str(file))


def test_a_workspace_is_for_stdio() -> None:
    assert "--workspace needs --stdio" in serve("--workspace", "x")


def test_a_workspaces_token_depends_on_run_and_workspace() -> None:
    first, second = new_token(), new_token()
    tokens = RunTokens([first, second])
    runs = [tokens.run(token) for token in (first, second)]
    assert tokens.run("") is None
    assert tokens.run("\udcff") is None
    made = {run.workspace_token(name) for run in runs if run for name in ("a", "b")}
    assert len(made) == 4
    assert first not in repr(runs)


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("local", None),
        ("http://127.0.0.1:1/", ServerAddress("http", "http://127.0.0.1:1")),
        ("https://h/x", ServerAddress("http", "https://h/x")),
        ("mcp+http://h:2", ServerAddress("mcp", "http://h:2")),
        ("agentlego+https://h", ServerAddress("agentlego", "https://h")),
    ],
)
def test_addresses_of_tools(text: str, server: ServerAddress | None) -> None:
    assert parse_tools(text) == server


@pytest.mark.parametrize("text", ["", "Local", "h:2", "http://", "mcp+local", "http://h#x"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError):
        parse_tools(text)
