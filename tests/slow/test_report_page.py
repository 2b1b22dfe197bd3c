"""Reports and traces in a real browser: three runs on one page, and a sample in the viewer."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gta_bench.records.atomic import AtomicTask
from gta_bench.records.evidence import FileEvidence, Picture
from gta_bench.records.files import Deliverable
from gta_bench.records.units import Usage
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.web.material import AtomicRun, JudgedRun
from gta_bench.web.page import render_report
from gta_bench.web.reading import read_material
from tests.browser import browse
from tests.cli.test_run import gta
from tests.leaderboard.bundles import gold_run
from tests.needs import needs
from tests.web.test_atomic_page import gold as gold_units
from tests.web.test_atomic_page import material, silent

pytestmark = [pytest.mark.slow, needs("chromium", "npm")]

VISIT = """
async function look(browser, site) {
  const found = await visit(browser, site, 'report');
  const plain = await browser.newContext({ javaScriptEnabled: false });
  const page = await plain.newPage();
  // Without the script, a link to a task opens it.
  await page.goto(`${site}#run-1-task-98-1`);
  const shown = await page.isVisible('#run-1-task-98-1 .tree');
  await page.click('#run-1-task-98-1 summary:has-text("Trace")');
  const trace = await page.isVisible('#run-1-task-98-1 .timeline');
  const covered = await page.$$eval('td.num', (all) => all.filter(
    (one) => one.scrollWidth > one.clientWidth + 1).length);
  const bare = await page.isHidden('#run-1-tasks form');
  const paper = (await page.pdf({ format: 'A4' })).toString('latin1');
  const pages = paper.match(/\\/Type\\s*\\/Page[^s]/g).length;
  return { found, shown, trace, covered, bare, pages };
}
"""
FILTER = """
async function look(browser, site) {
  const page = await browser.newPage();
  // CPU time of the page's thread, which does not depend on what else the machine does.
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  await page.goto(site);
  const { metrics } = await session.send('Performance.getMetrics');
  const busy = metrics.find((one) => one.name === 'TaskDuration').value;
  const list = '#run-1-tasks';
  const texts = () => page.$$eval(`${list} .task, ${list} .task-bare`,
    (all) => all.filter((one) => !one.hidden).map((one) => one.textContent.toLowerCase()));
  const rows = async () => (await texts()).length;
  const said = () => page.textContent(`${list} output`);
  const all = [await rows(), await said()];
  await page.click('.cause-card');
  const cause = [await said(), await page.inputValue(`${list} select[name=cause]`)];
  await page.selectOption(`${list} select[name=cause]`, '');
  await page.click(`${list} .chip[data-state=passed]`);
  await page.click(`${list} .pager button[data-page="1"]`);
  const paged = [await rows(), await page.textContent(`${list} .pager span`)];
  await page.fill(`${list} input[type=search]`, 'beer');
  const found = (await texts()).map((one) => one.includes('beer'));
  await page.evaluate(() => { location.hash = document.querySelector('.task .body').id; });
  await page.waitForSelector('.task[open]');
  return { busy, all, cause, paged, found };
}
"""
TRACE = """
async function look(browser, site) {
  const page = await browser.newPage();
  await page.goto(site);
  await page.waitForSelector('text=Sample 12');
  await page.waitForSelector('text=What is the image of this analytic formula?');
  return await page.textContent('body');
}
"""


@pytest.fixture(scope="module")
def gold(atomic_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gold_run(atomic_dir, tmp_path_factory.mktemp("runs") / "gold")


@pytest.fixture(scope="module")
def imported(data_dir: Path, workflow_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("imported") / "run"
    stored = data_dir / "predictions" / "workflow_gemini25pro_lagent_20"
    options: list[str | Path] = [
        "--dataset",
        "workflow",
        "--data",
        workflow_dir,
        "--model",
        "gemini-2.5-pro",
    ]
    gta("import", "opencompass", stored, *options, "--out", out)
    gta("score", out)
    return out


def with_pictures(run: Path) -> JudgedRun:
    """The run as if a judge had been shown its pictures."""
    read = read_material(run)
    assert isinstance(read, JudgedRun)
    files = [file for unit in read.units for file in unit.deliverables if file.path.endswith("png")]
    return JudgedRun(
        read.summary,
        read.units,
        read.verdicts,
        evidence={file.digest: _shown(file) for file in files},
        picture=ArtefactStore(run / ARTEFACTS).read,
    )


def _shown(file: Deliverable) -> FileEvidence:
    page = Picture(
        digest=file.digest, media_type="image/png", label="picture", width=100, height=100
    )
    return FileEvidence(
        path=file.path,
        digest=file.digest,
        size=file.size,
        claims="png",
        kind="png",
        pictures=(page,),
    )


def test_three_runs_on_one_page_are_readable_in_every_size(
    packages: Path,
    imported: Path,
    gold: Path,
    atomic_tasks: Mapping[str, AtomicTask],
    tmp_path: Path,
) -> None:
    nothing = [
        unit.model_copy(update={"usage": Usage(seconds=3, cost_usd=0.2)})
        for unit in silent(atomic_tasks)
    ]
    runs = [with_pictures(imported), read_material(gold), material(nothing, "end-to-end")]
    file = tmp_path / "report.html"
    file.write_text(render_report(runs, most=30, wanted=["98"]), encoding="utf-8")
    seen: Any = browse(packages, VISIT, file.as_uri())
    for page in seen["found"]:
        assert (page["errors"], page["problems"], page["overflow"]) == ([], [], 0), page
    assert len(seen["found"]) == 4
    assert (seen["shown"], seen["trace"], seen["covered"], seen["bare"]) == (True, True, 0, True)
    assert seen["pages"] <= 6 * len(runs)


def test_ten_thousand_units_open_at_once_and_can_be_filtered(
    packages: Path, atomic_tasks: Mapping[str, AtomicTask], tmp_path: Path
) -> None:
    epochs = range(1, 45)
    units = [
        one.model_copy(update={"epoch": epoch})
        for epoch in epochs
        for one in (silent(atomic_tasks) if epoch % 2 else gold_units(atomic_tasks))
    ]
    run = material(units, "end-to-end")
    spec = {"tasks": tuple(atomic_tasks), "epochs": len(epochs)}
    summary = run.summary._replace(manifest=run.summary.manifest.with_spec(**spec))
    file = tmp_path / "report.html"
    file.write_text(render_report([AtomicRun(summary, units)]), encoding="utf-8")
    assert file.stat().st_size < 3_000_000
    seen: Any = browse(packages, FILTER, file.as_uri())
    assert seen["busy"] < 1.5
    assert seen["all"] == [50, "10,076 of 10,076 rows"]
    assert seen["cause"] == ["5,038 of 10,076 rows", "format"]
    assert seen["paged"][0] == 50 and seen["paged"][1].startswith("Page 2 of")
    assert seen["found"] and all(seen["found"])


@pytest.mark.usefixtures("loopback")
def test_a_trace_is_opened_at_its_sample(packages: Path, gold: Path) -> None:
    hidden = {"BROWSER": "", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    command = [sys.executable, "-m", "gta_bench.cli", "view", str(gold), "--task", "12", "--trace"]
    with subprocess.Popen(
        command,
        env={**os.environ, **hidden},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            while "Running on" not in server.stdout.readline():
                assert server.poll() is None
            text: Any = browse(packages, TRACE, address)
        finally:
            server.terminate()
    assert "(Epoch 1)" in text
