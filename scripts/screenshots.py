"""Photograph pages for the documentation, with Chromium.

The demo's report, the leaderboard's site, and the preview and the report of the tutorial on tasks.
"""

import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from tests.docs.blocks import blocks
from tests.docs.test_console_blocks import split_commands

DOCS = Path(__file__).parent.parent / "docs"
PICTURES = DOCS / "pictures"
# Width and height in pixels, so that each ends between two parts of its page.
SIZES = {
    "report": (1280, 532),
    "site": (1280, 640),
    "preview": (1280, 1460),
    "own-tasks-report": (1280, 508),
}
COLORS = 128  # what such a page needs; a third of the bytes


def main() -> None:
    """Build the pages and photograph the top of each."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _gta("demo", "--out", "gta-demo", cwd=place)
        _gta("leaderboard", "build", "--out", "site", cwd=place)
        _gta("report", "gta-demo/workflow", "--html", "gta-demo/report.html", cwd=place)
        _photograph(place / "gta-demo" / "report.html", "report")
        _photograph(place / "site" / "index.html", "site")
        _follow(DOCS / "tutorials" / "own-tasks.md", place / "tutorial")
        _photograph(place / "tutorial" / "preview-q3-sales.html", "preview")
        _photograph(place / "tutorial" / "report.html", "own-tasks-report")


def _gta(*arguments: str, cwd: Path) -> None:
    # An empty home has no small model, which would be a third run where it was fetched.
    command = ["env", f"HOME={cwd}", sys.executable, "-m", "gta_bench", *arguments]
    subprocess.run(command, cwd=cwd, check=True)


def _follow(page: Path, place: Path) -> None:
    """Write the files of a tutorial and give its commands, from top to bottom."""
    for block in blocks(page):
        if block.title is not None:
            (place / block.title).parent.mkdir(parents=True, exist_ok=True)
            (place / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            place.mkdir(exist_ok=True)
            for command, _ in split_commands(block):
                words = [sys.executable, "-m", "gta_bench", *shlex.split(command)[1:]]
                subprocess.run(words, cwd=place, check=False)


def _photograph(page: Path, name: str) -> None:
    """The top of a page in the light scheme."""
    chromium = shutil.which("chromium") or sys.exit("chromium is missing: apt install chromium")
    profile = page.parent / "profile"
    width, height = SIZES[name]
    shot = page.with_suffix(".png")
    subprocess.run(
        [
            chromium,
            *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
            f"--screenshot={shot}",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=300,
    )
    with Image.open(shot) as picture:
        picture.convert("RGB").quantize(COLORS).save(PICTURES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
