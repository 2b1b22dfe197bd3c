"""`gta view`: runs in the browser; the trees of Workflow tasks for `gta report --task`."""

import asyncio
import threading
import time
import webbrowser
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import click

from gta_bench.cli.options import FOLDER, command_settings
from gta_bench.cli.output import say
from gta_bench.errors import RunError, UsageError, format_count, join_first
from gta_bench.harnesses.choice import free_port
from gta_bench.packages import require_packages
from gta_bench.records.run import RunManifest
from gta_bench.runs.directory import MANIFEST, log_folder, read_manifest
from gta_bench.runs.logs import find_log
from gta_bench.runs.rows import RowFollower
from gta_bench.runs.store import StorePath
from gta_bench.serving.choice import SERVER_PACKAGES
from gta_bench.serving.tokens import new_token
from gta_bench.settings import can_open_pages
from gta_bench.web.app_traces import HOST, START_SECONDS, is_listening, trace_fragment
from gta_bench.web.material import JudgedRun
from gta_bench.web.reading import read_material
from gta_bench.web.task_view import format_tree, view_task

if TYPE_CHECKING:
    # Needs a server and DuckDB, which the core does not install.
    from gta_bench.web.app import ViewApp

# Modules of the extras `serve` and `report` that the app imports.
APP_PACKAGES = (*SERVER_PACKAGES, "duckdb", "scipy")


@click.command()
@click.argument("folder", type=FOLDER, default=".")
@click.option("--task", help="Open this task; FOLDER is then a run.")
@click.option("--epoch", type=click.IntRange(1), default=1, help="Epoch of --task.")
@click.option("--trace", is_flag=True, help="Open Inspect's viewer, with every message and call.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of the app; 0 picks a free one."
)
def view(folder: Path, task: str | None, epoch: int, trace: bool, port: int) -> None:
    """Open FOLDER in the browser: a run, or a folder of runs (default: the current one).

    Shows runs with their progress, failures across runs, two runs side by side, reports, traces,
    and the queues of leaves for people to label. Only labels are written. Prints an address with a
    token, which works on this machine only; without a display, no browser is opened. Press Ctrl-C
    to stop.
    """
    if task is not None:
        manifest = read_manifest(folder)
        _check_tasks(folder, manifest, [task])
        if not trace and epoch > manifest.spec.epochs:
            epochs = format_count(manifest.spec.epochs, "epoch")
            raise UsageError(f"{folder} has {epochs}; choose an --epoch of these.")
    if trace:
        logs = log_folder(folder) if (folder / MANIFEST).is_file() else folder
        _serve_logs(logs, task, epoch)
        return
    require_packages("gta view", *APP_PACKAGES, extra="workflow")
    from gta_bench.web.app import ViewApp, unit_link
    from gta_bench.web.app_runs import entry_id

    app = ViewApp(folder, token=new_token(), settings=command_settings())
    name = entry_id(folder.resolve().name)
    serve_app(app, "/" if task is None else unit_link(name, task, epoch), port=port)


def serve_app(app: "ViewApp", place: str, *, port: int) -> None:
    """Serve the app until interrupted, and open it at `place`."""
    from gta_bench.serving.limits import ServerLimits
    from gta_bench.serving.listening import bind_socket, make_server

    listening = bind_socket(HOST, port)
    joint = "&" if "?" in place else "?"
    address = (
        f"http://{HOST}:{listening.getsockname()[1]}{place}{joint}{urlencode({'token': app.token})}"
    )
    click.echo(address)
    say("Press Ctrl-C to stop.")
    if can_open_pages():
        webbrowser.open(address)
    asyncio.run(make_server(app.asgi, ServerLimits()).serve(sockets=[listening]))


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
        fragment = trace_fragment(found, (task, epoch))
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
        if is_listening(port):
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
