"""`gta tools`: what works here, a call by hand, offline weights, a server."""

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click
from pydantic import JsonValue

from gta_bench.cli.options import config_path, json_option
from gta_bench.cli.output import say, write_json, write_rows
from gta_bench.cli.serve import serve_command
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import UsageError, counted
from gta_bench.records.calls import ToolResult
from gta_bench.records.tools import FILE_TYPES, ToolSpec
from gta_bench.settings import Settings, read_settings
from gta_bench.tools.catalog import load_tool, tool_names
from gta_bench.tools.contract import Available
from gta_bench.tools.equipment import equipped
from gta_bench.tools.toolbox import Toolbox

# The published definitions declare these paths as text.
PATHS_AS_TEXT = frozenset({"audio", "video"})


@click.group()
def tools() -> None:
    """List, call, equip and serve the tools."""


tools.add_command(serve_command)


@tools.command("list")
@json_option
@click.option(
    "--toolmeta",
    is_flag=True,
    help="The definitions instead, as a dataset's toolmeta.json has them.",
)
@click.pass_obj
def list_command(config_file: str | None, as_json: bool, toolmeta: bool) -> None:
    """Every tool: whether it works here, with which backend, or why not."""
    if toolmeta:
        write_json({name: load_tool(name).spec().model_dump(mode="json") for name in tool_names()})
        return
    rows = asyncio.run(_states(read_settings(config_path(config_file)).settings))
    if as_json:
        write_json([*rows])
        return
    write_rows(
        [
            (
                "yes" if row["available"] else "no",
                str(row["name"]),
                str(row["category"]),
                str(row["backend"] if row["available"] else row["reason"]),
            )
            for row in rows
        ]
    )
    working = sum(bool(row["available"]) for row in rows)
    say(f"{working} of {counted(len(rows), 'tool')} work here.")


async def _states(settings: Settings) -> list[dict[str, JsonValue]]:
    async with equipped(settings) as equipment:
        toolbox = Toolbox(equipment)
        rows: list[dict[str, JsonValue]] = []
        for name in tool_names():
            state, tool = toolbox.availability(name), load_tool(name)
            works = isinstance(state, Available)
            rows.append(
                {
                    "name": name,
                    "category": tool.category,
                    "available": works,
                    "backend": state.backend if isinstance(state, Available) else None,
                    "version": tool.version,
                    "reason": None
                    if isinstance(state, Available)
                    else f"{state.reason} {state.mend}",
                }
            )
    return rows


@tools.command("call")
@click.argument("name")
@click.option("--arg", "arguments", multiple=True, help="An argument as NAME=VALUE.")
@click.option(
    "--out", type=click.Path(file_okay=False), default=".", help="Where produced files are put."
)
@json_option
@click.pass_obj
def call_command(
    config_file: str | None, name: str, arguments: tuple[str, ...], out: str, as_json: bool
) -> None:
    """Call a tool once. A file argument may name any file of this machine."""
    settings = read_settings(config_path(config_file)).settings
    spec = load_tool(name).spec()
    given = dict(_argument(text) for text in arguments)
    with tempfile.TemporaryDirectory(prefix="gta-call-") as folder:
        result = asyncio.run(_call(settings, spec, given, Path(folder), Path(out)))
    if as_json:
        write_json(result.model_dump(mode="json"))
    else:
        click.echo(result.text)
        say(f"{result.backend}, {result.seconds:.2f} s")


async def _call(
    settings: Settings, spec: ToolSpec, given: dict[str, str], folder: Path, out: Path
) -> ToolResult:
    attached = _attached(spec, given)
    sources = {path: source for path, source in attached.values()}
    workspace = Workspace.create(folder, sources, follow_links=True)
    arguments = {**given, **{name: path for name, (path, _) in attached.items()}}
    async with equipped(settings) as equipment:
        result = await Toolbox(equipment, [spec.name]).call(workspace, spec.name, arguments)
    for output in workspace.outputs().files:
        target = out / Path(output.path).name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(workspace.root / output.path, target)
        say(f"{output.path} → {target}")
    return result


def _attached(spec: ToolSpec, given: Mapping[str, str]) -> dict[str, tuple[str, Path]]:
    """File arguments that name a file of this machine: its place for the tool, and its source."""
    kinds = {parameter.name: parameter.type for parameter in spec.inputs}
    attached = {}
    for number, (name, value) in enumerate(given.items()):
        source = Path(value)
        if (kinds.get(name) in FILE_TYPES or name in PATHS_AS_TEXT) and source.is_file():
            attached[name] = (f"inputs/{number}_{source.name}", source)
    return attached


def _argument(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--arg {text!r}: write it as NAME=VALUE.")
    return name, value


@tools.command("fetch")
@click.argument("names", nargs=-1)
@click.pass_obj
def fetch_command(config_file: str | None, names: tuple[str, ...]) -> None:
    """Bring offline weights, each by its pinned sha256; those of all tools unless named.

    Two are brought only if they are named: smollm2-135m, the demo's small language model, and
    all-mpnet-base-v2, the model behind published scores of free text (438 MB), which is then the
    default of --similarity.
    """
    from gta_bench.demo.local_model import SMOLLM2
    from gta_bench.tools.contract import Equipment
    from gta_bench.weights import KNOWN, MPNET, fetch, present

    settings = read_settings(config_path(config_file)).settings
    folder = Equipment(settings).weights
    known = {**KNOWN, SMOLLM2.name: SMOLLM2, MPNET.name: MPNET}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"Unknown weights {unknown[0]!r}. Known: {', '.join(known)}.")
    for name in names or KNOWN:
        weights = known[name]
        if present(weights, folder) is not None:
            say(f"{name}: already here ({', '.join(weights.tools)}).")
            continue
        fetch(weights, folder, say)
        say(f"{name}: fetched for {', '.join(weights.tools)} ({weights.license}).")
