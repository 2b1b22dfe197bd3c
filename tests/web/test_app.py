"""The app of `gta view` over HTTP: who may ask, what is served, and what the pages say."""

import asyncio
import os
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import httpx
import pytest
from PIL import Image

from gta_bench.records.failures import Failure
from gta_bench.records.progress import Command, ShardProgress
from gta_bench.records.verdicts import Scored, Unscored, VerdictKey, VerdictRow
from gta_bench.runs.directory import (
    MANIFEST,
    begin_progress,
    progress_folder,
    read_manifest,
    write_progress,
)
from gta_bench.runs.scoring import score_workflow_run
from gta_bench.runs.store import lock_folder
from gta_bench.runs.tables import TABLES, RowWriter
from gta_bench.runs.verdicts import append_verdicts, read_task_verdicts, read_verdicts
from gta_bench.settings import Settings
from gta_bench.web import app_runs
from gta_bench.web.app import ViewApp
from gta_bench.web.app_failures import FailureTable
from gta_bench.web.app_runs import Readings, RunLibrary, entry_id, find_runs
from tests.judging.builders import task
from tests.judging.stored import stored_run

TOKEN = "a-token-that-nobody-guesses"
HOSTILE = b"<script>document.title = 'taken'</script>"
TASKS = tuple(task(str(number), leaves=2, category="Plans") for number in range(1, 5))
WHEN = datetime(2026, 11, 18, 8, tzinfo=UTC)


def picture() -> bytes:
    kept = BytesIO()
    Image.new("RGB", (40, 30), "steelblue").save(kept, "PNG")
    return kept.getvalue()


FILES = {
    "page.html": HOSTILE,
    "drawing.svg": b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
    "chart.png": picture(),
    "table.xlsx": b"PK\x03\x04",
    "fake.png": HOSTILE,
}


def judged(folder: Path, *, values: tuple[float | None, ...]) -> Path:
    """A run whose leaves got these scores, one after the other; None is unscored."""
    run = stored_run(folder, TASKS, FILES)
    leaves = [(one.id, leaf.id) for one in TASKS for leaf in one.leaves()]
    rows = []
    for number, (name, leaf) in enumerate(leaves):
        value = values[number % len(values)]
        verdict = (
            Unscored(cause="refused")
            if value is None
            else Scored(value=value, reason=f"Reason for {name}, {leaf}: <b>{value}</b>")
        )
        rows.append(VerdictRow(key=VerdictKey(task=name, leaf=leaf, judge="j"), verdict=verdict))
    append_verdicts(run, rows)
    score_workflow_run(run, Settings())
    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two judged runs, one that nobody judged, one that cannot be read, and links to elsewhere."""
    root = tmp_path_factory.mktemp("app")
    runs = root / "runs"
    judged(runs / "good", values=(9, 8))
    judged(runs / "deep" / "bad", values=(9, 2, None, 1))
    stored_run(runs / "new", TASKS[:1], {})
    (runs / "broken").mkdir()
    (runs / "broken" / "run.json").write_text("{", encoding="utf-8")
    outside = stored_run(root / "outside", TASKS[:1], {})
    (runs / "linked").symlink_to(outside)
    (runs / "half").mkdir()
    (runs / "half" / "run.json").symlink_to(outside / "run.json")
    return runs


class Client:
    """A browser without a screen."""

    def __init__(self, app: ViewApp) -> None:
        self.app = app
        self.cookies = httpx.Cookies()

    def ask(self, method: str, path: str, **headers: str) -> httpx.Response:
        return asyncio.run(self._ask(method, path, headers))

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.ask("GET", path, **headers)

    def enter(self) -> "Client":
        self.get(f"/?token={TOKEN}")
        return self

    async def _ask(self, method: str, path: str, headers: dict[str, str]) -> httpx.Response:
        transport = httpx.ASGITransport(self.app.asgi)
        base = "http://127.0.0.1:8000"
        async with httpx.AsyncClient(
            transport=transport, base_url=base, cookies=self.cookies
        ) as client:
            found = await client.request(method, path, headers=headers)
            self.cookies = client.cookies
            return found


@pytest.fixture(scope="module")
def app(folder: Path) -> Iterator[ViewApp]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app_runs, "FRESH", 0)
        app = ViewApp(folder, token=TOKEN, settings=Settings())
        app.library.refresh(patience=60)
        yield app
        app.close()


@pytest.fixture
def client(app: ViewApp) -> Client:
    return Client(app).enter()


def test_the_token_becomes_a_cookie_that_other_sites_cannot_use(app: ViewApp) -> None:
    client = Client(app)
    assert client.get("/").status_code == 401
    entered = client.get(f"/failures?token={TOKEN}&cause=context")
    assert (entered.status_code, entered.headers["location"]) == (303, "/failures?cause=context")
    cookie = entered.headers["set-cookie"]
    assert cookie.startswith(f"gta_view_8000={TOKEN};")
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert client.get("/").status_code == 200
    assert TOKEN not in client.get("/").text


@pytest.mark.parametrize("path", ["/", "/runs/good", "/runs/good/report", "/version", "/style.css"])
@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong", f"?token={TOKEN}x"])
def test_nothing_is_served_without_the_token(app: ViewApp, path: str, query: str) -> None:
    refused = Client(app).get(path + query)
    assert refused.status_code == 401
    assert "set-cookie" not in refused.headers


def test_a_token_leads_to_no_other_server(app: ViewApp) -> None:
    entered = Client(app).get(f"http://127.0.0.1:8000//evil.test/?token={TOKEN}")
    assert entered.headers["location"] == "/evil.test/"


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"Host": "evil.test"}, 400),
        ("GET", {"Host": "127.0.0.1.evil.test:8000"}, 400),
        ("GET", {"Host": "evil@127.0.0.1:8000"}, 400),
        ("GET", {"Host": "127.0.0.1:port"}, 400),
        ("GET", {"Host": ""}, 400),
        ("GET", {"Origin": "http://evil.test"}, 403),
        ("GET", {"Origin": "null"}, 403),
        ("GET", {"Origin": "https://127.0.0.1:8000"}, 403),
        ("POST", {"Origin": "http://127.0.0.1:8001"}, 403),
        ("POST", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("DELETE", {}, 405),
        ("PUT", {}, 405),
        ("OPTIONS", {}, 405),
    ],
)
def test_other_sites_and_methods_are_refused(
    client: Client, method: str, headers: dict[str, str], status: int
) -> None:
    refused = client.ask(method, "/label", **headers)
    assert refused.status_code == status
    assert "access-control-allow-origin" not in refused.headers


@pytest.mark.parametrize(
    "path",
    [
        "/runs/../../outside/run.json",
        "/runs/..%2f..%2foutside",
        "/runs/%2e%2e/%2e%2e/etc/passwd",
        "/runs/..%252f..%252foutside",
        "/runs//etc/passwd",
        "/runs/%2Fetc%2Fpasswd",
        "/runs/good%00",
        "/runs/linked",
        "/runs/half",
        "/runs/outside",
        "/runs/good/run.json",
        "/runs/good/picture/..%2f..%2frun.json",
        "/runs/good/picture/" + "0" * 64,
        "/runs/good/file?task=1&file=99",
        "/runs/good/file?task=1&file=-1&of=__class__",
        "/runs/good/file?task=../../outside&file=0",
        "/runs/good/unit?task=..%2f..%2foutside",
        "/runs/good/unit?task=1&epoch=9",
        "/label/0123456789ab/",
        "/../pages.py",
        "/..%2fpages.py",
        "/app_base.html",
    ],
)
def test_paths_lead_nowhere_but_to_files_of_runs_in_the_folder(client: Client, path: str) -> None:
    found = client.get(path)
    assert found.status_code in (404, 409), found.text
    assert "dataset_digest" not in found.text and "root:" not in found.text


def test_links_in_the_folder_are_not_followed(folder: Path) -> None:
    names = [run.relative_to(folder).as_posix() for run in find_runs(folder)]
    assert names == ["broken", "deep/bad", "good", "new"]


@pytest.mark.parametrize(
    ("number", "kind", "place"),
    [
        (0, "text/plain; charset=utf-8", "inline"),
        (1, "text/plain; charset=utf-8", "inline"),
        (2, "image/png", "inline"),
        (3, "application/octet-stream", "attachment"),
        (4, "application/octet-stream", "attachment"),
    ],
)
def test_a_deliverable_can_do_nothing_in_the_browser(
    client: Client, number: int, kind: str, place: str
) -> None:
    sent = client.get(f"/runs/good/file?task=1&file={number}")
    assert sent.status_code == 200
    assert sent.content == [*FILES.values()][number]
    assert sent.headers["content-type"] == kind
    assert sent.headers["content-disposition"].startswith(place)
    assert sent.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert sent.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    ["/", "/failures", "/compare?a=good&b=deep-bad-ID", "/label", "/runs/good", "/nowhere"],
)
def test_every_page_has_a_policy_that_allows_only_files_of_the_app(
    client: Client, path: str
) -> None:
    headers = client.get(path.replace("deep-bad-ID", entry_id("deep/bad"))).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"


def test_all_runs_are_listed_with_their_state_score_and_causes(client: Client) -> None:
    page = client.get("/").text
    assert "4 runs, 9 units." in page
    assert 'href="/runs/good"' in page
    assert "Root SR 100.0" in page
    assert "n 4 of 4 tasks" in page
    assert "wrong content 4" in page and "judge unscored 2" in page
    assert "not judged yet" in page and "cannot be read" in page and "not rankable" in page
    assert "linked" not in page and "half" not in page


def read_report(client: Client, address: str) -> httpx.Response:
    """Ask until the report is made."""
    for _ in range(200):
        found = client.get(address)
        if found.status_code != 202:
            break
    return found


def list_shown_badges(page: str) -> list[tuple[str, str]]:
    """The kinds and texts of the first badges of a page."""
    first = page.partition('<ul class="badges">')[2].partition("</ul>")[0]
    return re.findall(r'<span class="badge ?(.*?)">(.*?)</span>', first)


def test_a_run_has_the_same_badges_in_the_app_and_in_its_report(tmp_path: Path) -> None:
    """The app had neither imported nor open network, and cut what the report said."""
    run = judged(tmp_path / "runs" / "own", values=(9, 2, None, 1))
    about = read_manifest(run)
    spec = about.spec.model_copy(update={"network": "open", "controls": ("no-tools",)})
    changes = {"spec": spec, "imported_from": "a folder", "dataset_tasks": 4}
    text = about.model_copy(update=changes).model_dump_json()
    (run / MANIFEST).write_text(text, encoding="utf-8")
    app = ViewApp(tmp_path / "runs", token=TOKEN, settings=Settings())
    client = Client(app).enter()
    report = list_shown_badges(read_report(client, "/runs/own/report").text)
    assert report == [
        ("warn", "not rankable: 2 of 4 scored"),
        ("none", "2 leaves unscored"),
        ("warn", "dataset of 4 tasks, not the released 132"),
        ("", "imported"),
        ("warn", "open network"),
        ("warn", "under controls (no-tools)"),
    ]
    assert list_shown_badges(client.get("/runs/own").text) == report
    assert list_shown_badges(client.get("/").text) == report
    app.close()


def test_a_run_that_cannot_be_read_says_why_and_hides_no_other(client: Client) -> None:
    page = client.get("/runs/broken").text
    assert "run.json: 1 field cannot be read. Restore it from a copy." in page


def test_a_name_that_is_not_utf8_hides_no_other_run(tmp_path: Path) -> None:
    for name in (b"caf\xe8", b"caf\xe9", b"good"):
        run = tmp_path / os.fsdecode(name)
        run.mkdir()
        (run / "run.json").write_text("{")
    app = ViewApp(tmp_path, token=TOKEN, settings=Settings())
    try:
        client = Client(app).enter()
        assert client.get("/").text.count("caf\ufffd") >= 2
        # What such a run lacks is said on each of its pages.
        for page in ("", "/unit?task=7", "/file?task=7"):
            assert client.get(f"/runs/good{page}").status_code in (200, 404, 409)
    finally:
        app.close()


@pytest.fixture
def growing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ViewApp]:
    """An app on a run that a command works on."""
    monkeypatch.setattr(app_runs, "FRESH", 0)
    run = stored_run(tmp_path / "runs" / "grows", TASKS, {})
    command = Command(started=WHEN, units=400, finished=10)
    begin_progress(progress_folder(run), command)
    app = ViewApp(tmp_path / "runs", token=TOKEN, settings=Settings())
    with lock_folder(run):
        yield app
    app.close()


def tell(app: ViewApp, **changes: object) -> None:
    """The shard of the command writes its progress."""
    progress = ShardProgress(shard="1", command=WHEN, updated=WHEN + timedelta(minutes=1))
    folder = progress_folder(app.library.folder / "grows")
    write_progress(folder, progress.model_copy(update=changes))


def test_a_run_in_progress_shows_units_causes_cost_and_time_left(growing: ViewApp) -> None:
    client = Client(growing).enter()
    assert "10 of 400" in client.get("/").text
    before = client.get("/version").json()["version"]
    assert client.get("/version").json()["version"] == before, "nothing changed"
    tell(growing, done=39, failed=3, running=8, cost_usd=0.5, causes={"RateLimitError": 3})
    assert client.get("/version").json()["version"] > before
    for path in ("/", "/runs/grows"):
        page = client.get(path).text
        assert "49 of 400" in page and "39 per minute" in page
        assert "about 9 min" in page and "$0.50" in page
        assert "RateLimitError" in page
        assert "49 of 400 units done, 3 failed, 8 running" in page
    assert "RateLimitError" in client.get("/failures").text


def test_a_run_whose_command_died_is_stopped(tmp_path: Path) -> None:
    run = stored_run(tmp_path / "grows", TASKS[:1], {})
    begin_progress(progress_folder(run), Command(started=WHEN, units=400, finished=1))
    app = ViewApp(tmp_path, token=TOKEN, settings=Settings())
    app.library.refresh(patience=60)
    page = Client(app).enter().get("/").text
    assert "stopped" in page and "1 of 400 units" in page
    app.close()


def test_failures_are_found_by_cause_tool_task_and_run(client: Client) -> None:
    bad = entry_id("deep/bad")
    page = client.get("/failures").text
    assert "6 failures." in page
    chosen = client.get("/failures?cause=wrong+content&task=2").text
    assert "1 failure matches." in chosen
    assert f"/runs/{bad}/unit?task=2&amp;epoch=1" in chosen
    assert "scored 1" in chosen
    assert "No failures." in client.get("/failures?run=good").text
    assert client.get("/failures?page=99999999&cause=%27%3B+DROP+TABLE").status_code == 200


@pytest.mark.parametrize(
    ("cause", "detail", "tool"),
    [
        ("wrong tool", "called OCR instead of Calculator", "Calculator"),
        ("wrong tool", "answered instead of calling OCR", "OCR"),
        ("wrong tool", "called OCR instead of answering", None),
        ("wrong tool", "never called Plot", "Plot"),
        ("arguments", "OCR: other arguments than the reference's", "OCR"),
        ("tool error", "My-Tool.2: it: failed", "My-Tool.2"),
        ("tool unavailable", "TextToImage: no key", "TextToImage"),
        ("wrong content", "Note: this is an answer", None),
        ("arguments", "the image was asked for with other arguments than the reference's", None),
    ],
)
def test_the_tool_of_a_failure_is_read_from_its_detail(
    tmp_path: Path, cause: str, detail: str, tool: str | None
) -> None:
    table = FailureTable()
    failure = Failure.model_validate(
        {"task": "1", "epoch": 1, "place": "task", "cause": cause, "detail": detail}
    )
    table.put("run", tmp_path, [failure])
    assert [row.tool for row in table.find({}).rows] == [tool]
    assert table.find({"tool": tool or "x"}).number == (tool is not None)
    table.put("run", tmp_path, [])
    assert table.number == 0
    table.close()


def test_the_rows_of_a_long_run_are_read_while_they_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_runs, "FRESH", 0)
    run = stored_run(tmp_path / "runs" / "long", TASKS, {})
    table = FailureTable()
    library = RunLibrary(tmp_path / "runs", on_failures=table.put)
    library.refresh(patience=60)
    assert table.number == 0
    for judge in ("a", "b"):
        with RowWriter(run / "results" / "failures", TABLES["failures"]) as rows:
            one = Failure(task="1", epoch=1, place="cp1", cause="format", detail="x")
            rows.add({"run": "long", "judge": "a", **one.model_dump()}, one)
            rows.add({"run": "long", "judge": judge, **one.model_dump()}, one)
        library.refresh(patience=60)
        assert table.number == (2 if judge == "a" else 1), "by the first judge"
    library.close()
    table.close()


def test_two_runs_are_compared_gated_and_shown_side_by_side(client: Client) -> None:
    address = f"/compare?a=good&b={entry_id('deep/bad')}"
    for _ in range(100):
        page = client.get(address).text
        if "are being compared" not in page:
            break
    assert "Too few tasks to conclude anything" in page
    assert "gate: " in page and "With A as BASE and B as NEW" in page
    assert "worse in B than in A" in page
    side = client.get(f"{address}&task=2").text
    assert "Task 2" in side
    assert side.count("outputs/chart.png") >= 2
    assert f"/runs/{entry_id('deep/bad')}/file?task=2&amp;epoch=1&amp;of=deliverables" in side
    assert "Reason for 2, cp1-2: &lt;b&gt;1&lt;/b&gt;" in side.replace(".0", "")
    assert "refused" in side
    assert "Choose two different runs." in client.get("/compare?a=good&b=good").text
    missing = client.get("/compare?a=good&b=nothing")
    assert missing.status_code == 404


def test_a_unit_shows_its_work_and_every_verdict(client: Client) -> None:
    page = client.get(f"/runs/{entry_id('deep/bad')}/unit?task=1").text
    assert "Verdicts of j" in page and "2 of 2 leaves scored" in page
    assert "Done." in page and "outputs/page.html" in page
    assert "<script>document" not in page
    assert "wrong content" in page


def test_the_verdicts_of_one_task_are_those_of_all(folder: Path) -> None:
    run = folder / "deep" / "bad"
    every = read_verdicts(run)
    assert read_task_verdicts(run, "2") == {
        key: row for key, row in every.items() if key.task == "2"
    }
    assert read_task_verdicts(folder / "new", "1") == {}


def test_the_report_is_served_in_a_sandbox(client: Client) -> None:
    found = read_report(client, "/runs/good/report")
    assert found.status_code == 200
    assert "sandbox allow-scripts" in found.headers["content-security-policy"]
    assert "allow-same-origin" not in found.headers["content-security-policy"]
    missing = client.get("/runs/new/report")
    assert missing.status_code in (202, 409)


def test_only_the_reports_that_were_asked_for_last_are_kept() -> None:
    """Every report that somebody had opened stayed in memory."""
    readings, made = Readings(most=2), []

    def ask(key: str, stamp: int = 1) -> str:
        def read() -> str:
            made.append(key)
            return f"{key} {stamp}"

        return readings.start(key, stamp, read).result(10)

    for key in "abac":  # b was asked for before a
        ask(key)
    assert made == ["a", "b", "c"]
    assert [ask(key) for key in "acb"] == ["a 1", "c 1", "b 1"]
    assert made == ["a", "b", "c", "b"]
    assert ask("c", stamp=2) == "c 2"
    readings.close()


def test_a_report_that_is_being_made_is_not_forgotten() -> None:
    readings, go = Readings(most=1), threading.Event()
    first = readings.start("a", 1, lambda: go.wait(10))
    second = readings.start("b", 1, lambda: "b")
    assert readings.start("a", 1, lambda: False) is first
    go.set()
    assert (first.result(10), second.result(10)) == (True, "b")
    readings.close()


def test_nothing_is_written_into_the_folder(client: Client, folder: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*") if file.is_file()}
    for path in ("/", "/failures", "/compare?a=good", "/label", "/runs/good", "/runs/good/report"):
        client.get(path)
    after = {file: file.stat().st_mtime_ns for file in folder.rglob("*") if file.is_file()}
    assert before == after


def test_an_empty_folder_says_how_runs_are_made(tmp_path: Path) -> None:
    app = ViewApp(tmp_path, token=TOKEN, settings=Settings())
    assert "No runs yet." in Client(app).enter().get("/").text
    app.close()
