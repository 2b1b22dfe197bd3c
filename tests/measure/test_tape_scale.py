"""Tapes of 10,000 and 100,000 calls: opening, looking up, memory."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from gta_bench.tape.storage import Tape
from tests.tape.builders import line, recording

SIZES = (10_000, 100_000)
SCRIPT = """
import json, resource, sys, time
from pathlib import Path
from gta_bench.records.tape import TapeCall
from gta_bench.tape.source import describe_nearest
from gta_bench.tape.storage import Tape, tape_digest

folder, size = Path(sys.argv[1]), int(sys.argv[2])

def call(number, note=""):
    arguments = {"note": f"question {number}{note}", "image": "inputs/a.png"}
    return TapeCall(dataset="atomic", task=str(number % 229), tool="Look", arguments=arguments)

start = time.perf_counter()
tape = Tape.open(folder)
opened = time.perf_counter() - start
start = time.perf_counter()
tape_digest(folder)
digested = time.perf_counter() - start
times = []
for number in range(0, size, size // 2000):
    wanted = call(number)
    start = time.perf_counter()
    reply = tape.find(wanted, epoch=1, number=1)
    times.append(time.perf_counter() - start)
    assert reply is not None and str(number) in reply.parts[0].content
start = time.perf_counter()
describe_nearest(tape, call(7, " changed"))
missed = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
times.sort()
print(json.dumps({"opened": opened, "digested": digested, "missed": missed, "peak_mb": peak,
                  "median": times[len(times) // 2], "p99": times[len(times) * 99 // 100]}))
"""


def measured(folder: Path, size: int) -> dict[str, float]:
    """In a process of its own, so that its memory is the tape's."""
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), str(size)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    figures: dict[str, float] = json.loads(result.stdout)
    return figures


@pytest.mark.measure
def test_a_hundred_thousand_calls(tmp_path: Path) -> None:
    dice, found = random.Random(1), {}
    for size in SIZES:
        tape: Tape = recording(tmp_path / str(size))
        for number in range(size):
            said = f"reply {number}: " + "word " * dice.randrange(20, 200)
            question = f"question {number}"
            tape.keep(line(str(number % 229), said, note=question, image="inputs/a.png"))
        tape.close()
        found[size] = measured(tmp_path / str(size), size)
        print(size, found[size], (tmp_path / str(size) / "tape.jsonl").stat().st_size)
    small, large = (found[size] for size in SIZES)
    assert large["p99"] < 0.001
    assert large["opened"] / small["opened"] < 20, "ten times the calls, about ten times the time"
    assert large["peak_mb"] < 500
