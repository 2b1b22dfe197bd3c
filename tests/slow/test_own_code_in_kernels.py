"""Functions that are defined in the cells of a real Jupyter kernel."""

from pathlib import Path

import pytest

from tests.slow.test_interrupts import open_kernel

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("loopback")]

DEFINE = """
import math
import gta_bench
from gta_bench.demo import ATOMIC

def agent(history, tools):
    return str(math.floor(2.5))
"""
RUN = """
scores = gta_bench.run(
    "atomic", {out!r}, agent=agent, data=ATOMIC, tasks={tasks!r},
    settings={{"scoring.similarity": "exact-or-half"}},
)
print(scores.n, "units,", *gta_bench.manifest({out!r}).spec.system.code)
"""


def test_a_function_runs_and_continues_beside_the_import_that_it_uses(tmp_path: Path) -> None:
    """IPython compiles the statements of a cell one by one, a file is compiled at once."""
    out = str(tmp_path / "run")
    with open_kernel() as (_, execute):
        first = execute(DEFINE + RUN.format(out=out, tasks="0:1"))
        again = execute(DEFINE + RUN.format(out=out, tasks="0:2"))
        other = execute(DEFINE.replace("2.5", "3.5") + RUN.format(out=out, tasks="0:2"))
    assert (first["status"], again["status"]) == ("ok", "ok"), (first, again)
    assert "1 units, agent" in first["shown"]
    assert "2 units, agent" in again["shown"]
    assert other["ename"] == "RunError" and "'agent' has changed since" in other["evalue"]
