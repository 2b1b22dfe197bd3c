"""Runs as one HTML page that needs nothing else: no script, no other file, no network."""

from base64 import b64encode
from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Final

from markupsafe import Markup

from gta_bench.records.leaderboard import CANARY
from gta_bench.web.boards import boards
from gta_bench.web.material import RunMaterial
from gta_bench.web.pages import asset, render
from gta_bench.web.run_view import view_run

# Sections of a whole page; the worst units of every run have one, and the page stays readable.
SECTIONS: Final = 150


def report_page(
    runs: Sequence[RunMaterial], *, wanted: Collection[str] = (), most: int = SECTIONS
) -> str:
    """The page; tasks that are `wanted` have a section in any case."""
    share = most // len(runs)
    style = asset("style.css")
    return render(
        "report.html",
        style=Markup(style),  # ours, and no part of it comes from a run
        style_hash=f"sha256-{b64encode(sha256(style.encode()).digest()).decode()}",
        canary=CANARY,
        boards=boards(runs),
        runs=[
            view_run(number, run, most=share, wanted=wanted)
            for number, run in enumerate(runs, start=1)
        ],
    )
