"""`gta tools serve`: serve the tools of this machine, or of a Ray cluster, to other programs."""

import asyncio
import logging
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gta_bench.cli.options import FILE, NEW_FOLDER, command_settings
from gta_bench.cli.output import say
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import EnvironmentProblem, UsageError, format_count
from gta_bench.packages import require_packages
from gta_bench.serving.choice import SERVER_PACKAGES, TOKEN_VARIABLE
from gta_bench.serving.tokens import RunTokens, new_token
from gta_bench.settings import Settings, bind_ray_to_loopback, quiet_ray, read_key, use_haproxy
from gta_bench.tools.catalog import load_tool, tool_names
from gta_bench.tools.equipment import use_equipment
from gta_bench.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from gta_bench.serving.ray_plan import Group

PORT = 16182  # AgentLego uses 16180, and its README 16181
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@click.command("serve")
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, help="Port; 0 picks a free one."
)
@click.option("--token-env", help="Environment variable with the token that clients need.")
@click.option("--token-file", type=FILE, help="File with one token per line, one for each run.")
@click.option(
    "--tool", "names", multiple=True, show_default="all", help="Serve only this tool; repeatable."
)
@click.option(
    "--access-log/--no-access-log", default=True, help="Log each request as a JSON line on stderr."
)
@click.option("--stdio", is_flag=True, help="Serve one client over MCP on stdin and stdout.")
@click.option(
    "--workspace",
    type=NEW_FOLDER,
    show_default="a temporary folder",
    help="With --stdio: the folder whose inputs/ and outputs/ the tools see.",
)
@click.option("--on", type=click.Choice(["ray"]), help="Serve on a Ray cluster, as PLAN says.")
@click.argument("plan", required=False, type=FILE)
def serve_command(
    host: str,
    port: int,
    token_env: str | None,
    token_file: Path | None,
    names: tuple[str, ...],
    access_log: bool,
    stdio: bool,
    workspace: Path | None,
    on: str | None,
    plan: Path | None,
) -> None:
    """Serve the tools over HTTP and MCP, or over MCP on stdio.

    Clients need the token. If you give none, a new one is created and printed once. PLAN, a YAML
    file for --on ray, says how to distribute the tools. Next: `gta run … --tools http://…`.
    """
    settings = command_settings()
    require_packages("gta tools serve", *SERVER_PACKAGES, extra="serve")
    if (on is None) != (plan is None):
        raise UsageError("Use --on ray and PLAN together: gta tools serve --on ray tools.yaml")
    if on is not None and (stdio or names):
        raise UsageError("--stdio and --tool have no effect with --on ray: PLAN names the tools.")
    if stdio:
        if token_env is not None or token_file is not None:
            raise UsageError("--stdio needs no token: leave --token-env and --token-file out.")
        asyncio.run(_serve_stdio(settings, names, workspace))
        return
    if workspace is not None:
        raise UsageError("--workspace needs --stdio; HTTP clients open their own workspaces.")
    given = list(_read_tokens(token_env, token_file))
    if not given and not _is_loopback(host):
        raise UsageError(
            f"Other machines can reach --host {host}: set a token with --token-env or --token-file."
        )
    tokens = given or [new_token()]
    if plan is not None:
        require_packages("--on ray", "ray", "yaml", extra="cluster")
        _serve_on_ray(plan, settings, tokens, host, port, new=not given)
        return
    with _log_access() if access_log else nullcontext():
        asyncio.run(_serve_http(settings, names, tokens, host, port, new=not given))


def _read_tokens(variable: str | None, file: Path | None) -> Iterator[str]:
    if variable is not None:
        token = read_key(variable)
        if token is None:
            raise EnvironmentProblem(
                f"--token-env: the variable {variable} is not set; export {variable}=…"
            )
        yield token
    if file is not None:
        lines = file.read_text(encoding="utf-8").split()
        if not lines:
            raise UsageError(f"--token-file {file} is empty: write one token per line.")
        yield from lines


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _log_access() -> Iterator[None]:
    """Write a line to stderr for each request that ends inside the block."""
    access, lines = logging.getLogger("gta_bench.serving.access"), logging.StreamHandler(sys.stderr)
    access.addHandler(lines)
    access.setLevel(logging.INFO)
    access.propagate = False
    try:
        yield
    finally:
        access.removeHandler(lines)


async def _serve_http(
    settings: Settings,
    names: tuple[str, ...],
    tokens: Sequence[str],
    host: str,
    port: int,
    *,
    new: bool,
) -> None:
    from gta_bench.serving.app import make_app
    from gta_bench.serving.limits import ServerLimits
    from gta_bench.serving.listening import bind_socket, make_server

    limits = ServerLimits()
    with (
        bind_socket(host, port) as listening,
        tempfile.TemporaryDirectory(prefix="gta-serve-") as folder,
    ):
        async with use_equipment(settings) as equipment:
            toolbox = Toolbox(equipment, names or None)
            if new:
                say(f"{TOKEN_VARIABLE}={tokens[0]}")
            app = make_app(toolbox, tokens=RunTokens(tokens), folder=Path(folder), limits=limits)
            shown = f"[{host}]" if ":" in host else host
            address = f"http://{shown}:{listening.getsockname()[1]}"
            say(f"{format_count(len(toolbox.specs()), 'tool')} at {address}; press Ctrl-C to stop.")
            await make_server(app, limits).serve(sockets=[listening])


async def _serve_stdio(settings: Settings, names: tuple[str, ...], workspace: Path | None) -> None:
    from gta_bench.serving.mcp_face import serve_stdio

    async with use_equipment(settings) as equipment:
        toolbox = Toolbox(equipment, names or None)
        if workspace is not None:
            await serve_stdio(toolbox, Workspace.create(workspace, {}))
            return
        with tempfile.TemporaryDirectory(prefix="gta-stdio-") as folder:
            await serve_stdio(toolbox, Workspace.create(Path(folder), {}))


def _serve_on_ray(
    file: Path, settings: Settings, tokens: Sequence[str], host: str, port: int, *, new: bool
) -> None:
    """Deploy the tools as the plan says, and remove them on Ctrl-C."""
    if sys.platform == "win32":
        raise EnvironmentProblem("gta tools serve --on ray needs Linux: start it on the cluster.")
    from gta_bench.serving.ray_plan import LOCAL, read_plan

    plan = read_plan(file, tool_names())
    quiet_ray()
    if plan.cluster == LOCAL:
        bind_ray_to_loopback()
    if plan.proxy == "haproxy":
        if new:
            raise UsageError(
                f"{file}: `proxy: haproxy` opens ports on every address of the machine: set a "
                "token with --token-env or --token-file."
            )
        use_haproxy()
    # Ray reads the environment when it is imported.
    from gta_bench.serving import ray_serve

    specs = {name: load_tool(name).spec() for name in tool_names()}
    ray_serve.connect(plan.cluster)
    try:
        # Blocked until everything is deployed, so that nothing is left half done.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        ray_serve.deploy(plan, specs, settings, tuple(tokens), host=host, port=port)
        if new:
            say(f"{TOKEN_VARIABLE}={tokens[0]}")
        for group in plan.groups:
            say(f"{group.name}: {_describe_group(group)}")
        count = sum(len(group.tools) for group in plan.groups)
        say(f"{format_count(count, 'tool')} at http://{host}:{port}; press Ctrl-C to stop.")
        signal.sigwait(STOP_SIGNALS)
    finally:
        ray_serve.shut_down()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def _describe_group(group: "Group") -> str:
    many = group.replicas
    replicas = str(many) if isinstance(many, int) else f"{many.min} to {many.max}"
    parts = [
        format_count(len(group.tools), "tool"),
        f"replicas {replicas}",
        f"{group.cpus:g} CPUs each",
    ]
    if group.gpus:
        parts.append(f"{group.gpus:g} GPUs each")
    parts += group.pip or ([group.python] if group.python else [])
    return ", ".join(parts)
