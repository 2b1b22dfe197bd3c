"""The app of `gta view`: the runs of a folder, why they failed, two side by side, and labels.

Nothing is written except labels, and the evidence that people need for them. What is slow to make
(a report, a comparison, evidence) is made beside the pages, which show that and look again.
"""

from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, wait
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal
from urllib.parse import quote, urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from gta_bench.errors import GtaError, UsageError
from gta_bench.judging.evidence_store import EVIDENCE
from gta_bench.metrics.workflow_scores import Thresholds
from gta_bench.records.attempts import UnitKey
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.redaction import current_redactor
from gta_bench.runs.directory import LOGS, MANIFEST, SCORES
from gta_bench.runs.labels import ADJUDICATION, LABELS, read_labels
from gta_bench.runs.verdicts import VERDICTS
from gta_bench.serving.gate import App, Receive, Scope, Send
from gta_bench.settings import Settings
from gta_bench.web.app_compare import ComparedPair, compare_pair
from gta_bench.web.app_failures import FILTERS, ROWS_SHOWN, FailureTable
from gta_bench.web.app_guard import Guard
from gta_bench.web.app_runs import Readings, RunEntry, RunLibrary, Stamp, stamp_files
from gta_bench.web.app_traces import TraceViewer
from gta_bench.web.app_units import (
    UnitReader,
    pair_leaves,
    picture_type,
    read_deliverable,
    read_picture,
)
from gta_bench.web.app_view import list_tasks, view_run, view_runs
from gta_bench.web.labeling import LabelQueue, open_queue
from gta_bench.web.page import render_report
from gta_bench.web.pages import read_asset, read_style, render
from gta_bench.web.reading import read_material
from gta_bench.web.sections import pair_steps, reference_text, view_trace

# How long a page waits for what is slow to make before it says so.
PATIENCE: Final = 0.1
ASSETS: Final = {
    "style.css": "text/css",
    "app.css": "text/css",
    "label.css": "text/css",
    "app.js": "text/javascript",
    "label.js": "text/javascript",
}
# Reports and comparisons in memory; a report of a long run has several MB.
RESULTS_KEPT: Final = 8
# A file of a run cannot do anything in the browser, whatever it contains.
FILE_HEADERS: Final = {"Content-Security-Policy": "default-src 'none'; sandbox"}
# The report is one file of ours with its style, and a script that its own policy names.
REPORT_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "sandbox allow-scripts allow-popups allow-popups-to-escape-sandbox"
    )
}


QueueState = Literal["", "preparing", "ready", "failed"]


class ViewApp:
    """The app for one folder; `asgi` is what a server runs."""

    def __init__(self, folder: Path, *, token: str, settings: Settings) -> None:
        self.token = token
        self.settings = settings
        self.failures = FailureTable()
        self.library = RunLibrary(folder, on_failures=self.failures.put)
        self.units = UnitReader(
            Thresholds(settings.judge.leaf_threshold, settings.judge.root_threshold)
        )
        self.traces = TraceViewer(self.library.folder)
        self._slow = Readings(most=RESULTS_KEPT)
        self._preparing = Readings()
        self._queues: dict[str, Future[LabelQueue]] = {}
        routes = [
            Route("/", self.show_runs),
            Route("/version", self.show_version),
            Route("/failures", self.show_failures),
            Route("/compare", self.show_comparison),
            Route("/label", self.show_queues),
            Route("/trace", self.open_trace),
            Route("/runs/{run}", self.show_run),
            Route("/runs/{run}/report", self.show_report),
            Route("/runs/{run}/unit", self.show_unit),
            Route("/runs/{run}/file", self.send_file),
            Route("/runs/{run}/picture/{digest}", self.send_picture),
            Mount("/label/{queue}", self._label),
            Route("/{name}", self.send_asset),
        ]
        handlers: dict[Any, Any] = {GtaError: _show_problem, HTTPException: _show_problem}
        app = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._life)
        self.asgi: App = Guard(app, token)

    @asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        yield
        self.close()

    def close(self) -> None:
        """Stop everything that the app has started."""
        self.traces.close()
        self._slow.close()
        self._preparing.close()
        self.library.close()

    def find(self, run: str) -> RunEntry:
        """Return a run by its name in addresses; only runs of the folder have one."""
        entry = self.library.refresh().get(run)
        if entry is None:
            raise HTTPException(404, "This folder has no such run.")
        return entry

    def show_runs(self, request: Request) -> Response:
        """All runs, those in progress first."""
        entries = self.library.refresh()
        return self._page("app_runs.html", "runs", **view_runs([*entries.values()]))

    def show_version(self, request: Request) -> Response:
        """The number of changes so far, by which pages know that there is something new."""
        self.library.refresh()
        return JSONResponse({"version": self.library.version})

    def show_run(self, request: Request) -> Response:
        """One run: its state, its score, why it failed, and what to do with it."""
        entry = self.find(request.path_params["run"])
        return self._page("app_run.html", "runs", **view_run(entry))

    def show_failures(self, request: Request) -> Response:
        """Failures across runs by cause, tool and task."""
        entries = self.library.refresh()
        chosen = {name: request.query_params.get(name, "") for name in FILTERS}
        page = _number(request, "page")
        found = self.failures.find(chosen, page=page)

        def link(**changes: object) -> str:
            values = {**chosen, **changes}
            return f"/failures?{urlencode({key: one for key, one in values.items() if one})}"

        return self._page(
            "app_failures.html",
            "failures",
            found=found,
            chosen=chosen,
            filters=FILTERS,
            number=page,
            last=max(1, -(-found.number // ROWS_SHOWN)),
            link=link,
            unit_link=unit_link,
            names={entry.id: entry.name for entry in entries.values()},
            live=[one for one in entries.values() if one.live],
            reading=sum(one.reading for one in entries.values()),
        )

    def show_comparison(self, request: Request) -> Response:
        """Two runs: what can be concluded, and a task of both side by side."""
        entries = self.library.refresh()
        query = request.query_params
        # The page of all runs sends both as `run`.
        given = [*query.getlist("run"), "", ""]
        names = [query.get("a") or given[0], query.get("b") or given[1]]
        scored = [one for one in entries.values() if one.scored is not None]
        shown: dict[str, Any] = {"runs": scored, "a": names[0], "b": names[1]}
        if not all(names) or names[0] == names[1]:
            return self._page("app_compare.html", "compare", **shown, pair=None, sides=None)
        first, second = (self.find(name) for name in names)
        task, epoch = query.get("task", ""), _number(request, "epoch")

        def link(task: str) -> str:
            return f"/compare?{urlencode({'a': first.id, 'b': second.id, 'task': task})}#task"

        stamp = (_stamp(first), _stamp(second))
        pair = self._make(
            ("compare", first.id, second.id),
            stamp,
            lambda: compare_pair({one.name: one.folder for one in (first, second)}, link),
        )
        common = {*list_tasks(second)}
        tasks = [one for one in list_tasks(first) if one in common]
        key = (task or _first_task(pair, tasks), epoch)
        return self._page(
            "app_compare.html",
            "compare",
            **shown,
            entries=(first, second),
            pair=pair,
            wait=pair is None,
            tasks=tasks,
            task=key[0],
            epoch=epoch,
            sides=[self._side(one, key) for one in (first, second)] if key[0] else None,
            pair_leaves=pair_leaves,
        )

    def _side(self, entry: RunEntry, key: UnitKey) -> dict[str, object]:
        """Return one run's part of a task that is shown side by side."""
        unit = self.units.unit(entry, key)
        files, views = [], []
        if isinstance(unit, WorkflowUnit):
            files, views = self.units.files(entry, unit.deliverables), self.units.views(entry, unit)
        return {
            "entry": entry,
            "unit": unit,
            "files": files,
            "view": views[0] if views else None,
            "failures": self.failures.of_unit(entry.id, *key),
            "steps": [] if unit is None else view_trace(unit.trace or ()),
            "links": UnitLinks(entry.id, key),
        }

    def show_unit(self, request: Request) -> Response:
        """One unit: task, answer, deliverables, trace, and the tree with its verdicts."""
        entry = self.find(request.path_params["run"])
        key = _unit_key(request)
        unit = self.units.unit(entry, key)
        if unit is None:
            raise HTTPException(404, f"Task {key[0]!r}, epoch {key[1]}, has not been run.")
        values: dict[str, Any] = {}
        if isinstance(unit, AtomicUnit):
            step = entry.mode == "step"
            values = {
                "wanted": reference_text(unit.task),
                "pairs": pair_steps(unit) if step else (),
            }
        else:
            values = {
                "views": self.units.views(entry, unit),
                "files": self.units.files(entry, unit.deliverables),
                "inputs": self.units.files(entry, unit.inputs),
            }
        return self._page(
            "app_unit.html",
            "runs",
            entry=entry,
            unit=unit,
            key=key,
            steps=view_trace(unit.trace or ()),
            failures=self.failures.of_unit(entry.id, *key),
            links=UnitLinks(entry.id, key),
            **values,
        )

    def show_report(self, request: Request) -> Response:
        """The run's report, as `gta report` writes it."""
        entry = self.find(request.path_params["run"])
        wanted = [one for one in (request.query_params.get("task"),) if one]

        def make() -> str:
            page = render_report([read_material(entry.folder, entry.name)], wanted=wanted)
            return current_redactor().text(page)

        text = self._make(("report", entry.id, *wanted), _stamp(entry), make)
        if text is None:
            return self._wait("runs", f"The report of {entry.name} is being made.")
        return Response(text, media_type="text/html", headers=REPORT_HEADERS)

    def open_trace(self, request: Request) -> Response:
        """Open Inspect's viewer, which runs beside the app."""
        entry = self.find(request.query_params.get("run", ""))
        key = _unit_key(request) if request.query_params.get("task") else None
        return RedirectResponse(self.traces.open(entry.folder, key), status_code=303)

    def send_file(self, request: Request) -> Response:
        """A file of a unit by its number: pictures and text are shown, others downloaded."""
        entry = self.find(request.path_params["run"])
        unit = self.units.unit(entry, _unit_key(request))
        kind = request.query_params.get("of", "deliverables")
        files = {} if unit is None else {"deliverables": unit.deliverables, "inputs": unit.inputs}
        number = _number(request, "file", first=0)
        chosen = files.get(kind, ())
        if number >= len(chosen):
            raise HTTPException(404, "This unit has no such file.")
        file = chosen[number]
        data = read_deliverable(entry, file)
        name = PurePosixPath(file.path).name
        shown = picture_type(data) or _text_type(name)
        place = "attachment" if shown is None else "inline"
        headers = {
            **FILE_HEADERS,
            "Content-Disposition": f"{place}; filename*=UTF-8''{quote(name, safe='')}",
        }
        return Response(data, media_type=shown or "application/octet-stream", headers=headers)

    def send_picture(self, request: Request) -> Response:
        """A picture of the evidence."""
        entry = self.find(request.path_params["run"])
        data = read_picture(entry, request.path_params["digest"])
        kind = picture_type(data)
        if kind is None:
            raise HTTPException(404, "This is not a picture.")
        # Its name is the digest of its content.
        headers = {**FILE_HEADERS, "Cache-Control": "private, max-age=3600"}
        return Response(data, media_type=kind, headers=headers)

    def send_asset(self, request: Request) -> Response:
        """A style sheet or script."""
        name = request.path_params["name"]
        if name not in ASSETS:
            raise HTTPException(404, "There is no such page.")
        text = read_style() if name == "style.css" else read_asset(name)
        return Response(text, media_type=ASSETS[name])

    def show_queues(self, request: Request) -> Response:
        """The runs with leaves to label."""
        judged = [one for one in self.library.refresh().values() if one.mode == "workflow"]
        queues = [
            {
                "entry": one,
                "id": queue_id(one.name),
                "raters": [(own.rater, len(own.labels)) for own in read_labels(one.folder)],
                "state": self._queue_state(queue_id(one.name)),
            }
            for one in judged
        ]
        return self._page("app_label.html", "label", queues=queues)

    def prepare_queue(self, queue: str, *, count: int | None = None, seed: int = 0) -> None:
        """Start to prepare the leaves of a run for people."""
        entry = self._find_queue(queue)
        if self._queue_state(queue) in ("", "failed"):
            self._queues[queue] = self._preparing.start(
                queue,
                object(),
                lambda: open_queue(entry.folder, self.settings, count=count, seed=seed),
            )

    def wait_for_queue(self, queue: str) -> LabelQueue:
        """Return the queue as soon as it is prepared."""
        return self._queues[queue].result()

    def _find_queue(self, queue: str) -> RunEntry:
        for entry in self.library.refresh().values():
            if queue_id(entry.name) == queue and entry.mode == "workflow":
                return entry
        raise HTTPException(404, "There is no such queue.")

    def _queue_state(self, queue: str) -> QueueState:
        known = self._queues.get(queue)
        if known is None:
            return ""
        if not known.done():
            return "preparing"
        return "ready" if known.exception() is None else "failed"

    async def _label(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to a queue that is prepared."""
        queue = scope["path_params"]["queue"]
        state = self._queue_state(queue)
        app: App
        if state == "ready":
            app = self._queues[queue].result().router
        elif state == "preparing":
            app = self._wait("label", "The evidence of these leaves is being prepared.")
        elif scope["method"] == "POST":
            await run_in_threadpool(self.prepare_queue, queue)
            app = RedirectResponse(f"{scope['root_path']}/", status_code=303)
        elif state == "failed":
            raise UsageError(str(self._queues.pop(queue).exception()))
        else:
            await run_in_threadpool(self._find_queue, queue)
            app = RedirectResponse("/label", status_code=303)
        await app(scope, receive, send)

    def _make(self, key: object, stamp: object, make: Callable[[], Any]) -> Any:
        """Return what is slow to make if it is there within a moment, else None."""
        future = self._slow.start(key, stamp, make)
        wait([future], timeout=PATIENCE)
        return future.result() if future.done() else None

    def _wait(self, page: str, text: str) -> Response:
        return self._page("app_wait.html", page, text=text, status=202)

    def _page(self, template: str, page: str, *, status: int = 200, **values: object) -> Response:
        entries = self.library.entries.values()
        counts = {"runs": len(entries), "failures": self.failures.number}
        text = render(
            template,
            page=page,
            counts=counts,
            folder=self.library.folder.name,
            version=self.library.version,
            **values,
        )
        # A name of a file need not be UTF-8.
        data = text.encode(errors="replace")
        return Response(data, status_code=status, media_type="text/html")


class UnitLinks:
    """The addresses of one unit and of its files."""

    def __init__(self, run: str, key: UnitKey) -> None:
        self._run = run
        self._query = {"task": key[0], "epoch": key[1]}

    @property
    def unit(self) -> str:
        """Its page."""
        return f"/runs/{self._run}/unit?{urlencode(self._query)}"

    @property
    def trace(self) -> str:
        """Its trace in Inspect's viewer."""
        return f"/trace?{urlencode({'run': self._run, **self._query})}"

    def file(self, number: int, of: str = "deliverables") -> str:
        """One of its files."""
        query = {**self._query, "of": of, "file": number}
        return f"/runs/{self._run}/file?{urlencode(query)}"

    def picture(self, digest: str) -> str:
        """A picture of its evidence."""
        return f"/runs/{self._run}/picture/{digest}"


def unit_link(run: str, task: str, epoch: int) -> str:
    """Return the address of a unit's page."""
    return UnitLinks(run, (task, epoch)).unit


def queue_id(run: str) -> str:
    """Return the name of a run's queue in addresses, which does not tell whose work it shows."""
    return sha256(f"queue {run}".encode()).hexdigest()[:12]


def _stamp(entry: RunEntry) -> Stamp:
    """Return what a report or a comparison of a run depends on."""
    names = (MANIFEST, SCORES, VERDICTS, LOGS, LABELS, ADJUDICATION, EVIDENCE)
    return stamp_files(entry.folder / name for name in names)


def _first_task(pair: ComparedPair | None, tasks: list[str]) -> str:
    """Return the task that differs most, or the first one."""
    if pair is not None:
        for flips in pair.flips:
            return flips.table.rows[0][0].text
    return tasks[0] if tasks else ""


def _unit_key(request: Request) -> UnitKey:
    return request.query_params.get("task", ""), _number(request, "epoch")


def _number(request: Request, name: str, *, first: int = 1) -> int:
    """Return a number of the address; the first one if it is missing or none."""
    text = request.query_params.get(name, "")
    return max(first, int(text)) if text.isascii() and text.isdigit() and len(text) < 7 else first


def _text_type(name: str) -> str | None:
    suffix = PurePosixPath(name).suffix.lower()
    plain = (".txt", ".md", ".csv", ".json", ".py", ".tex", ".srt", ".log", ".html", ".svg", ".xml")
    return "text/plain; charset=utf-8" if suffix in plain else None


def _show_problem(request: Request, exc: Exception) -> Response:
    """Show an error in one line, with the same look."""
    status, message = 409, str(exc)
    if isinstance(exc, HTTPException):
        status, message = exc.status_code, exc.detail
    text = render("app_problem.html", page="", message=message, status=status)
    return Response(text, status_code=status, media_type="text/html")
