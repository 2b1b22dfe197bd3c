"""Pages in a real Chromium, driven by playwright-core from npm; axe-core judges accessibility."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import JsonValue

PACKAGES = ("playwright-core@1.65.0", "axe-core@4.14.0")
CHROMIUM = "/usr/bin/chromium"
# `visit` opens a page in each size and color scheme and gives what it found. axe, which is slow on
# long tables, looks once at every size and once at every scheme.
PRELUDE = """
const { chromium } = require('playwright-core');
const axe = require('fs').readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const SIZES = [
  [1280, 'light', true], [1280, 'dark', false], [390, 'light', false], [390, 'dark', true],
];
async function seriousProblems(page) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run());
  return result.violations
    .filter((one) => ['serious', 'critical'].includes(one.impact))
    .map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 200)}`);
}
async function visit(browser, url, name) {
  const found = [];
  for (const [width, colorScheme, judged] of SIZES) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
    const page = await context.newPage();
    const errors = [];
    page.on('pageerror', (error) => errors.push(error.message));
    // What the page's own policy refuses is told on the console; axe is refused there too.
    const listen = (said) => said.type() === 'error' && errors.push(said.text());
    page.on('console', listen);
    await page.goto(url);
    page.off('console', listen);
    const problems = judged ? await seriousProblems(page) : [];
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (process.argv[3]) {
      const path = `${process.argv[3]}/${name}-${width}-${colorScheme}.png`;
      const tall = await page.evaluate(() => document.documentElement.scrollHeight);
      const clip = { x: 0, y: 0, width, height: Math.min(tall, 6000) };
      await page.screenshot({ path, fullPage: true, clip });
    }
    found.push({ name, width, colorScheme, errors, problems, overflow: wide });
    await context.close();
  }
  return found;
}
"""
MAIN = """
(async () => {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  try {
    process.stdout.write(JSON.stringify(await look(browser, process.argv[2])));
  } finally {
    await browser.close();
  }
})();
"""


def install(folder: Path) -> Path:
    """Both packages in a folder; no script of theirs is run."""
    subprocess.run(
        ["npm", "install", "--ignore-scripts", "--silent", "--no-audit", "--no-fund", *PACKAGES],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder


def browse(folder: Path, look: str, site: str) -> JsonValue:
    """What the function `look(browser, site)` in JavaScript gives back.

    GTA_SCREENSHOTS names a folder for screenshots of all visited pages.
    """
    program = f"{PRELUDE}\nconst CHROMIUM = {json.dumps(CHROMIUM)};\n{look}\n{MAIN}"
    (folder / "look.js").write_text(program, encoding="utf-8")
    result = subprocess.run(
        ["node", "look.js", site, os.environ.get("GTA_SCREENSHOTS", "")],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert result.returncode == 0, result.stderr
    value: JsonValue = json.loads(result.stdout)
    return value


@contextmanager
def served(*arguments: str) -> Iterator[tuple[str, int]]:
    """The address that a `gta` command prints, and its process id; it ends as with Ctrl-C."""
    hidden = {"BROWSER": "", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    server = subprocess.Popen(
        [sys.executable, "-m", "gta_bench.cli", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **hidden},
    )
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip(), server.pid
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
        server.stdout.close()
