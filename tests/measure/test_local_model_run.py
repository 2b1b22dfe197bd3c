"""A small real model as agent and as judge of all 20 Workflow tasks, from start to report."""

import time
from collections import Counter
from pathlib import Path

import pytest

from tests.judging.killed import run_with_a_kill, scored
from tests.judging.recording_proxy import recording_proxy
from tests.llm_server import llm_server

pytestmark = pytest.mark.measure

# Of 229: two of the tasks need a picture and a recording that the released data do not hold.
LEAVES = 199


def test_twenty_tasks_from_the_first_call_to_the_report_with_a_kill_between(
    tmp_path: Path, workflow_dir: Path, loopback: None
) -> None:
    began = time.monotonic()
    with llm_server() as url, recording_proxy(url) as proxy:
        whole = run_with_a_kill(tmp_path, workflow_dir, "0:20", proxy, kill_after=LEAVES // 3)
    print(whole.printed)
    print(f"{time.monotonic() - began:.0f} s")
    for judging in (False, True):
        timings = [
            call.reply["timings"]
            for call in whole.calls
            if bool(call.request.get("response_format")) == judging and "timings" in call.reply
        ]
        total: Counter[str] = Counter()
        for timing in timings:
            total.update(timing)
        print("judge" if judging else "agent", len(timings), "calls", dict(total))
    print(Counter(getattr(row.verdict, "cause", "scored") for row in whole.rows.values()))
    assert len(whole.rows) == LEAVES
    assert len(scored(whole.rows)) >= 0.9 * LEAVES
