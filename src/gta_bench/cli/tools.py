"""`gta tools`: list and call the tools, fetch weights, serve the tools."""

import asyncio
import shutil
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

import click
from pydantic import JsonValue

from gta_bench.cli.options import NEW_FOLDER, command_settings, json_option
from gta_bench.cli.output import say, write_json, write_rows
from gta_bench.cli.serve import serve_command
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import UsageError, format_count
from gta_bench.packages import require_packages
from gta_bench.records.calls import ToolResult
from gta_bench.records.tools import FILE_TYPES, ToolSpec
from gta_bench.settings import Settings
from gta_bench.tools.catalog import load_tool, tool_names
from gta_bench.tools.contract import Availability, Available
from gta_bench.tools.equipment import find_availability, use_equipment
from gta_bench.tools.toolbox import Toolbox

SHOWN = 80  # characters of a description
# Parameters for paths that the published definitions declare as text.
PATHS_AS_TEXT = frozenset({"audio", "video"})


@click.group()
def tools() -> None:
    """List, call and serve the tools; fetch weights of local models."""


tools.add_command(serve_command)


@tools.command("list")
@json_option
@click.option(
    "--toolmeta",
    is_flag=True,
    help="Print the tool definitions instead, in the format of a dataset's toolmeta.json.",
)
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="NAME",
    help="List the tools of this MCP server instead, with their digests: a name from "
    "[tool_servers] in gta.toml or from .mcp.json; repeatable.",
)
def list_command(as_json: bool, toolmeta: bool, servers: tuple[str, ...]) -> None:
    """List every tool: whether it works here, with which backend, or why not."""
    if servers:
        _list_servers(servers, as_json=as_json)
        return
    if toolmeta:
        write_json({name: load_tool(name).spec().model_dump(mode="json") for name in tool_names()})
        return
    rows = [_as_json(name, state) for name, state in check_tools(command_settings()).items()]
    if as_json:
        write_json([*rows])
        return
    write_rows(
        [
            (
                "yes" if row["available"] else "no",
                str(row["name"]),
                str(row["category"]),
                str(row["backend"] or row["reason"]),
            )
            for row in rows
        ]
    )
    working = sum(bool(row["available"]) for row in rows)
    say(f"{working} of {format_count(len(rows), 'tool')} work here.")


def _list_servers(names: tuple[str, ...], *, as_json: bool) -> None:
    """Start or reach each server once, and list its tools."""
    # Imported here because they import the evaluation engine.
    from gta_bench.records.tool_servers import pin_servers
    from gta_bench.tasks.run_tools import list_server_tools

    require_packages("A tool server", "mcp", extra="serve")
    with tempfile.TemporaryDirectory(prefix="gta-list-") as folder:
        specs = asyncio.run(list_server_tools(names, command_settings(), Path(folder)))
    if as_json:
        write_json([spec.model_dump(mode="json") for spec in specs])
        return
    pins = pin_servers(specs)
    for server in sorted({*names} - {*pins}):
        say(f"{server}: 0 tools.")
    about = {spec.name: spec.description.strip().partition("\n")[0] for spec in specs}
    for server, pin in pins.items():
        write_rows(
            [(name, one.interface[:12], about[name][:SHOWN]) for name, one in pin.tools.items()]
        )
        say(f"{server}: {format_count(len(pin.tools), 'tool')}, digest {pin.digest[:12]}.")


def check_tools(
    settings: Settings, names: Collection[str] | None = None
) -> dict[str, Availability]:
    """Return for these tools, or for all, whether they work on this machine."""
    return asyncio.run(find_availability(settings, names))


def _as_json(name: str, state: Availability) -> dict[str, JsonValue]:
    tool = load_tool(name)
    return {
        "name": name,
        "category": tool.category,
        "available": isinstance(state, Available),
        "backend": state.backend if isinstance(state, Available) else None,
        "version": tool.version,
        "reason": None if isinstance(state, Available) else f"{state.reason} {state.fix}",
    }


@tools.command("call")
@click.argument("name")
@click.option("--arg", "arguments", multiple=True, help="An argument, NAME=VALUE; repeatable.")
@click.option("--out", type=NEW_FOLDER, default=".", help="Folder for the files that it produces.")
@json_option
def call_command(name: str, arguments: tuple[str, ...], out: Path, as_json: bool) -> None:
    """Call the tool NAME once and print its result.

    The value of a file argument can be the path of any local file.
    """
    spec = load_tool(name).spec()
    given = dict(_parse_argument(text) for text in arguments)
    with tempfile.TemporaryDirectory(prefix="gta-call-") as folder:
        result = asyncio.run(_call(command_settings(), spec, given, Path(folder), out))
    if as_json:
        write_json(result.model_dump(mode="json"))
    else:
        click.echo(result.text)
        say(f"{result.backend}, {result.seconds:.2f} s")


async def _call(
    settings: Settings, spec: ToolSpec, given: dict[str, str], folder: Path, out: Path
) -> ToolResult:
    attached = _find_files(spec, given)
    sources = {path: source for path, source in attached.values()}
    workspace = Workspace.create(folder, sources, follow_links=True)
    arguments = {**given, **{name: path for name, (path, _) in attached.items()}}
    async with use_equipment(settings) as equipment:
        result = await Toolbox(equipment, [spec.name]).call(workspace, spec.name, arguments)
    for output in workspace.outputs().files:
        target = out / Path(output.path).name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(workspace.root / output.path, target)
        say(f"{output.path} → {target}")
    return result


def _find_files(spec: ToolSpec, given: Mapping[str, str]) -> dict[str, tuple[str, Path]]:
    """Return the arguments that name a local file: its path in the workspace, and its source."""
    kinds = {parameter.name: parameter.type for parameter in spec.inputs}
    attached = {}
    for number, (name, value) in enumerate(given.items()):
        source = Path(value)
        if (kinds.get(name) in FILE_TYPES or name in PATHS_AS_TEXT) and source.is_file():
            attached[name] = (f"inputs/{number}_{source.name}", source)
    return attached


def _parse_argument(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--arg {text!r} has no `=`: write it as NAME=VALUE.")
    return name, value


@tools.command("fetch")
@click.argument("names", nargs=-1)
def fetch_command(names: tuple[str, ...]) -> None:
    """Download the weights in NAMES, or those of all tools, and check their sha256.

    Some are downloaded only by name: smollm2-135m, the small language model of `gta demo`;
    qwen2.5-coder-0.5b (491 MB) and qwen2.5-coder-1.5b (1.1 GB), larger ones; and
    all-mpnet-base-v2 (438 MB), the model behind published scores of free text, which then becomes
    the default of --similarity.
    """
    from gta_bench.demo.local_model import LOCAL_MODELS
    from gta_bench.tools.contract import Equipment
    from gta_bench.weights import KNOWN, MPNET, fetch, find_weights

    folder = Equipment(command_settings()).weights
    known = {**KNOWN, **LOCAL_MODELS, MPNET.name: MPNET}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"Unknown weights {unknown[0]!r}. Known weights: {', '.join(known)}.")
    for name in names or KNOWN:
        weights = known[name]
        if find_weights(weights, folder) is not None:
            say(f"{name}: already here ({', '.join(weights.tools)}).")
            continue
        fetch(weights, folder, say)
        say(f"{name}: fetched for {', '.join(weights.tools)} ({weights.license}).")
