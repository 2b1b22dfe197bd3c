"""`gta tools serve`: the tools of this machine for other programs and machines."""

import asyncio
import logging
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from ipaddress import ip_address
from pathlib import Path

import click

from gta_bench.cli.options import config_path
from gta_bench.cli.output import say
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import EnvironmentProblem, UsageError, counted
from gta_bench.packages import require_packages
from gta_bench.serving.choice import SERVER_PACKAGES, TOKEN_VARIABLE
from gta_bench.serving.tokens import RunTokens, new_token
from gta_bench.settings import Settings, read_key, read_settings
from gta_bench.tools.equipment import equipped
from gta_bench.tools.toolbox import Toolbox

PORT = 16182  # AgentLego's own is 16180, and its README uses 16181


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True)
@click.option("--token-env", help="Environment variable with the token.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False),
    help="File with a token on each line, one for each run.",
)
@click.option("--tool", "names", multiple=True, help="Serve only this tool; may be repeated.")
@click.option("--access-log/--no-access-log", default=True, help="A JSON line a request on stderr.")
@click.option("--stdio", is_flag=True, help="MCP on standard input and output, for one client.")
@click.option(
    "--workspace",
    type=click.Path(file_okay=False),
    help="With --stdio: the folder whose inputs/ and outputs/ the tools see.",
)
@click.option("--on", type=click.Choice(["ray"]), help="Serve on a Ray cluster, as PLAN says.")
@click.argument("plan", required=False, type=click.Path(exists=True, dir_okay=False))
@click.pass_obj
def serve_command(
    config_file: str | None,
    host: str,
    port: int,
    token_env: str | None,
    token_file: str | None,
    names: tuple[str, ...],
    access_log: bool,
    stdio: bool,
    workspace: str | None,
    on: str | None,
    plan: str | None,
) -> None:
    """Serve the tools over HTTP and MCP, or over MCP on stdio.

    Clients need the token. Without one given, a new one is made and said once. PLAN is for
    --on ray: a YAML file that says which tools go where.
    """
    settings = read_settings(config_path(config_file)).settings
    require_packages("gta tools serve", *SERVER_PACKAGES, extra="serve")
    if (on is None) != (plan is None):
        raise UsageError("--on ray and PLAN go together: gta tools serve --on ray tools.yaml")
    if on is not None and (stdio or names):
        raise UsageError("--stdio and --tool mean nothing on Ray: PLAN names the tools.")
    if stdio:
        asyncio.run(_stdio(settings, names, workspace))
        return
    if workspace is not None:
        raise UsageError("--workspace is for --stdio; HTTP clients open their own workspaces.")
    given = list(_tokens(token_env, token_file))
    if not given and not _is_loopback(host):
        raise UsageError(
            f"--host {host} can be reached from elsewhere; give a token with --token-env or "
            "--token-file."
        )
    tokens = given or [new_token()]
    if plan is not None:
        require_packages("--on ray", "ray", "yaml", extra="cluster")
        from gta_bench.cli.serve_ray import serve_on_ray

        serve_on_ray(Path(plan), settings, tokens, host, port, new=not given)
        return
    with _access_logged() if access_log else nullcontext():
        asyncio.run(
            _http(settings, names, RunTokens(tokens), host, port, new=None if given else tokens[0])
        )


def _tokens(variable: str | None, file: str | None) -> Iterable[str]:
    if variable is not None:
        token = read_key(variable)
        if token is None:
            raise EnvironmentProblem(f"{variable} is not set; export {variable}=…")
        yield token
    if file is not None:
        lines = Path(file).read_text(encoding="utf-8").split()
        if not lines:
            raise UsageError(f"--token-file {file} is empty.")
        yield from lines


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _access_logged() -> Iterator[None]:
    """A line on stderr for each request that ends inside the block."""
    access, lines = logging.getLogger("gta_bench.serving.access"), logging.StreamHandler(sys.stderr)
    access.addHandler(lines)
    access.setLevel(logging.INFO)
    access.propagate = False
    try:
        yield
    finally:
        access.removeHandler(lines)


async def _http(
    settings: Settings,
    names: tuple[str, ...],
    tokens: RunTokens,
    host: str,
    port: int,
    *,
    new: str | None,
) -> None:
    from gta_bench.serving.app import make_app
    from gta_bench.serving.limits import ServerLimits
    from gta_bench.serving.listening import bound_socket, make_server

    limits = ServerLimits()
    with (
        bound_socket(host, port) as listening,
        tempfile.TemporaryDirectory(prefix="gta-serve-") as folder,
    ):
        if new is not None:
            say(f"{TOKEN_VARIABLE}={new}")
        async with equipped(settings) as equipment:
            toolbox = Toolbox(equipment, names or None)
            app = make_app(toolbox, tokens=tokens, folder=Path(folder), limits=limits)
            address = f"http://{_shown(host)}:{listening.getsockname()[1]}"
            say(f"{counted(len(toolbox.specs()), 'tool')} at {address}; end with Ctrl-C.")
            await make_server(app, limits).serve(sockets=[listening])


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


async def _stdio(settings: Settings, names: tuple[str, ...], workspace: str | None) -> None:
    from gta_bench.serving.mcp_face import serve_stdio

    async with equipped(settings) as equipment:
        toolbox = Toolbox(equipment, names or None)
        if workspace is not None:
            await serve_stdio(toolbox, Workspace.create(Path(workspace), {}))
            return
        with tempfile.TemporaryDirectory(prefix="gta-stdio-") as folder:
            await serve_stdio(toolbox, Workspace.create(Path(folder), {}))
