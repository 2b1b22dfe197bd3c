"""Photograph the demo's report and the leaderboard's site for the documentation, with Chromium."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
WIDTH = 1280
# So that each ends between two parts of its page.
HEIGHTS = {"report": 855, "site": 640}
COLORS = 128  # what such a page needs; a third of the bytes


def main() -> None:
    """Make both pages anew and photograph the top of each."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _gta("demo", "--out", "gta-demo", cwd=place)
        _gta("leaderboard", "build", "--out", "site", cwd=place)
        _photograph(place / "gta-demo" / "report.html", "report")
        _photograph(place / "site" / "index.html", "site")


def _gta(*arguments: str, cwd: Path) -> None:
    subprocess.run([sys.executable, "-m", "gta_bench", *arguments], cwd=cwd, check=True)


def _photograph(page: Path, name: str) -> None:
    """The top of a page in the light scheme, 1280 pixels wide."""
    chromium = shutil.which("chromium") or sys.exit("chromium is missing: apt install chromium")
    profile = page.parent / "profile"
    shot = page.with_suffix(".png")
    subprocess.run(
        [
            chromium,
            *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            f"--user-data-dir={profile}",
            f"--window-size={WIDTH},{HEIGHTS[name]}",
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
