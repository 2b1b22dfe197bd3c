"""`gta judge label`: people label the leaves of a run, blind, on a local page."""

import asyncio
import webbrowser
from pathlib import Path

import click

from gta_bench.cli.options import FOLDER, NEW_FILE, command_settings
from gta_bench.cli.output import say
from gta_bench.content.needs import EVIDENCE_PACKAGES
from gta_bench.errors import UsageError, format_count
from gta_bench.metrics.labels import shuffle_units
from gta_bench.packages import require_packages
from gta_bench.runs.labels import (
    dump_labels_csv,
    read_adjudication,
    read_labels,
    require_labels,
    write_labels,
)
from gta_bench.serving.choice import SERVER_PACKAGES
from gta_bench.settings import can_open_pages

HOST = "127.0.0.1"


@click.command()
@click.argument("run", type=FOLDER)
@click.option(
    "--tasks", "count", type=click.IntRange(1), show_default="all", help="Number of tasks to label."
)
@click.option("--seed", default=0, help="Seed for the random order of the tasks.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of the page; 0 picks a free one."
)
@click.option(
    "--export", type=NEW_FILE, help="Write all labels to this CSV file instead of serving the page."
)
def label(run: Path, count: int | None, seed: int, port: int, export: Path | None) -> None:
    """Serve a page on which people label the leaves of RUN from 0 to 10, with a reason.

    The page shows task, requirement and evidence, but not which system did the work or what a
    judge said. Tasks come in random order, so that the labels so far are a fair sample. Each person
    enters a name and can continue later; where people disagree, one person decides. Press Ctrl-C
    to stop. Next: `gta judge calibrate RUN`.
    """
    if export is not None:
        _export_labels(run, export)
        return
    settings = command_settings()
    needed = (*SERVER_PACKAGES, *EVIDENCE_PACKAGES, "scipy")
    require_packages("gta judge label", *needed, extra="workflow")
    from gta_bench.running.judge_run import prepare_evidence
    from gta_bench.serving.limits import ServerLimits
    from gta_bench.serving.listening import bind_socket, make_server
    from gta_bench.tasks.judging import find_judgeable_units
    from gta_bench.web.labeling import label_items, make_label_app

    every = shuffle_units(find_judgeable_units(run).values(), seed=seed)
    units = every[:count]
    evidence = asyncio.run(prepare_evidence(run, units, settings))
    chance = len(units) / max(1, len(every))
    items = label_items(units, evidence, chance=chance)
    if not items:
        raise UsageError(f"{run} has no leaf with evidence, so there is nothing to label.")
    drawn = {(unit.task.id, unit.epoch) for unit in units}
    for labels in read_labels(run):
        write_labels(run, labels.drawn_again(drawn, chance))
    app = make_label_app(run, items, evidence, threshold=settings.judge.leaf_threshold)
    listening = bind_socket(HOST, port)
    address = f"http://{HOST}:{listening.getsockname()[1]}/"
    click.echo(address)
    leaves = format_count(len(items), "leaf", "leaves")
    say(f"{leaves} of {format_count(len(units), 'task')} to label; press Ctrl-C to stop.")
    if can_open_pages():
        webbrowser.open(address)
    asyncio.run(make_server(app, ServerLimits()).serve(sockets=[listening]))


def _export_labels(run: Path, file: Path) -> None:
    raters = require_labels(run)
    file.write_text(dump_labels_csv(raters, read_adjudication(run)), encoding="utf-8")
    labels = format_count(sum(len(one.labels) for one in raters), "label")
    say(f"Wrote {labels} of {format_count(len(raters), 'person', 'people')} to {file}.")
