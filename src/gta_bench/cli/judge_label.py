"""`gta judge label`: people label the leaves of a run, blind, on a page of this machine."""

import asyncio
import webbrowser
from pathlib import Path

import click

from gta_bench.cli.options import config_path
from gta_bench.cli.output import say
from gta_bench.content.needs import EVIDENCE_PACKAGES
from gta_bench.errors import UsageError, counted
from gta_bench.metrics.labels import label_order
from gta_bench.packages import require_packages
from gta_bench.runs.labels import labels_csv, read_adjudication, read_labels, write_labels
from gta_bench.serving.choice import SERVER_PACKAGES
from gta_bench.settings import can_open_pages, read_settings

HOST = "127.0.0.1"


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@click.option("--tasks", "count", type=click.IntRange(1), help="Label so many tasks; all unless.")
@click.option("--seed", default=0, show_default=True, help="Another random order of the tasks.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="A free one unless given.")
@click.option(
    "--export",
    type=click.Path(dir_okay=False),
    help="Write all labels to this CSV file instead of serving the page.",
)
@click.pass_obj
def label(
    config_file: str | None, run: str, count: int | None, seed: int, port: int, export: str | None
) -> None:
    """Serve a page on which people label the leaves of RUN from 0 to 10, with a reason.

    It shows task, requirement and evidence, not who made it or what a judge said. Tasks come in
    random order, so that what is finished speaks for all. Each person has a name and goes on where
    they stopped; where people disagree, somebody has the last word. End it with Ctrl-C.
    """
    folder = Path(run)
    if export is not None:
        raters = read_labels(folder)
        if not raters:
            raise UsageError(f"{run} has no labels yet: `gta judge label {run}`.")
        text = labels_csv(raters, read_adjudication(folder))
        Path(export).write_text(text, encoding="utf-8")
        given = counted(sum(len(one.labels) for one in raters), "label")
        say(f"{given} of {counted(len(raters), 'person', 'people')}: {export}")
        return
    settings = read_settings(config_path(config_file)).settings
    needed = (*SERVER_PACKAGES, *EVIDENCE_PACKAGES, "scipy")
    require_packages("gta judge label", *needed, extra="workflow")
    from gta_bench.running.judge_run import made_evidence
    from gta_bench.serving.limits import ServerLimits
    from gta_bench.serving.listening import bound_socket, make_server
    from gta_bench.tasks.judging import judgeable_units
    from gta_bench.web.labeling import label_items, make_label_app

    every = label_order(judgeable_units(folder).values(), seed=seed)
    units = every[:count]
    evidence = asyncio.run(made_evidence(folder, units, settings))
    chance = len(units) / max(1, len(every))
    items = label_items(units, evidence, chance=chance)
    if not items:
        raise UsageError(f"{run} has no leaf with evidence: nothing can be labelled.")
    drawn = {(unit.task.id, unit.epoch) for unit in units}
    for labels in read_labels(folder):
        write_labels(folder, labels.drawn_again(drawn, chance))
    app = make_label_app(folder, items, evidence, threshold=settings.judge.leaf_threshold)
    taken = bound_socket(HOST, port)
    address = f"http://{HOST}:{taken.getsockname()[1]}/"
    click.echo(address)
    leaves = counted(len(items), "leaf", "leaves")
    say(f"{leaves} of {counted(len(units), 'task')} to label; end it with Ctrl-C.")
    if can_open_pages():
        webbrowser.open(address)
    asyncio.run(make_server(app, ServerLimits()).serve(sockets=[taken]))
