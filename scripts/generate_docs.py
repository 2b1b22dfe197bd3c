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
from gta_bench.authoring.lint import OF_PILOT, RULES
from gta_bench.checks.delivery import MOST_CELLS, MOST_TEXT
from gta_bench.checks.documents import MOST_NUMBERS, REGEX_LIMITS
from gta_bench.cli import app
from gta_bench.confine.limits import MIB
from gta_bench.content.database import MOST_ROWS, SECONDS
from gta_bench.datasets.folders import task_schema
from gta_bench.datasets.pinned import Receipt
from gta_bench.forge.catalog import ATOMIC_FAMILIES, FAMILIES
from gta_bench.metrics.table import METRICS
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.checks import CHECKS
from gta_bench.records.finding import Finding
from gta_bench.records.finished import Pack, PackMeta, PackTask, ResultMeta
from gta_bench.records.leaderboard import Entry, Verification
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import WorkflowTask
from gta_bench.runs.tables import ABOUT, TABLES
from gta_bench.settings import TABLES as SETTINGS
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
    Verification,
    ResultMeta,
    Pack,
)

DASH = "\N{EN DASH}"
EVERY_KEY = "## Every key"
EVERY_FIELD = "## Every field"
METRIC_TABLE = re.compile(r"(<!-- metrics: ([a-z-]+) -->)\n.*?(<!-- end -->)", re.DOTALL)
# The page's example; tests/test_api.py does the same on the demo's tasks.
EXAMPLE = """
import gta_bench

tasks = gta_bench.load("atomic").tasks
scores = gta_bench.run("atomic", "runs/mine", model="openai/gpt-5", tasks="0:20")
print(scores.strict.ans_acc, f"{scores.n}/{scores.n_units}")

gta_bench.run("workflow", "runs/long", model="openai/gpt-5", judges=["openai/gpt-5.2"])
verdicts = [row.verdict for row in gta_bench.verdicts("runs/long").values()]
worst = min(verdict.value for verdict in verdicts if verdict.type == "scored")
gta_bench.compare("runs/mine", "runs/other")
gta_bench.report("mine.html", "runs/mine", "runs/long")
"""
NOTEBOOKS = """
## In notebooks

Results print in a line. As the last line of a cell, datasets, manifests, scores and comparisons are
shown as tables, in the colors of the notebook. `to_frame()` of a dataset, units, scores, verdicts,
comparisons and own metrics returns a data frame of pandas, or of Polars if pandas is not installed;
`rows()` returns the same rows as dictionaries. Units, scores and verdicts have columns with the
names of the [results tables](results.md). `model_dump()` returns everything that a record has.

A run in a notebook needs no other package if its model and its judges are given by name.
To create Inspect models in a cell, such as `get_model("openai/gpt-5")`, install ipywidgets, which
Inspect requires in notebooks.

Two executed notebooks are in the folder `examples` of the repository:

- `first_model.ipynb`: from the first model to a comparison, a report and data frames
- `own_agent_and_metric.ipynb`: your own agent and your own metric, as functions

Both use the bundled tasks and need no key. To open them:

```text
pip install 'gta-bench[demo]' pandas jupyterlab
jupyter lab examples
```
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
    yield "metrics.md", _metrics()
    yield "settings.md", _settings()
    yield "packs.md", _packs()
    yield "checks.md", _checks()
    yield "lint.md", _lint()
    yield "families.md", _families()
    yield "schemas/gta.toml.schema.json", _json(settings_schema())
    yield "schemas/task.toml.schema.json", _json(task_schema())
    for record in RECORDS:
        yield f"schemas/{record.__name__}.schema.json", _json(record.model_json_schema())


def _command_line() -> str:
    parts = ["# Command line", "", "Written from the commands themselves by `make fix`.", ""]
    for path, command in _commands("gta", app):
        with click.Context(
            command, info_name=path, terminal_width=80, show_default=True
        ) as context:
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
        "An interrupt (Ctrl-C, or the stop button of a notebook) stops work within two seconds:",
        "no model is called afterwards, finished units are kept, and the message of the",
        "`KeyboardInterrupt` says how to continue. Names such as `arun` are coroutines, for",
        "programs with an event loop; canceling one stops its work in the same way, with a",
        "`CancelledError`. One run is at work in a process at a time; others wait for it.",
        "",
        "```python",
        *EXAMPLE.strip().splitlines(),
        "```",
        "",
    ]
    parts += [*NOTEBOOKS.strip().splitlines(), ""]
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


ABOUT_CHECKS = f"""
## Numbers

`48,210.55`, `48.210,55`, `48 210.55` and `$48,210.55` are the same number. If comma and period
occur, the last one is decimal. A comma before exactly three digits separates thousands (`1,234`),
any other one is decimal (`99,50`); a single period is decimal. A space separates thousands only
between one to three digits and groups of three. Parentheses mean minus. A percent sign is dropped,
so `50%` is 50; a cell of a workbook that shows 50% has the value 0.5.

`answer.contains` with `number` tries every number of the answer, and both readings where a space
may separate thousands or two numbers. An answer with more than {MOST_NUMBERS} different numbers
fails.

## What counts as text

Checks see what a reader sees. These do not count:

- comments, tracked deletions and hidden text of Word documents,
- hidden slides, and hidden sheets, rows and columns (`xlsx.cell` and `xlsx.no_errors` see them),
- comments, scripts, `template` and `noscript` of pages, and elements with `hidden`, `display: none`
  or `visibility: hidden` of their own,
- comments of Markdown.

`none` of `text.contains` looks into all of that, except in pages. These do count: text in the color
of its background, tiny text, text outside of the page or behind a picture, what a style sheet
hides, and the notes of slides.

## Limits

A text or CSV file with more than {MOST_TEXT // MIB} MiB, or a CSV file with more than
{MOST_CELLS:,} cells, fails its checks. So does a file on which `text.regex` needs more than
{REGEX_LIMITS.cpu_seconds} seconds of processor time, one of which other readers can read only a
part, and one on which a reader or LibreOffice computes until its time is over. Right work is within
these limits, as the pilot of a task shows. If a reader was stopped while it waited, because this
machine was too busy, the leaf is unscored.

## The state of tool servers

`state.file` and `sqlite.query` look at the
[state](../how-to/mcp-servers.md#check-the-state-of-a-server) of a tool server, never at
deliverables. `path` is a path in the server's folder, or a pattern that matches one file. If the
state is not known, the leaf is unscored.

A database is opened read-only in the jail, with its write-ahead log or journal. A file that is no
database, or does not have the tables of the query, fails, and so does a query with more than
{MOST_ROWS:,} rows. A query that is not a single SELECT leaves its leaf unscored. So does one that
takes more than {SECONDS:g} seconds, unless it is faster on the database before the first call.
`rows` are compared in their order, so write `ORDER BY`.
"""


def _checks() -> str:
    """Every kind of check with its parameters; those that must be given come first."""
    parts = [
        "# Checks",
        "",
        "Written from the code by `make fix`. Conditions of a leaf that code decides",
        "([Tasks of your own](../how-to/own-tasks.md)). `file` is the path of a deliverable, or a",
        "pattern such as `*.xlsx` that matches exactly one. Ranges are tables such as",
        "`{ min = 1, max = 3 }`. Texts are compared without regard to case, spaces and variants of",
        "Unicode. A column is found by its label and a row by any of its cells.",
        "",
        "| is | parameters | meaning |",
        "|---|---|---|",
    ]
    for name, check in CHECKS.items():
        fields = check.model_fields.items()
        shown = [(key, field) for key, field in fields if key not in ("check", *_attached(name))]
        needed = [f"**{key}**" for key, field in shown if field.is_required()]
        others = [key for key, field in shown if not field.is_required()]
        about = (inspect.getdoc(check) or "").partition("\n\n")[0].replace("\n", " ")
        listed = ", ".join([*needed, *others])
        parts.append(f"| `{name}` | {listed} | {about.replace('|', chr(92) + '|')} |")
    return "\n".join([*parts, "", "Parameters in bold must be given.", ABOUT_CHECKS])


def _families() -> str:
    """Every family of generated tasks with its levels."""
    parts = [
        "# Families",
        "",
        "Written from the code by `make fix`. What `gta forge` can make",
        "([Generated tasks](../how-to/forge.md)).",
        "",
        "| family | asks for | level 1 | level 2 | level 3 |",
        "|---|---|---|---|---|",
    ]
    for one in FAMILIES.values():
        parts.append(f"| `{one.name}` | {' | '.join([one.about, *one.levels])} |")
    parts += [
        "",
        "Atomic families give questions about pictures in the layout of GTA-Atomic. Each was",
        "solved on the real tools before it was written.",
        "",
        "| family | asks for | level 1 | level 2 | level 3 |",
        "|---|---|---|---|---|",
    ]
    for atomic in ATOMIC_FAMILIES.values():
        parts.append(f"| `{atomic.name}` | {' | '.join([atomic.about, *atomic.levels])} |")
    return "\n".join([*parts, ""])


def _lint() -> str:
    """Every rule of `gta task lint`, and what each is for."""
    parts = [
        "# Lint rules",
        "",
        "Written from the code by `make fix`. `gta task lint PATH…` applies these rules to tasks",
        "([Tasks of your own](../how-to/own-tasks.md#find-mistakes-early)). An *error* must be",
        "fixed, a *warning* should be, and a *note* is worth knowing. Rules "
        + ", ".join(OF_PILOT[:-1]),
        f"and {OF_PILOT[-1]} belong to the pilot of a task, which runs its checks.",
        "",
        "| rule | severity | meaning |",
        "|---|---|---|",
    ]
    parts += [_table_row(rule.id, rule.severity, rule.says) for rule in RULES.values()]
    for rule in RULES.values():
        parts += ["", f"## {rule.id}", "", f"{rule.says} {rule.more}"]
    return "\n".join([*parts, ""])


def _attached(check: str) -> tuple[str, ...]:
    """Fields that the loader fills with the text of a file."""
    return {"python": ("source",), "table.same": ("rows",)}.get(check, ())


def _settings() -> str:
    """The page as it is written by hand, and below it a table of every key."""
    page = (REFERENCE / "settings.md").read_text(encoding="utf-8")
    parts = [page.partition(EVERY_KEY)[0] + EVERY_KEY, ""]
    parts += ["Written from the code by `make fix`.", ""]
    parts += ["| key | default | meaning |", "|---|---|---|"]
    for table, section in SETTINGS.items():
        name = f"{table}.NAME" if table in ("datasets", "models", "endpoints", "tools") else table
        for key, field in section.model_fields.items():
            required = field.is_required()
            default = "needed" if required else "none"
            if not required and field.default is not None:
                default = f"`{json.dumps(field.default)}`"
            parts.append(f"| `{name}.{key}` | {default} | {field.description} |")
    return "\n".join([*parts, ""])


def _packs() -> str:
    """The page as it is written by hand, and below it a table of every field."""
    page = (REFERENCE / "packs.md").read_text(encoding="utf-8")
    parts = [page.partition(EVERY_FIELD)[0] + EVERY_FIELD, ""]
    parts += ["Written from the code by `make fix`. Other fields are ignored.", ""]
    parts += ["| field | type | needed | meaning |", "|---|---|---|---|"]
    for place, record in (("", Pack), ("tasks[].", PackTask), ("tasks[].meta.", PackMeta)):
        for name, field in record.model_fields.items():
            schema = record.model_json_schema()["properties"][name]
            needed = "yes" if field.is_required() else "no"
            row = (f"`{place}{name}`", _json_type(schema), needed, field.description)
            parts.append(_table_row(*row))
    return "\n".join([*parts, ""])


def _json_type(schema: dict[str, Any]) -> str:
    """The type of a field in the words of JSON."""
    if "anyOf" in schema:
        kinds = [_json_type(one) for one in schema["anyOf"] if one != {"type": "null"}]
        return " or ".join(dict.fromkeys(kinds))
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if schema.get("type") == "array":
        inner = _json_type(schema["items"])
        many = inner.replace("list", "lists", 1) if inner.startswith("list") else f"{inner}s"
        return f"list of {many}"
    named = "anything" if schema.get("$ref", "").endswith("/JsonValue") else "object"
    return named if "$ref" in schema else str(schema.get("type", "anything"))


def _metrics() -> str:
    """The page as it is written by hand, with its tables filled in."""
    page = (REFERENCE / "metrics.md").read_text(encoding="utf-8")
    return METRIC_TABLE.sub(
        lambda found: "\n".join([found[1], "", *_metric_rows(found[2]), "", found[3]]), page
    )


def _metric_rows(part: str) -> Iterator[str]:
    """The table of a mode, or of all metrics on a scale that has no formulas."""
    if part in ("count", "amount"):
        yield from ("| column | meaning | better |", "|---|---|---|")
        for one in METRICS:
            if one.scale == part:
                yield _table_row(one.label, one.meaning, one.better)
        return
    yield from ("| column | meaning | strict | compat | better | interval |", "|---" * 6 + "|")
    for one in METRICS:
        if part in one.modes and one.scale in ("percent", "points"):
            label = f"**{one.heading}**" if one.primary else one.heading
            yield _table_row(label, one.meaning, one.strict, one.compat, one.better, one.interval)


def _table_row(*cells: str | None) -> str:
    return f"| {' | '.join(cell or DASH for cell in cells)} |"


def _results() -> str:
    parts = [
        "# Results tables",
        "",
        "Written from the code by `make fix`. `gta results export RUN… --out DIR` writes a folder",
        "for each table and in it a file for each run, as Parquet or CSV; needs",
        "`pip install 'gta-bench[report]'`. `gta report DIR` shows the scores of exported runs:",
        "DuckDB pools the verdicts, a million in seconds. What failed and why is not in it but in",
        "the table `failures`, of runs that `gta score` has scored. In CSV, text that a",
        "spreadsheet would read as a formula has an apostrophe before it. Any program reads",
        "the tables:",
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
        "`inputs/photo.jpg` is a photograph that comes with matplotlib, `speech.wav` is spoken by",
        "flite, `film.mp4` shows it beside a picture of the demo; the others are the demo's.",
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
