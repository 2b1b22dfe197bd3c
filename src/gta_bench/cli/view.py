"""`gta view`: a run in the browser; the trees of Workflow tasks for `gta report --task`."""

import socket
import threading
import time
import webbrowser
from collections.abc import Collection, Sequence
from pathlib import Path
from urllib.parse import quote

import click

from gta_bench.cli.options import FOLDER
from gta_bench.cli.output import say
from gta_bench.errors import RunError, UsageError, format_count, join_first
from gta_bench.harnesses.choice import free_port
from gta_bench.records.run import RunManifest
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import find_log
from gta_bench.runs.rows import RowFollower
from gta_bench.runs.store import StorePath
from gta_bench.settings import can_open_pages
from gta_bench.web.material import JudgedRun, anchor
from gta_bench.web.reading import read_material, write_report_page
from gta_bench.web.task_view import format_tree, view_task

PAGE = "report.html"
HOST = "127.0.0.1"
START_SECONDS = 30.0


@click.command()
@click.argument("run", type=FOLDER)
@click.option("--task", help="Open the page at this task.")
@click.option("--epoch", type=click.IntRange(1), default=1, help="Epoch of --task.")
@click.option("--trace", is_flag=True, help="Open Inspect's viewer, with every message and call.")
def view(run: Path, task: str | None, epoch: int, trace: bool) -> None:
    """Open RUN in the browser: its report page, or its logs with --trace.

    Prints the address. Without a display, no browser is opened.
    """
    manifest = read_manifest(run)
    _check_tasks(run, manifest, [] if task is None else [task])
    if trace:
        _serve_logs(log_folder(run), task, epoch)
        return
    if epoch > manifest.spec.epochs:
        epochs = format_count(manifest.spec.epochs, "epoch")
        raise UsageError(f"{run} has {epochs}; choose an --epoch of these.")
    file = run / PAGE
    write_report_page([run], file, wanted=[] if task is None else [task])
    fragment = "" if task is None else f"#{anchor(1, task, epoch)}"
    address = f"{file.resolve().as_uri()}{fragment}"
    click.echo(address)
    if can_open_pages():
        webbrowser.open(address)


def _serve_logs(logs: StorePath, task: str | None, epoch: int) -> None:
    """Serve the logs on this machine until interrupted."""
    from inspect_ai import view as serve_logs

    fragment = ""
    if task is not None:
        found = find_log(logs, task, epoch)
        if found is None:
            raise RunError(
                f"{logs} has no sample of task {task!r}, epoch {epoch}: it has not been run yet."
            )
        fragment = f"#/logs/{quote(found)}/samples/sample/{quote(task, safe='')}/{epoch}/transcript"
    port = free_port()
    address = f"http://{HOST}:{port}/{fragment}"
    click.echo(address)
    say("Inspect's viewer is running; press Ctrl-C to stop it.")
    if can_open_pages():
        threading.Thread(target=_open_when_up, args=(address, port), daemon=True).start()
    serve_logs(log_dir=str(logs), host=HOST, port=port)


def _open_when_up(address: str, port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex((HOST, port)) == 0:
                webbrowser.open(address)
                return
        time.sleep(0.1)


def write_trees(runs: Sequence[StorePath], tasks: Sequence[str]) -> None:
    """Print the checkpoint trees of these tasks (or of `all`), as each judge scored them."""
    for run in runs:
        material = read_material(run)
        if not isinstance(material, JudgedRun):
            raise UsageError(
                f"{run} is not a Workflow run, and only those have trees: leave --task out."
            )
        scores = material.summary.scores
        _check_tasks(run, material.summary.manifest, [task for task in tasks if task != "all"])
        if not scores.judges:
            raise UsageError(f"No judge has scored {run}: run `gta score {run} --judge MODEL`.")
        # Units and their scores have the same order.
        planned = material.summary.manifest.spec.tasks
        judged = [(judge, RowFollower(judge.tasks, planned)) for judge in scores.judges]
        for unit in material.units:
            if "all" not in tasks and unit.task.id not in tasks:
                continue
            for judge, scored in judged:
                own = scored.take((unit.task.id, unit.epoch))
                view = view_task(
                    unit,
                    judge.model_copy(update={"tasks": own}),
                    material.verdicts,
                    leaf_threshold=scores.leaf_threshold,
                    root_threshold=scores.root_threshold,
                )
                click.echo(f"{format_tree(unit, view)}\n")


def _check_tasks(run: StorePath, manifest: RunManifest, tasks: Collection[str]) -> None:
    unknown = sorted({*tasks} - {*manifest.spec.tasks})
    if unknown:
        raise UsageError(
            f"{run} has no task {unknown[0]!r}. Its tasks: {join_first(manifest.spec.tasks)}."
        )
