"""`gta task from-trace`: draft tasks from the traces of agents at work."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import JsonValue

from gta_bench.cli.options import FILE, NEW_FOLDER, command_settings, json_option
from gta_bench.cli.output import say, write_json, write_rows
from gta_bench.errors import UsageError, format_count

if TYPE_CHECKING:
    from gta_bench.authoring.from_trace import WrittenDraft
    from gta_bench.authoring.traces.observed import ObservedTrace

SHOWN = 60


@click.command("from-trace")
@click.argument("file", type=FILE)
@click.option("--out", type=NEW_FOLDER, default="tasks", help="Folder of your tasks.")
@click.option("--trace", "traces", metavar="ID", multiple=True, help="Id of a trace in FILE.")
@click.option("--all", "every", is_flag=True, help="All traces in FILE.")
@click.option("--id", "name", show_default="from FILE", help="Id of the task, for a single trace.")
@click.option(
    "--server",
    default="trace",
    help="Tool server of the tools whose names do not say it, as in [tool_servers.NAME].",
)
@click.option("--model", help="Model that proposes the leaves; without it, they are questions.")
@json_option
def from_trace_command(
    file: Path,
    out: Path,
    traces: tuple[str, ...],
    every: bool,
    name: str | None,
    server: str,
    model: str | None,
    as_json: bool,
) -> None:
    """Write a draft task for a trace in FILE, an agent's recorded work.

    FILE is an Inspect log, an ATIF trajectory, or spans by OpenInference or OpenTelemetry's GenAI
    conventions as JSON. The draft has the request, the tools and a tape of their calls; draft.toml
    says which fields are observed, inferred or missing. It stays a draft until `gta task pilot`
    passes.
    """
    from gta_bench.authoring.from_trace import TraceOrigin, check_target, choose_ids, write_draft
    from gta_bench.authoring.traces.files import find_traces
    from gta_bench.authoring.traces.secrets import redact_trace

    settings = command_settings()  # from here on, keys are redacted
    if every and traces:
        raise UsageError("Give either --trace or --all.")
    listed = find_traces(file)
    chosen = listed.pick(traces, file) if traces else list(listed.found)
    if len(chosen) > 1 and not every and not traces:
        write_rows([(one.id, _describe(redact_trace(one.read()))) for one in chosen[:1000]])
        raise UsageError(
            f"{file} has {format_count(len(chosen), 'trace')}: choose with --trace ID, or --all."
        )
    if name is not None and len(chosen) > 1:
        raise UsageError("--id names a single task: choose one trace with --trace.")
    read = [redact_trace(one.read()) for one in chosen]
    ids = [name] if name is not None else choose_ids(file.stem, [one.id for one in read], out)
    for task in ids:
        check_target(out, task, server)
    trees = []
    if model is not None:
        from gta_bench.authoring.propose import propose_trees

        trees = propose_trees(model, read, settings)
    origin = TraceOrigin.of(file)
    drafts = [
        write_draft(
            trace, out / task, origin, server=server, proposed=trees[place] if trees else None
        )
        for place, (trace, task) in enumerate(zip(read, ids, strict=True))
    ]
    if listed.others:
        say(f"{format_count(listed.others, 'other trace')} of no agent left out.")
    if as_json:
        write_json([_dump(one) for one in drafts])
        return
    for one in drafts:
        missing = ", ".join(key for key, _ in one.draft.select("missing"))
        say(f"{one.folder}: {one.taped} of {format_count(one.calls, 'call')} on its tape.")
        say(f"  missing: {missing}. Its notes.md has the questions.")
    say(f"{format_count(len(drafts), 'draft')}. Write what is missing, then: gta task lint {out}")


def _dump(one: "WrittenDraft") -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {key: field.state for key, field in one.draft.fields.items()}
    return {
        "folder": str(one.folder),
        "calls": one.calls,
        "taped": one.taped,
        "fields": fields,
    }


def _describe(trace: "ObservedTrace") -> str:
    request = " ".join((trace.request or "(no request)").split())
    short = request if len(request) <= SHOWN else f"{request[:SHOWN]}…"
    return f"{format_count(len(trace.calls), 'call')}, {short}"
