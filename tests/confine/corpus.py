"""Runs every attack in one kind of jail and prints what came of it, as JSON.

A program of its own, so that the tests can start it as another user:
`python -m tests.confine.corpus bubblewrap program`. The second word is the road: foreign code comes
as a snippet, as a program or as a harness in its cell, whose network a third word may open.
"""

import asyncio
import json
import os
import random
import socket
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Literal, TypedDict, cast

from gta_bench.confine import files
from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailKind, JailLimits, ProgramResult
from gta_bench.errors import ConfinedError, GtaError
from gta_bench.harnesses.cell import Cell, CellGone, Ran
from gta_bench.harnesses.choice import Plan
from gta_bench.records.run import Network
from tests.confine import survey
from tests.confine.attacks import attacks, filled
from tests.confine.survey import Survey

SECRET = "planted-7f3a9c"


Road = Literal["snippet", "program", "cell"]
Tried = tuple[str, str]
ROADS: tuple[Road, ...] = ("snippet", "program", "cell")
# What a program runs after an attack; a snippet's driver does the same.
REPORT = """
import json
try:
    said = ["value", str(solution())]
except BaseException as exc:
    said = ["error", f"{type(exc).__name__}: {exc}"]
print()
print(json.dumps(said), flush=True)
"""
# A program answers with its outputs, and a cell's bounds have tests of their own.
APPLY: dict[Road, tuple[str, ...]] = {
    "snippet": ("files", "network", "processes", "kernel", "limits", "endings", "machine"),
    "program": ("files", "network", "processes", "kernel", "machine"),
    "cell": ("files", "network", "processes", "kernel", "machine"),
}


class Outcome(TypedDict):
    """What one attack came to."""

    name: str
    outcome: str
    words: str
    seconds: float
    jail: str


class Results(TypedDict):
    """What the whole corpus came to."""

    outcomes: list[Outcome]
    survey: Survey
    set_id_left: list[str]
    left_behind: list[str]
    folders: list[str]
    secret_intact: bool
    user: int
    next_call: str


def marked_limits() -> JailLimits:
    """Limits with a number that no other process on this machine has in its arguments."""
    odd = 256 * MIB + random.randrange(1, 1000) * 4096
    return JailLimits(
        wall_seconds=5.0,
        cpu_seconds=1,
        memory_bytes=odd,
        file_bytes=8 * MIB,
        disk_bytes=16 * MIB,
        output_bytes=65536,
        reply_bytes=MIB,
    )


async def attack_snippet(jail: Jail, name: str, code: str, limits: JailLimits) -> Tried:
    result = await jail.run_snippet(code, limits=limits)
    return "value", str(result.value) + result.printed


async def attack_program(jail: Jail, name: str, code: str, limits: JailLimits) -> Tried:
    argv = [sys.executable, "-S", "-c", code + REPORT]
    return reported(await jail.run_program(argv, limits=limits))


def reported(done: ProgramResult | Ran) -> Tried:
    """What a program says that it came to; the last line, for it may print as much as it likes."""
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    try:
        outcome, words = json.loads(lines[-1])
    except (IndexError, ValueError):
        return "crashed", (done.stdout + done.stderr).decode("utf-8", "replace")
    return outcome, words


async def attack_once(jail: Jail, road: Road, name: str, code: str, limits: JailLimits) -> Outcome:
    start, kind = time.monotonic(), jail.kind
    attack = attack_snippet if road == "snippet" else attack_program
    try:
        outcome, words = await attack(jail, name, code, limits)
    except ConfinedError as exc:
        outcome, words, kind = exc.cause, str(exc), cast(JailKind, exc.jail)
    except GtaError as exc:
        outcome, words = type(exc).__name__, str(exc)
    seconds = time.monotonic() - start
    return {"name": name, "outcome": outcome, "words": words, "seconds": seconds, "jail": kind}


async def look_around(jail: Jail, road: Road, places: dict[str, str], space: Path) -> Survey:
    limits = JailLimits(wall_seconds=60, cpu_seconds=60)
    if road == "snippet":
        own = [] if jail.kind == "landlock" else ["/tmp"]
        return survey_read((await jail.run_snippet(survey.code(places, own), limits=limits)).value)
    own = ["/tmp", "/job", "/workspace", "/task", "/run/gta", "/etc", "/home/harness", "/var/tmp"]
    source = survey.code(places, own)
    if road == "program":
        return survey_read((await attack_program(jail, "survey", source, limits))[1])
    plan = cell_plan(space)
    async with Cell(plan) as cell:
        argv = [sys.executable, "-S", "-c", source + REPORT]
        return survey_read(reported(await cell.run(argv, cwd="/workspace/outputs"))[1])


def survey_read(text: str | bytes) -> Survey:
    return cast(Survey, json.loads(text))


async def attack_cell(jobs: Path, codes: dict[str, str]) -> list[Outcome]:
    """Every attack in one cell, and in a new one where an attack ended it."""
    outcomes: list[Outcome] = []
    waiting = list(codes)
    while waiting:
        async with Cell(cell_plan(jobs)) as cell:
            while waiting:
                name = waiting.pop(0)
                start = time.monotonic()
                argv = [sys.executable, "-S", "-c", codes[name] + REPORT]
                try:
                    outcome, words = reported(await cell.run(argv, seconds=10))
                except CellGone:
                    outcome, words = "gone", ""
                seconds = time.monotonic() - start
                outcomes.append(
                    {
                        "name": name,
                        "outcome": outcome,
                        "words": words,
                        "seconds": seconds,
                        "jail": "bubblewrap",
                    }
                )
                if outcome == "gone":
                    break
    return outcomes


def cell_plan(jobs: Path) -> Plan:
    space = Path(tempfile.mkdtemp(dir=jobs))
    for name in ("inputs", "outputs"):
        (space / name).mkdir()
    network: Network = "open" if "open" in sys.argv else "tools"
    return Plan(inputs=space / "inputs", outputs=space / "outputs", network=network)


def processes_with(mark: str) -> list[str]:
    """Command lines on this machine that contain the mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if mark in words:
            found.append(words[:200])
    return found


def wait_until_gone(mark: str, seconds: float = 10.0) -> list[str]:
    end = time.monotonic() + seconds
    while (left := processes_with(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def plant(folder: Path, stack: ExitStack) -> dict[str, str]:
    """A secret that everybody may read, and servers that everybody may reach."""
    secret = folder / "secret.txt"
    secret.write_text(SECRET, encoding="utf-8")
    secret.chmod(0o666)
    folder.chmod(0o777)
    name = f"gta-{os.urandom(6).hex()}"
    tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    for address in (str(folder / "s"), f"\0{name}"):
        server = stack.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(address)
        server.listen()
    port = str(tcp.getsockname()[1])
    return {"secret": str(secret), "folder": str(folder), "port": port, "name": name}


async def run_corpus(kind: JailKind, road: Road) -> Results:
    limits = marked_limits()
    os.environ["OPENAI_API_KEY"] = f"sk-{SECRET}"
    os.environ["GTA_PLANTED"] = SECRET
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gta-corpus-")))
        folder = temporary / "host"
        jobs = temporary / "jobs"
        folder.mkdir()
        jobs.mkdir()
        places = plant(folder, stack)
        jail = stack.enter_context(Jail(kind, slots=4, temporary=jobs))
        codes = {
            attack.name: filled(attack, places)
            for attack in attacks(os.uname().machine)
            if attack.kind in APPLY[road]
        }
        if road == "cell":
            outcomes = await attack_cell(temporary, codes)
        else:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(attack_once(jail, road, name, code, limits))
                    for name, code in codes.items()
                ]
            outcomes = [task.result() for task in tasks]
        found = await look_around(jail, road, places, temporary)
        good = await jail.run_snippet("def solution():\n    return 6 * 7", limits=limits)
        secret = Path(places["secret"])
        return {
            "outcomes": outcomes,
            "survey": found,
            "set_id_left": [
                entry.path
                for entry in files.walk(temporary)
                if entry.stat(follow_symlinks=False).st_mode & 0o6000
            ],
            "left_behind": wait_until_gone(str(limits.memory_bytes)),
            "folders": [path.name for path in jobs.iterdir()],
            "secret_intact": secret.read_text(encoding="utf-8") == SECRET
            and secret.stat().st_mode & 0o777 == 0o666
            and secret.stat().st_mtime > 1
            and sorted(path.name for path in folder.iterdir()) == ["s", "secret.txt"],
            "user": os.getuid(),
            "next_call": str(good.value),
        }


if __name__ == "__main__":
    wanted = cast(JailKind, sys.argv[1]), cast(Road, sys.argv[2])
    print(json.dumps(asyncio.run(run_corpus(*wanted))))
