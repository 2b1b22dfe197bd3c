"""Photograph the demo's report and the leaderboard's site for the documentation, with Chromium."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
# Width and height in pixels, so that each ends between two parts of its page.
SIZES = {"report": (1360, 795), "site": (1280, 640)}
COLORS = 128  # what such a page needs; a third of the bytes


def main() -> None:
    """Build both pages and photograph the top of each."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _gta("demo", "--out", "gta-demo", cwd=place)
        _gta("leaderboard", "build", "--out", "site", cwd=place)
        _photograph(place / "gta-demo" / "report.html", "report")
        _photograph(place / "site" / "index.html", "site")


def _gta(*arguments: str, cwd: Path) -> None:
    # An empty home has no small model, which would be a third run where it was fetched.
    command = ["env", f"HOME={cwd}", sys.executable, "-m", "gta_bench", *arguments]
    subprocess.run(command, cwd=cwd, check=True)


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
