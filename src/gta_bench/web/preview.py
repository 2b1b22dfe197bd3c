"""The page of one task: as the system sees it, and as judge and checks decide it."""

from gta_bench.authoring.preview import TaskPreview, requirement_text
from gta_bench.records.leaderboard import CANARY
from gta_bench.web.pages import render, style_values

DECIDERS = {"check": "checks", "judge": "judge", "check-then-judge": "checks, then judge"}


def render_preview(found: TaskPreview) -> str:
    """Return the page of a task, which is one file without scripts."""
    leaves = list(found.task.leaves())
    decided = {by: sum(leaf.by == by for leaf in leaves) for by in DECIDERS}
    return render(
        "preview.html",
        **style_values(),
        canary=CANARY,
        preview=found,
        deciders=DECIDERS,
        decided={DECIDERS[by]: count for by, count in decided.items() if count},
        leaves=len(leaves),
        requirement=requirement_text,
    )
