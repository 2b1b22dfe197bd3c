"""The product tests itself: two tasks of every family, from the forge to the report.

A pilot decides every leaf of every work twice. Where that takes minutes, it is run by hand.
"""

import json
import shutil
from pathlib import Path

import pytest

from gta_bench.forge.catalog import FAMILIES
from gta_bench.forge.draft import TaskFamily
from gta_bench.forge.writing import Order, forge_tasks
from tests.cli.test_run import gta
from tests.needs import require_programs
from tests.tools.media_weights import fetch_moonshine

pytestmark = pytest.mark.slow

ORDER = Order("public", "slow", 1)
LONG_PILOTS = ("annotate", "budget", "clip", "deck", "page", "report", "sales", "terms")
CASES = [
    pytest.param(one, id=one.name, marks=pytest.mark.measure if one.name in LONG_PILOTS else ())
    for one in FAMILIES.values()
]


@pytest.mark.parametrize("family", CASES)
def test_two_tasks_from_the_forge_to_the_report(family: TaskFamily, tmp_path: Path) -> None:
    if "flite" in family.needs:
        require_programs("ffmpeg", "flite")
        fetch_moonshine()  # its checks hear what is said
    tasks, run = tmp_path / "tasks", tmp_path / "run"
    forge_tasks([family], ORDER, 2, tasks)
    names = sorted(path.name for path in tasks.iterdir() if path.is_dir())
    piloted = gta("task", "pilot", tasks / names[0], "--no-judge", "--out", tmp_path / "pilot")
    assert piloted.exit_code == 0, piloted.output
    assert piloted.stderr.count(": ready.") == 1
    # The first task done rightly, and nothing for the second.
    gold = min((tasks / names[0] / "gold").iterdir())
    shutil.copytree(gold, tmp_path / "results" / names[0])
    (tmp_path / "results" / names[1]).mkdir()
    (tmp_path / "results" / names[1] / "final.txt").write_text("I cannot do that.")
    imported = gta("import", "folder", tmp_path / "results", "--data", tasks, "--out", run)
    assert imported.exit_code == 0, imported.output
    scored = gta("score", run, "--json")
    assert scored.exit_code == 0, scored.output
    (judge,) = json.loads(scored.stdout)["judges"]
    assert {one["task"]: one["root"] for one in judge["tasks"]} == {names[0]: 10, names[1]: 0}
    page = tmp_path / "report.html"
    reported = gta("report", run, "--html", page)
    assert reported.exit_code == 0, reported.output
    assert names[0] in page.read_text(encoding="utf-8")
