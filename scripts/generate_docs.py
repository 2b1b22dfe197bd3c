"""Write the reference pages that come from code: the command line and the schemas.

`--check` writes nothing and fails when a page is stale.
"""

import argparse
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import BaseModel, JsonValue

import gta_bench
from gta_bench.cli import app
from gta_bench.datasets.receipt import Receipt
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.finding import Finding
from gta_bench.records.finished import ResultMeta
from gta_bench.records.leaderboard import Entry
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import WorkflowTask
from gta_bench.runs.results_columns import ABOUT, TABLES
from gta_bench.settings import settings_schema
from gta_bench.tools.catalog import CATALOG, load_tool

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
RECORDS: tuple[type[BaseModel], ...] = (
    AtomicTask,
    WorkflowTask,
    ToolSpec,
    Finding,
    Receipt,
    Entry,
    ResultMeta,
)

# The page's example; tests/test_api.py does the same on the demo's tasks.
EXAMPLE = """
import gta_bench

tasks = gta_bench.load("atomic").tasks
scores = gta_bench.run("atomic", "runs/mine", model="openai/gpt-5", tasks="0:20")
print(scores.strict.ans_acc, f"{scores.n}/{scores.n_units}")

gta_bench.run("workflow", "runs/long", model="openai/gpt-5", judges=["openai/gpt-5.2"])
worst = min(gta_bench.verdicts("runs/long").items(), key=lambda item: item[1].verdict.value)
gta_bench.compare("runs/mine", "runs/other")
gta_bench.report("mine.html", "runs/mine", "runs/long")
"""


def main() -> None:
    """Write or check every generated page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = [name for name, text in pages() if not _write(REFERENCE / name, text, check=check)]
    if stale:
        sys.exit(f"stale: {', '.join(stale)}; run `make fix`")


def pages() -> Iterator[tuple[str, str]]:
    """Every generated file below docs/reference, with its content."""
    yield "cli.md", _command_line()
    yield "tools.md", _tools()
    yield "api.md", _api()
    yield "results.md", _results()
    yield "schemas/gta.toml.schema.json", _json(settings_schema())
    for record in RECORDS:
        yield f"schemas/{record.__name__}.schema.json", _json(record.model_json_schema())


def _command_line() -> str:
    parts = ["# Command line", "", "Written from the commands themselves by `make fix`.", ""]
    for path, command in _commands("gta", app):
        with click.Context(command, info_name=path, terminal_width=80) as context:
            parts += [f"## `{path}`", "", "```text", command.get_help(context), "```", ""]
    return "\n".join(parts)


def _api() -> str:
    parts = [
        "# Python",
        "",
        "Written from the code by `make fix`. What the commands do, for notebooks and programs:",
        "`import gta_bench` and these names are there. They return frozen, typed records; failures",
        "that are not bugs are `gta_bench.GtaError`s with one line of text.",
        "",
        "```python",
        *EXAMPLE.strip().splitlines(),
        "```",
        "",
    ]
    for name in gta_bench.__all__:
        found = getattr(gta_bench, name)
        parts += [f"## `{name}`", ""]
        if inspect.isfunction(found):
            parts += ["```text", _signature(name, found), "```", ""]
        parts += [inspect.getdoc(found) or "", ""]
    return "\n".join(parts)


def _signature(name: str, function: Callable[..., object]) -> str:
    """One line for each parameter."""
    lines = [f"{name}("]
    for parameter in inspect.signature(function).parameters.values():
        shown = str(parameter).replace("gta_bench.", "").replace("pathlib._local.", "")
        lines.append(f"    {_plain(shown)},")
    gives = inspect.signature(function).return_annotation
    text = gives.__name__ if isinstance(gives, type) and not get_args(gives) else str(gives)
    return "\n".join([*lines, f") -> {_plain(text)}"])


def _plain(text: str) -> str:
    """Types by their last names, the same on every Python."""
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text)


def _results() -> str:
    parts = [
        "# Results tables",
        "",
        "Written from the code by `make fix`. `gta results export RUN… --out DIR` writes a folder",
        "for each table and in it a file for each run, as Parquet or CSV; needs",
        "`pip install 'gta-bench[report]'`. `gta report DIR` shows the scores of exported runs:",
        "DuckDB pools the verdicts, a million in seconds. What failed and why is not in it but in",
        "the table `failures`, of runs that `gta score` has scored. Any program reads the tables:",
        "",
        "```sql",
        "SELECT run, judge, avg(value) FROM 'DIR/verdicts/*.parquet' GROUP BY ALL",
        "```",
        "",
    ]
    for table, columns in TABLES.items():
        parts += [f"## `{table}`", "", ABOUT[table], ""]
        parts += ["| column | type | meaning |", "|---|---|---|"]
        parts += [f"| `{one.name}` | {one.type} | {one.meaning} |" for one in columns]
        parts.append("")
    return "\n".join(parts)


def _tools() -> str:
    parts = [
        "# Tools",
        "",
        "Written from the tools themselves by `make fix`. `gta tools list` says which work on a",
        "machine and with which backend; `gta tools call NAME --arg NAME=VALUE` calls one. The",
        "examples are real calls, as an agent makes them, and what came back; they were recorded",
        "by `scripts/tool_examples.py`, and small offline models make the mistakes that they make.",
        "",
    ]
    examples = json.loads((REFERENCE / "tool-examples.json").read_text(encoding="utf-8"))
    for name in CATALOG:
        tool = load_tool(name)
        about = f"*{tool.category}*, version {tool.version}. {tool.description}"
        parts += [f"## {name}", "", about]
        parts += ["", "| argument | type | needed | meaning |", "|---|---|---|---|"]
        for one in tool.spec().inputs:
            needed = "yes" if not one.optional else f"no, default `{one.default}`"
            meaning = " ".join((one.description or "").split()).replace("|", "\\|")
            parts.append(f"| `{one.name}` | {one.type} | {needed} | {meaning} |")
        gives = ", ".join(output.type for output in tool.outputs)
        parts += ["", f"Gives: {gives}.", "", *_example(name, examples[name])]
    return "\n".join(parts)


def _example(name: str, example: dict[str, Any]) -> Iterator[str]:
    """A call and what came back: its text, and its picture where the tool made one."""
    arguments = json.dumps(example["arguments"], indent=2, ensure_ascii=False)
    yield from ("Example:", "", "```json", *arguments.splitlines(), "```", "")
    if "said" not in example:
        yield from ("It needs a key or an endpoint, so no result is shown.", "")
        return
    yield from (f"gave, by {example['backend']}:", "", "```text", example["said"], "```", "")
    if "picture" in example:
        yield from (f"![What {name} made]({example['picture']})", "")


def _commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(f"{path} {name}", inner)


def _json(schema: JsonValue | dict[str, JsonValue]) -> str:
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _write(file: Path, text: str, *, check: bool) -> bool:
    if file.is_file() and file.read_text(encoding="utf-8") == text:
        return True
    if not check:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return not check


if __name__ == "__main__":
    main()
