"""The leaderboard's site in a real browser: sorted, filtered, compared, light and dark."""

from pathlib import Path
from typing import Any

import pytest

from gta_bench.leaderboard.entries import read_published_entries
from gta_bench.web.site import build_site
from tests.browser import browse
from tests.needs import needs
from tests.web.test_site import submitted

pytestmark = [pytest.mark.slow, needs("chromium", "npm")]

VISIT = """
async function look(browser, site) {
  const found = [];
  const names = ['index', 'workflow', 'harnesses', 'atomic', 'compare', 'history'];
  for (const name of [...names, 'system-my-agent', 'system-claude-3-opus']) {
    found.push(...await visit(browser, `${site}/${name}.html`, name));
  }
  return found;
}
"""
USE = """
async function look(browser, site) {
  const page = await browser.newPage();
  const rows = () => page.$$eval('.row', (all) => all.filter((one) => one.offsetParent)
    .map((one) => one.querySelector('th a').textContent.trim()));
  const plotted = () => page.$$eval('.board-plot li', (all) => all
    .filter((one) => one.offsetParent).map((one) => one.dataset.name));
  const heads = () => page.$$eval('.group-head', (all) => all.filter((one) => one.offsetParent)
    .map((one) => one.textContent.trim()));
  const found = {};
  await page.goto(`${site}/workflow.html`);
  found.heads = await heads();
  found.tied = await page.$$eval('.row[data-group="1"]', (all) => all.length);
  await page.click('th button:has-text("Root score")');
  found.byScore = await rows();
  found.headsByScore = await heads();
  await page.click('th button:has-text("Root score")');
  found.byScoreUp = await rows();
  found.sorted = await page.getAttribute('th:has(button:has-text("Root score"))', 'aria-sort');
  await page.click('th button:has-text("Ranks")');
  found.byRank = await rows();
  found.headsByRank = await heads();
  await page.fill('input[name=find]', 'LLAMA');
  found.llamas = await rows();
  found.said = await page.textContent('output');
  await page.selectOption('select[name=kind]', 'closed-source');
  found.none = await rows();
  found.headsOfNone = await heads();
  await page.goto(`${site}/atomic.html`);
  await page.check('input[name=flagged]');
  found.flagged = await plotted();
  await page.goto(`${site}/index.html`);
  found.all = (await plotted()).length;
  await page.selectOption('select[name=tier]', 'self-reported');
  found.submitted = await plotted();
  await page.selectOption('select[name=tier]', '');
  await page.check('input[aria-label="Compare Gemini-2.5-Pro"]');
  found.one = await page.textContent('.tray p');
  await page.check('input[aria-label="Compare My agent"]');
  found.two = await page.textContent('.tray p');
  await page.check('input[aria-label="Compare Qwen3-8B"]');
  found.three = await page.textContent('.tray p');
  await page.click('.tray a');
  await page.waitForSelector('#comparison h2');
  found.fromTray = await page.textContent('#comparison .verdict');
  await page.goto(`${site}/workflow.html`);
  await page.click('.row:has-text("Kimi-K2") a:has-text("compare")');
  await page.waitForSelector('#comparison h2');
  found.compared = await page.textContent('#comparison');
  await page.selectOption('select[name=second]', '2026-04/workflow/qwen3-8b');
  found.other = await page.textContent('#comparison .verdict');
  found.address = await page.evaluate(() => location.hash);
  await page.reload();
  found.reloaded = await page.textContent('#comparison .verdict');
  await page.selectOption('select[name=second]', '2024-07/atomic/gpt-4o');
  found.apart = await page.textContent('#comparison .verdict');
  const phone = await browser.newContext({ viewport: { width: 390, height: 800 } });
  const small = await phone.newPage();
  await small.goto(`${site}/atomic.html`);
  await small.click('summary:has-text("All numbers of 2026-02")');
  found.card = await small.evaluate(() => {
    const row = document.querySelector('#atomic-2026-02 tr.row');
    return [getComputedStyle(row).display, document.documentElement.scrollWidth - innerWidth];
  });
  const plain = await browser.newContext({ javaScriptEnabled: false });
  const still = await plain.newPage();
  await still.goto(`${site}/compare.html`);
  found.plainForm = await still.isVisible('#compare');
  await still.click('summary');
  found.plainPairs = await still.isVisible('details td:has-text("Kimi-K2")');
  await still.goto(`${site}/index.html`);
  found.plainRows = await still.$$eval('.board-plot li', (all) => all.length);
  found.plainControls = await still.$$eval('input', (all) =>
    all.filter((one) => one.offsetParent).length);
  return found;
}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("site")
    build_site([*read_published_entries(), submitted()], folder)
    return folder.as_uri()


def test_no_page_overflows_or_has_a_serious_accessibility_problem(
    packages: Path, site: str
) -> None:
    pages: Any = browse(packages, VISIT, site)
    assert len(pages) == 32
    for page in pages:
        assert (page["errors"], page["problems"], page["overflow"]) == ([], [], 0), page


def test_a_reader_sorts_filters_and_compares(packages: Path, site: str) -> None:
    found: Any = browse(packages, USE, site)
    assert found["heads"] == [
        "Group 1: 9 systems that cannot be told apart from Gemini-2.5-Pro",
        "Group 2: 5 systems that cannot be told apart from Llama-3.1-70B-Instruct",
    ]
    assert found["tied"] == 9
    assert found["byScore"][:3] == ["My agent", "GPT-5", "Llama-4-Scout"]
    assert found["byScoreUp"][:3] == [
        "Llama-3.2-3B-Instruct",
        "Llama-3.1-8B-Instruct",
        "Qwen3-30B-A3B",
    ]
    assert found["sorted"] == "ascending"
    assert found["headsByScore"] == []
    assert found["byRank"][0] == "Gemini-2.5-Pro"
    assert found["headsByRank"] == found["heads"]
    assert found["llamas"] == [
        "Llama-4-Scout",
        "Llama-3.1-70B-Instruct",
        "Llama-3.2-3B-Instruct",
        "Llama-3.1-8B-Instruct",
    ]
    assert found["said"] == "4 of 14 results"
    assert (found["none"], found["headsOfNone"]) == ([], [])
    assert found["flagged"] == [
        "claude-3-opus",
        "mistral-large",
        "claude3-opus",
        "mistral-large",
        "yi-34b-chat",
    ]
    assert (found["all"], found["submitted"]) == (66, ["my agent"])
    assert found["one"] == "Gemini-2.5-Pro: check a second system to compare."
    assert found["two"].startswith("Gemini-2.5-Pro and My agent: cannot be told apart. Root SR")
    assert found["three"].startswith("My agent and Qwen3-8B: told apart. Root SR differs by +13.6")
    assert found["fromTray"] == "My agent and Qwen3-8B: told apart."
    assert "Gemini-2.5-Pro and Kimi-K2: cannot be told apart" in found["compared"]
    assert "Kimi-K2 and Qwen3-8B: told apart." in found["other"]
    assert found["reloaded"] == found["other"]
    assert found["address"] == "#2026-04/workflow/kimi-k2+2026-04/workflow/qwen3-8b"
    assert "different plots" in found["apart"]
    assert found["plainForm"] is False
    assert found["plainPairs"] is True
    assert (found["plainRows"], found["plainControls"]) == (66, 0)
    assert found["card"] == ["grid", 0]
