"""The label page in a real browser: by mouse and by keyboard alone, from first leaf to export."""

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from gta_bench.metrics.labels import settle_scores
from gta_bench.runs.labels import read_adjudication, read_labels
from tests.browser import browse, served
from tests.judging.builders import task
from tests.judging.stored import stored_run
from tests.needs import needs

pytestmark = [pytest.mark.slow, needs("chromium", "npm")]
TASKS = (task("1", leaves=2), task("2", leaves=1))
REPORT = b"# Sales in spring\n\nMarch 120, April 140, May 90. April was the best month.\n"
# Ada uses no mouse: name, score keys, reason, Ctrl+Enter; the last leaf by arrows and Enter alone.
USE = """
async function look(browser, address) {
  const [site, token] = address.split('?');
  const found = await visit(browser, `${site}as/nobody/1?${token}`, 'label-leaf');
  const ada = await (await browser.newContext({ acceptDownloads: true })).newPage();
  await ada.goto(address);
  const keys = ada.keyboard;
  // A page that is loaded is not yet one whose first field has the focus.
  const arrived = async (part) => {
    await ada.waitForURL((url) => url.href.includes(part));
    await ada.waitForFunction(() => document.activeElement !== document.body);
  };
  await keys.type('ada');
  await keys.press('Enter');
  await arrived('/as/ada/1');
  await keys.press('0');
  const none = await ada.evaluate(() => document.querySelector('input:checked').value);
  // Both at once: on a busy machine a second may pass between two that wait for each other.
  await Promise.all([keys.press('1'), keys.press('0')]);
  await keys.press('r');
  await keys.type('All three months are there: 120, 140, 90.');
  await keys.press('Control+Enter');
  await arrived('/as/ada/2');
  await keys.press('8');
  await keys.press('Control+Enter');
  await arrived('/as/ada/3');
  await keys.press('[');
  await arrived('/as/ada/2');
  const kept = await ada.evaluate(() => document.querySelector('input:checked').value);
  await keys.press(']');
  await arrived('/as/ada/3');
  for (let step = 0; step < 3; step += 1) await keys.press('ArrowRight');
  await keys.press('Enter');
  await ada.waitForURL(site + '?done=1');
  const bob = await (await browser.newContext({ colorScheme: 'dark' })).newPage();
  await bob.goto(address);
  await bob.fill('input[name=rater]', 'bob');
  await bob.click('button');
  for (const [score, reason] of [[9, 'Fine.'], [3, 'May is wrong.'], [3, '']]) {
    await bob.click(`.scores label:has(input[value="${score}"])`);
    await bob.fill('#reason', reason);
    const before = bob.url();
    await bob.click('form#label button');
    await bob.waitForURL((url) => url.href !== before);
  }
  await bob.click('text=Settle the next');
  await bob.waitForURL(site + 'settle/1');
  const settling = await bob.evaluate(() => document.querySelector('main').innerText);
  found.push(...await visit(browser, `${site}settle/1?${token}`, 'label-settle'));
  await bob.keyboard.press('5');
  await bob.keyboard.press('Control+Enter');
  await bob.waitForURL(site);
  await ada.goto(site);
  const pressed = async () => {
    for (let step = 0; step < 30; step += 1) {
      await keys.press('Tab');
      if (await ada.evaluate(() => document.activeElement.id === 'export')) return;
    }
    throw new Error('the export cannot be reached by Tab');
  };
  await pressed();
  const download = ada.waitForEvent('download');
  await keys.press('Enter');
  const file = await (await download).path();
  const text = require('fs').readFileSync(file, 'utf8');
  found.push(...await visit(browser, address, 'label-finished'));
  return { found, none, kept, settling, text };
}
"""


def chart() -> bytes:
    picture = Image.new("RGB", (480, 320), "white")
    draw = ImageDraw.Draw(picture)
    for place, height in enumerate((120, 140, 90)):
        draw.rectangle((80 + 120 * place, 260 - height, 140 + 120 * place, 260), fill="steelblue")
    kept = BytesIO()
    picture.save(kept, "PNG")
    return kept.getvalue()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("label") / "run"
    return stored_run(folder, TASKS, {"report.md": REPORT, "chart.png": chart()})


@pytest.fixture
def site(run: Path, loopback: None) -> Iterator[str]:
    with served("judge", "label", str(run)) as (address, _):
        yield address


def test_leaves_are_labelled_by_keyboard_and_by_mouse_settled_and_exported(
    packages: Path, run: Path, site: str
) -> None:
    seen: Any = browse(packages, USE, site)
    for page in seen["found"]:
        assert (page["errors"], page["problems"], page["overflow"]) == ([], [], 0), page
    assert len(seen["found"]) == 12
    assert (seen["none"], seen["kept"]) == ("0", "8")
    assert "A: 8" in seen["settling"] and "B: 3" in seen["settling"]
    assert "bob" not in seen["settling"]
    lines = seen["text"].splitlines()
    assert len(lines) == 1 + 3 + 3 + 1
    assert "All three months are there: 120, 140, 90." in seen["text"]
    ada, bob = read_labels(run)
    assert [label.value for label in ada.labels] == [10, 8, 3]
    assert [label.value for label in bob.labels] == [9, 3, 3]
    assert sorted(settle_scores([ada, bob], read_adjudication(run), 7).values()) == [3, 5, 9.5]
    assert json.loads((run / "adjudication.json").read_text(encoding="utf-8"))["labels"]
