"""`gta view`: a run's page in a browser, or a sample in the evaluation engine's own viewer."""

import socket
import threading
import time
import webbrowser
from pathlib import Path
from urllib.parse import quote

import click

from gta_bench.cli.output import say
from gta_bench.cli.trees import check_tasks
from gta_bench.errors import RunError
from gta_bench.harnesses.choice import free_port
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import log_of
from gta_bench.runs.store import StorePath
from gta_bench.settings import can_open_pages
from gta_bench.web.material import anchor
from gta_bench.web.reading import write_page

PAGE = "report.html"
HOST = "127.0.0.1"
PATIENCE = 30.0


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@click.option("--task", help="Go to this task.")
@click.option("--epoch", type=click.IntRange(1), default=1, help="Of the task; the first one.")
@click.option("--trace", is_flag=True, help="Inspect's viewer, with every message and call.")
def view(run: str, task: str | None, epoch: int, trace: bool) -> None:
    """Open a run to read: its page, or with --trace its logs.

    The address is printed; where there is no display, nothing else happens.
    """
    folder = Path(run)
    manifest = read_manifest(folder)
    check_tasks(folder, manifest, [] if task is None else [task])
    if trace:
        _serve(log_folder(folder), task, epoch)
        return
    file = folder / PAGE
    write_page([folder], file, wanted=[] if task is None else [task])
    place = "" if task is None else f"#{anchor(1, task, epoch)}"
    address = f"{file.resolve().as_uri()}{place}"
    click.echo(address)
    if can_open_pages():
        webbrowser.open(address)


def _serve(logs: StorePath, task: str | None, epoch: int) -> None:
    """Serve the logs on this machine until interrupted."""
    from inspect_ai import view as serve_logs

    place = _place(logs, task, epoch)
    port = free_port()
    address = f"http://{HOST}:{port}/{place}"
    click.echo(address)
    say("Inspect's viewer; end it with Ctrl-C.")
    if can_open_pages():
        threading.Thread(target=_open_when_up, args=(address, port), daemon=True).start()
    serve_logs(log_dir=str(logs), host=HOST, port=port)


def _place(logs: StorePath, task: str | None, epoch: int) -> str:
    """The viewer's own address of a sample."""
    if task is None:
        return ""
    found = log_of(logs, task, epoch)
    if found is None:
        raise RunError(f"{logs} has no sample of task {task!r}, epoch {epoch}: it was not run yet.")
    return f"#/logs/{quote(found)}/samples/sample/{quote(task, safe='')}/{epoch}/transcript"


def _open_when_up(address: str, port: int) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex((HOST, port)) == 0:
                webbrowser.open(address)
                return
        time.sleep(0.1)
