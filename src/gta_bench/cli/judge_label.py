"""`gta judge label`: people label the leaves of a run, blind, in the app of `gta view`."""

from pathlib import Path

import click

from gta_bench.cli.options import FOLDER, NEW_FILE, command_settings
from gta_bench.cli.output import say
from gta_bench.cli.view import APP_PACKAGES, serve_app
from gta_bench.content.needs import EVIDENCE_PACKAGES
from gta_bench.errors import format_count
from gta_bench.packages import require_packages
from gta_bench.runs.labels import (
    dump_labels_csv,
    read_adjudication,
    require_labels,
    require_leaves,
)
from gta_bench.serving.tokens import new_token


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
    needed = (*APP_PACKAGES, *EVIDENCE_PACKAGES)
    require_packages("gta judge label", *needed, extra="workflow")
    from gta_bench.web.app import ViewApp, queue_id

    require_leaves(run)
    app = ViewApp(run, token=new_token(), settings=command_settings())
    queue = queue_id(run.resolve().name)
    app.prepare_queue(queue, count=count, seed=seed)
    try:
        items = app.wait_for_queue(queue).items
    except BaseException:
        app.close()
        raise
    tasks = format_count(len({item.place[:2] for item in items}), "task")
    say(f"{format_count(len(items), 'leaf', 'leaves')} of {tasks} to label.")
    serve_app(app, f"/label/{queue}/", port=port)


def _export_labels(run: Path, file: Path) -> None:
    raters = require_labels(run)
    file.write_text(dump_labels_csv(raters, read_adjudication(run)), encoding="utf-8", newline="\n")
    labels = format_count(sum(len(one.labels) for one in raters), "label")
    say(f"Wrote {labels} of {format_count(len(raters), 'person', 'people')} to {file}.")
