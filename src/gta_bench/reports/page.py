"""Runs as one HTML page that needs nothing else: no script, no other file, no network."""

from collections.abc import Collection, Sequence
from typing import Final

from markupsafe import Markup

from gta_bench.records.leaderboard import CANARY
from gta_bench.reports.boards import boards
from gta_bench.reports.material import RunMaterial
from gta_bench.reports.pages import asset, render
from gta_bench.reports.run_view import view_run

# Sections of a whole page; the worst units of every run have one, and the page stays readable.
SECTIONS: Final = 150


def report_page(
    runs: Sequence[RunMaterial], *, wanted: Collection[str] = (), most: int = SECTIONS
) -> str:
    """The page; tasks that are `wanted` have a section in any case."""
    share = most // len(runs)
    return render(
        "report.html",
        style=Markup(asset("style.css")),  # ours, and no part of it comes from a run
        canary=CANARY,
        boards=boards(runs),
        runs=[
            view_run(number, run, most=share, wanted=wanted)
            for number, run in enumerate(runs, start=1)
        ],
    )
