"""The boundary of the Python API: threads, stops, and failures in words of Python."""

import ast
import asyncio
import re
import threading
from pathlib import Path
from typing import Any

import pytest

import gta_bench
from gta_bench.demo import ATOMIC
from gta_bench.errors import UsageError, WorkFailed
from gta_bench.records.progress import RunProgress
from gta_bench.running.calling import ARGUMENTS, offer, offer_async, word_for_python
from gta_bench.running.planning import DEFAULTS
from gta_bench.running.stopping import check_stop, run_async, use_engine
from gta_bench.settings import ScoringSettings, Settings

SOURCE = Path(gta_bench.__file__).parent
OPTIONS: dict[str, Any] = {
    "agent": "silent",
    "mode": "step",
    "data": ATOMIC,
    "tasks": "0:1",
    "settings": Settings(scoring=ScoringSettings(similarity="exact-or-half")),
}
# Layers whose messages only commands show.
COMMANDS = ("cli", "exports", "leaderboard", "judge_quality", "demo", "weights.py")
# Options of other commands than `gta run`, in messages that `gta_bench.run` does not reach.
OTHERS = {"cascade", "dataset", "port", "root", "no-pictures", "solver"}


def messages() -> list[tuple[Path, str]]:
    """What the package raises below its commands."""
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        if str(file.relative_to(SOURCE)).startswith(COMMANDS):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise):
                found.append((file, ast.unparse(node)))
    return found


def test_every_option_in_a_message_is_an_argument_of_run() -> None:
    """Errors of a notebook spoke of --out and --data."""
    known = {"out", "mode", *DEFAULTS}
    seen = set()
    for file, text in messages():
        plain = re.sub(r"`(?!--)[^`]*`", "", text)
        for name in re.findall(r"(?<![\w-])--([a-z][a-z-]*[a-z])", plain):
            seen.add(name)
            argument = ARGUMENTS.get(name, name.replace("-", "_")).partition("=")[0]
            assert argument in known or name in OTHERS, f"{file}: --{name}"
    assert {"data", "out", "harness"} <= seen


@pytest.mark.parametrize(
    ("said", "worded"),
    [
        ("Use --data x, or choose another --out.", "Use `data` x, or choose another `out`."),
        ("use `gta run … --harness`.", "use `gta run … --harness`."),
        ("name its folder with `--data DIR` or so", "name its folder with `data` or so"),
        ("--sample-seed needs --sample N.", "`sample_seed` needs `sample`."),
        ("skip this check with --no-preflight", "skip this check with `preflight=False`"),
        ("safe; run the same command again", "safe; call again with the same arguments"),
        (
            "Create runs with `gta run` or `gta import`.",
            "Create runs with `gta_bench.run`, or with `gta import` in a shell.",
        ),
        ("run `gta score runs/x` (GTA-Workflow)", "run `gta_bench.score('runs/x')` (GTA-Workflow)"),
        (
            "run `gta score runs/x --judge MODEL`.",
            "run `gta_bench.judge('runs/x', 'provider/model')`.",
        ),
        ("or `gta score --no-pictures`.", "or `gta score --no-pictures`."),
        ("; `gta status` shows its progress.", "; `gta status` in a shell shows its progress."),
        ("with `gta data fetch atomic`, or", "with `gta data fetch atomic` in a shell, or"),
    ],
)
def test_messages_are_worded_for_python(said: str, worded: str) -> None:
    assert word_for_python(said) == worded


@offer
def fail(message: str) -> None:
    raise UsageError(message)


@offer
def wait_forever(started: threading.Event) -> None:
    async def wait() -> None:
        started.set()
        await asyncio.Event().wait()

    run_async(wait())


def test_a_failure_has_its_type_and_words_on_every_path() -> None:
    async def both() -> list[BaseException]:
        found = []
        for work in (lambda: fail("--out"), lambda: asyncio.run(offer_async(fail)("--out"))):
            with pytest.raises(UsageError) as caught:
                await asyncio.to_thread(work)
            found.append(caught.value)
        with pytest.raises(UsageError) as caught:
            fail("--out")
        return [*found, caught.value]

    assert [str(one) for one in asyncio.run(both())] == ["`out`"] * 3


def test_a_canceled_coroutine_stops_the_loop_of_its_work() -> None:
    async def main() -> str:
        started = threading.Event()
        task = asyncio.create_task(offer_async(wait_forever)(started))
        await asyncio.to_thread(started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return str(caught.value)

    said = asyncio.run(main())
    assert said == (
        "Interrupted. What is finished is safe; call again with the same arguments to continue."
    )


def test_an_interrupt_is_a_keyboard_interrupt() -> None:
    @offer
    def stop() -> None:
        raise WorkFailed("Interrupted. Safe; run the same command again.", exit_code=130)

    with pytest.raises(KeyboardInterrupt, match="call again with the same arguments"):
        stop()


def test_work_that_waits_for_its_turn_can_be_stopped() -> None:
    @offer
    def work() -> None:
        with use_engine():
            pass

    async def main() -> None:
        with use_engine():
            task = asyncio.create_task(offer_async(work)())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    # In a context of its own: what is called inside of a run may not start another one.
    asyncio.run(main())
    check_stop()


def test_runs_of_two_threads_and_two_coroutines_wait_for_each_other(tmp_path: Path) -> None:
    """One of two died with `RuntimeError: no running event loop`."""
    found: list[int] = []

    def run(name: str) -> None:
        found.append(gta_bench.run("atomic", tmp_path / name, **OPTIONS).n)

    threads = [threading.Thread(target=run, args=(f"thread-{one}",)) for one in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def both() -> list[int]:
        runs = [gta_bench.arun("atomic", tmp_path / f"task-{one}", **OPTIONS) for one in range(2)]
        return [scores.n for scores in await asyncio.gather(*runs)]

    assert [*found, *asyncio.run(both())] == [1, 1, 1, 1]


def test_a_run_inside_a_run_is_refused_in_one_line(tmp_path: Path) -> None:
    said: list[str] = []

    def listener(_: RunProgress) -> None:
        if not said:
            with pytest.raises(gta_bench.GtaError) as caught:
                gta_bench.run("atomic", tmp_path / "inner", **OPTIONS)
            said.append(str(caught.value))

    gta_bench.run("atomic", tmp_path / "outer", listener=listener, **OPTIONS)
    assert said[0].startswith("A run cannot start inside another run of the same process.")
