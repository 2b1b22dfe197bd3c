import asyncio
import contextlib
import io
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gta_bench.errors import ToolError
from gta_bench.tools.backends import workers
from gta_bench.tools.backends.workers import Worker, Workers, get_workers, serve

# A worker program of its own: the protocol without the models.
PROGRAM = """
import os, sys, time
from gta_bench.errors import ToolError
from gta_bench.tools.backends import workers

def job(data, options):
    what = options.get("what")
    if what == "refuse":
        raise ToolError("I would rather not.")
    if what == "fail":
        raise RuntimeError("a bug")
    if what == "crash":
        os.kill(os.getpid(), 11)
    if what == "end slowly":
        os.closerange(3, 20)
        time.sleep(1.5)
        os._exit(3)
    if what == "babble":
        os.write(3, b"no JSON" + b"\\n")
    if what == "sleep":
        time.sleep(60)
    if what == "print":
        print("noise on stdout")
        os.write(1, b"more noise")
    return workers.JobOutcome({"pid": os.getpid(), "nice": os.nice(0)}, data[::-1])

sys.modules["odd_jobs"] = sys.modules["__main__"]
workers.JOBS = {"odd": "odd_jobs:job"}
workers.main()
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "odd_worker.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    return "odd_worker"


@pytest.fixture
def worker(program: str) -> Iterator[Worker]:
    with contextlib.closing(Worker(program)) as made:
        yield made


def do(worker: Worker, what: str | None = None, data: bytes = b"abc", seconds: float = 30) -> int:
    outcome = worker.do("odd", data, {"what": what}, seconds)
    assert outcome.data == data[::-1]
    assert isinstance(outcome.value, dict)
    return int(str(outcome.value["pid"]))


def test_jobs_run_in_one_process_that_stays(worker: Worker) -> None:
    first = do(worker)
    assert first != os.getpid()
    assert do(worker, data=bytes(5_000_000)) == first
    assert do(worker, data=b"") == first


def test_what_a_library_prints_does_not_disturb_the_answer(worker: Worker) -> None:
    assert do(worker, "print") == do(worker)


def test_a_refusal_is_a_tool_error_and_the_process_stays(worker: Worker) -> None:
    before = do(worker)
    with pytest.raises(ToolError, match="I would rather not"):
        do(worker, "refuse")
    assert do(worker) == before


@pytest.mark.parametrize(
    ("what", "said"),
    [("fail", "code 1: RuntimeError: a bug"), ("crash", "code -11"), ("end slowly", "code 3")],
)
def test_a_crash_is_a_tool_error_and_the_next_job_works(
    worker: Worker, what: str, said: str
) -> None:
    before = do(worker)
    with pytest.raises(ToolError, match=f"The process for 'odd' ended with {said}"):
        do(worker, what)
    assert do(worker) != before


def test_a_reply_that_cannot_be_read_is_a_tool_error_and_the_next_job_works(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "ENDING_SECONDS", 0.5)
    before = do(worker)
    with pytest.raises(ToolError, match="The process for 'odd' sent a reply that cannot be read"):
        do(worker, "babble")
    assert do(worker) != before


def test_a_job_that_takes_too_long_is_stopped(worker: Worker) -> None:
    do(worker)
    start = time.monotonic()
    with pytest.raises(ToolError, match=r"took more than 0\.5 seconds"):
        do(worker, "sleep", seconds=0.5)
    assert time.monotonic() - start < 10
    do(worker)


def test_closing_leaves_no_process(program: str) -> None:
    made = Worker(program)
    pid = do(made)
    made.close()
    made.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_pool_spreads_its_jobs_and_survives_a_crash_among_them(program: str) -> None:
    async def run(pool: Workers) -> list[object]:
        jobs = [None] * 8 + ["crash"] + [None] * 8
        calls = [pool.run("odd", b"x", {"what": what}) for what in jobs]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    with contextlib.closing(Workers(2, program)) as pool:
        outcomes = asyncio.run(run(pool))
    failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert len(failed) == 1
    assert isinstance(failed[0], ToolError)


def test_a_pool_serves_one_event_loop_after_the_other(program: str) -> None:
    with contextlib.closing(Workers(1, program)) as pool:
        values = [asyncio.run(pool.run("odd", b"x", {})).value for _ in range(2)]
    assert values[0] == values[1]


def test_the_pool_is_shared_within_a_process() -> None:
    assert get_workers() is get_workers()


def test_a_worker_answers_each_job_and_ends_with_its_input() -> None:
    image = b"not an image"
    job = {"job": "ocr", "options": {"path": "inputs/a.png"}, "bytes": len(image)}
    asked = json.dumps(job).encode() + b"\n" + image
    replies = io.BytesIO()
    serve(io.BytesIO(asked * 2), replies)
    lines = replies.getvalue().splitlines()
    assert len(lines) == 2
    assert "`inputs/a.png` is not an image" in json.loads(lines[0])["error"]
