"""Runs every attack in one kind of jail and prints what came of it, as JSON.

A program of its own, so that the tests can start it as another user:
`python -m tests.confine.corpus bubblewrap`.
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
from typing import TypedDict, cast

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailKind, Limits
from gta_bench.errors import ConfinedError, GtaError
from tests.confine.attacks import attacks, filled

SECRET = "planted-7f3a9c"


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
    left_behind: list[str]
    folders: list[str]
    secret_intact: bool
    user: int
    next_call: str


def marked_limits() -> Limits:
    """Limits with a number that no other process on this machine has in its arguments."""
    odd = 256 * MIB + random.randrange(1, 1000) * 4096
    return Limits(
        wall_seconds=5.0,
        cpu_seconds=1,
        memory_bytes=odd,
        file_bytes=8 * MIB,
        disk_bytes=16 * MIB,
        output_bytes=65536,
        reply_bytes=MIB,
    )


async def attack_once(jail: Jail, name: str, code: str, limits: Limits) -> Outcome:
    start = time.monotonic()
    try:
        result = await jail.run_snippet(code, limits=limits)
        outcome, words, kind = "value", str(result.value) + result.printed, result.report.jail
    except ConfinedError as exc:
        outcome, words, kind = exc.cause, str(exc), cast(JailKind, exc.jail)
    except GtaError as exc:
        outcome, words, kind = type(exc).__name__, str(exc), jail.kind
    seconds = time.monotonic() - start
    return {"name": name, "outcome": outcome, "words": words, "seconds": seconds, "jail": kind}


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


async def run_corpus(kind: JailKind) -> Results:
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
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(attack_once(jail, attack.name, filled(attack, places), limits))
                for attack in attacks(os.uname().machine)
            ]
        good = await jail.run_snippet("def solution():\n    return 6 * 7", limits=limits)
        secret = Path(places["secret"])
        return {
            "outcomes": [task.result() for task in tasks],
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
    print(json.dumps(asyncio.run(run_corpus(cast(JailKind, sys.argv[1])))))
