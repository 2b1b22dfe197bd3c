"""The app in a real browser: its pages in each size, a run in progress, and labels by keyboard."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.runs.directory import progress_folder
from gta_bench.runs.labels import read_labels
from gta_bench.runs.scoring import score_workflow_run
from gta_bench.runs.verdicts import append_verdicts
from gta_bench.settings import Settings
from gta_bench.web.app_runs import entry_id
from tests.browser import browse, served
from tests.judging.builders import task
from tests.judging.stored import stored_run
from tests.needs import needs

pytestmark = [
    pytest.mark.slow,
    needs("chromium", "npm"),
    pytest.mark.usefixtures("loopback"),
]
TASKS = tuple(task(str(number), leaves=2, category="Plans") for number in range(1, 11))
UNITS = 16
LATEST = 2.0  # seconds after which a page must show what has changed
# Two tasks in eight epochs, of which one ends after the other.
RUN = f"""
import sys, time
from pathlib import Path
from gta_bench.running.system_run import execute
from tests.tasks.workflow_runs import one_page, scripted, wanted, write_dataset
def reply(messages):
    time.sleep(0.8 if messages[-1].role == "tool" else 0)
    return one_page("quokka")(messages)
folder = Path(sys.argv[1])
run = wanted(write_dataset(folder / "data"), epochs={UNITS // 2})
execute(*run, folder / "runs" / "grows", lambda well: None, model=scripted(reply))
"""
VISITS = """
async function look(browser, address) {
  const [site, token] = address.split('?');
  const found = [];
  for (const [name, place] of PAGES) {
    const joint = place.includes('?') ? '&' : '?';
    found.push(...await visit(browser, `${site}${place}${joint}${token}`, `app-${name}`));
  }
  const plain = await browser.newContext({ javaScriptEnabled: false });
  const page = await plain.newPage();
  await page.goto(address);
  const text = await page.evaluate(() => document.querySelector('main').innerText);
  return { found, text };
}
"""
WATCH = f"""
async function look(browser, address) {{
  const page = await browser.newPage();
  await page.goto(address);
  return await page.evaluate(() => new Promise((done) => {{
    const seen = {{}};
    const check = () => {{
      const found = /([0-9]+) of {UNITS}/.exec(document.querySelector('main').innerText);
      if (found && !(found[1] in seen)) seen[found[1]] = Date.now() / 1000;
      if (found && found[1] === '{UNITS}') done(seen); else setTimeout(check, 20);
    }};
    check();
  }}));
}}
"""
LABEL = """
async function look(browser, address) {
  const page = await browser.newPage();
  const keys = page.keyboard;
  const reach = async (wanted) => {
    for (let step = 0; step < 40; step += 1) {
      await keys.press('Tab');
      if ((await page.evaluate(() => document.activeElement.innerText)) === wanted) return;
    }
    throw new Error(`${wanted} cannot be reached by Tab`);
  };
  await page.goto(address);
  await reach('Label');
  await keys.press('Enter');
  await page.waitForURL((url) => url.pathname === '/label');
  await reach('Prepare the queue');
  await keys.press('Enter');
  await page.waitForSelector('input[name=rater]', { timeout: 120000 });
  await page.waitForFunction(() => document.activeElement.name === 'rater');
  await keys.type('ada');
  await keys.press('Enter');
  const start = Date.now();
  for (let number = 1; number <= 20; number += 1) {
    await page.waitForURL((url) => url.pathname.endsWith(`/as/ada/${number}`));
    await page.waitForFunction(() => document.activeElement !== document.body);
    await keys.press(String(number % 10));
    await keys.press('Control+Enter');
  }
  await page.waitForURL((url) => url.search === '?done=1');
  return (Date.now() - start) / 1000;
}
"""


@contextmanager
def app(folder: Path) -> Iterator[str]:
    """The address that `gta view` prints for a folder."""
    with served("view", str(folder)) as (address, _):
        yield address


def judged(folder: Path, value: float) -> None:
    run = stored_run(folder, TASKS, {"report.md": b"# Sales\n\nApril was the best month.\n"})
    rows = [
        VerdictRow(
            key=VerdictKey(task=one.id, leaf=leaf.id, judge="j"),
            verdict=Scored(value=(value + int(one.id)) % 11, reason="April is named."),
        )
        for one in TASKS
        for leaf in one.leaves()
    ]
    append_verdicts(run, rows)
    score_workflow_run(run, Settings())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("app") / "runs"
    judged(root / "first", 0)
    judged(root / "team" / "second with a rather long name", 5)
    return root


def test_pages_fit_every_size_and_work_without_a_script(packages: Path, folder: Path) -> None:
    second = entry_id("team/second with a rather long name")
    pages = {
        "runs": "",
        "failures": "failures?cause=wrong+content",
        "compare": f"compare?a=first&b={second}&task=3",
        "label": "label",
        "run": "runs/first",
        "unit": f"runs/{second}/unit?task=3",
    }
    with app(folder) as address:
        program = f"const PAGES = {json.dumps([*pages.items()])};\n{VISITS}"
        seen: Any = browse(packages, program, address)
    for page in seen["found"]:
        assert (page["errors"], page["problems"], page["overflow"]) == ([], [], 0), page
    assert len(seen["found"]) == 4 * len(pages)
    assert "first" in seen["text"] and "Root SR" in seen["text"]


def test_a_run_in_progress_is_up_to_date_within_two_seconds(packages: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    written: dict[str, float] = {}
    ended = threading.Event()

    def watch() -> None:
        """Note when the run itself first states each number of units."""
        shards = progress_folder(tmp_path / "runs" / "grows")
        while not ended.is_set():
            for file in shards.glob("shard-*.json"):
                done = json.loads(file.read_bytes())["done"]
                written.setdefault(str(done), time.time())
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with app(tmp_path / "runs") as address:
        run = subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path)])
        seen: Any = browse(packages, WATCH, address)
        assert run.wait(60) == 0
    ended.set()
    watcher.join()
    shown = {int(done): when for done, when in seen.items()}
    late = {
        done: min(when for other, when in shown.items() if other >= int(done)) - begun
        for done, begun in written.items()
    }
    print(f"{len(shown)} of {UNITS} states shown, the latest {max(late.values()):.2f} s late")
    assert len(late) >= 5, "units end in groups, because the model of this test blocks"
    assert max(late.values()) < LATEST, late


def test_twenty_leaves_are_labelled_by_keyboard(packages: Path, folder: Path) -> None:
    with app(folder) as address:
        seconds = browse(packages, LABEL, address)
    print(f"20 leaves in {seconds} s")
    (ada,) = read_labels(folder / "first")
    assert [label.value for label in ada.labels] == [*(n % 10 for n in range(1, 21))]
