"""What a cell shows of this machine and what bounds it, as the command that makes it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from gta_bench.confine import bubblewrap, network, walls
from gta_bench.confine.bubblewrap import NOBODY, Bind, Walls
from gta_bench.confine.inside.protocol import Orders
from gta_bench.confine.limits import MIB
from gta_bench.confine.walls import Python
from gta_bench.records.run import Network

StopCause = Literal["timeout", "cost", "output", "disk", "memory", "processes"]
WORKSPACE, TASK, SOCKETS, HOME = "/workspace", "/task", "/run/gta", "/home/harness"
INSIDE = (walls.INSIDE, "gta_bench/harnesses/inside")
SYSTEM_NAMES = ("/etc/os-release", "/etc/debian_version")  # Inspect asks which system it is
CERTIFICATES = (
    *("/etc/ca-certificates", "/etc/ssl/certs", "/etc/ssl/openssl.cnf"),
    *("/etc/pki/tls/certs", "/etc/pki/ca-trust"),
)
OWN_FILES = ("passwd", "group", "hosts", "nsswitch.conf", "resolv.conf")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLimits:
    """What a harness may use on one task; what exceeds it is stopped and recorded by name.

    `cost_usd` bounds the calls of the run's model, `disk_bytes` and `disk_files` workspace and
    outputs together, `memory_bytes` all processes together.
    """

    seconds: float = 1800.0
    cost_usd: float | None = None
    output_bytes: int = MIB
    disk_bytes: int = 256 * MIB
    disk_files: int = 2000
    memory_bytes: int = 8192 * MIB
    processes: int = 512

    def words(self, stop: StopCause) -> str:
        """What the harness did that it was stopped for."""
        return {
            "timeout": f"it had not ended after {self.seconds:g} seconds",
            "cost": f"it cost more than ${self.cost_usd or 0:g}",
            "output": f"it printed more than {self.output_bytes} bytes",
            "disk": f"it wrote more than {self.disk_bytes} bytes or {self.disk_files} files, or "
            "made a folder that cannot be looked into",
            "memory": f"it used more than {self.memory_bytes} bytes of memory",
            "processes": f"it ran more than {self.processes} processes",
        }[stop]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a cell shows of this machine.

    `inputs` and `outputs` are folders of the host. `readable` appears under its own paths, and
    `sockets` are names of unix sockets, each of which gets a loopback port.
    """

    inputs: Path
    outputs: Path
    network: Network
    limits: CellLimits = CellLimits()
    readable: Sequence[Path] = ()
    sockets: Sequence[str] = ()
    search: Sequence[Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def own_files(user: int | None) -> dict[str, str]:
    """What stands in place of this machine's accounts and names."""
    number = NOBODY if user is None else user
    texts = (
        f"harness:x:{number}:{number}::{HOME}:/bin/sh\n",
        f"harness:x:{number}:\n",
        "127.0.0.1 localhost harness\n",
        "passwd: files\ngroup: files\nhosts: files dns\n",
        f"nameserver {network.RESOLVER}\n",
    )
    return dict(zip(OWN_FILES, texts, strict=True))


def cell_environment(plan: Plan) -> dict[str, str]:
    """What every command inside finds in its environment."""
    search = [str(folder) for folder in plan.search]
    return {
        "HOME": HOME,
        "LANG": "C.UTF-8",
        "PATH": ":".join([*search, walls.ENVIRONMENT["PATH"]]),
        "TMPDIR": "/tmp",
        "USER": "harness",
        **plan.environment,
    }


def command(plan: Plan, folder: Path, *, user: int | None, filter_: int) -> list[str]:
    """The command that opens a cell whose own files lie in `folder`."""
    python, disk = Python.current(), plan.limits.disk_bytes
    is_open = plan.network == "open"
    outside = CERTIFICATES if is_open else ()
    binds = [
        Bind(str(path), str(path))
        for path in _outermost([*map(Path, python.roots), *plan.readable])
    ]
    binds += [Bind(name, name, optional=True) for name in (*SYSTEM_NAMES, *outside)]
    binds += [Bind(str(folder / "etc" / name), f"/etc/{name}") for name in OWN_FILES]
    binds += [
        Bind(str(folder / "work"), WORKSPACE, writable=True),
        Bind(str(plan.inputs), f"{WORKSPACE}/inputs"),
        Bind(str(plan.outputs), f"{WORKSPACE}/outputs", writable=True),
        Bind(str(folder / "task"), TASK),
        Bind(str(folder / "sockets"), SOCKETS),
    ]
    built = Walls(
        name="harness",
        user=user,
        cwd=WORKSPACE,
        code=INSIDE,
        memory={place: disk for place in ("/tmp", "/var/tmp", HOME)},
        binds=binds,
        shared_memory=disk,
        network=is_open,
    )
    boot = [python.executable, "-s", "-P", "-B", "-c", walls.BOOT, bubblewrap.CODE]
    return [*bubblewrap.build(built, filter_), *boot, json.dumps(_orders(plan, python, user))]


def _outermost(paths: Sequence[Path]) -> list[Path]:
    """Each path once, without those that lie below another one."""
    distinct = dict.fromkeys(paths)
    return [path for path in distinct if not any(parent in distinct for parent in path.parents)]


def _orders(plan: Plan, python: Python, user: int | None) -> Orders:
    """What the jail's launcher does before it becomes the cell's first process."""
    limits = plan.limits
    told = {
        "sockets": [f"{SOCKETS}/{name}" for name in plan.sockets],
        "data_bytes": limits.memory_bytes,
    }
    first = [
        python.executable,
        "-I",
        "-B",
        f"{bubblewrap.CODE}/{INSIDE[1]}/cell.py",
        json.dumps(told),
    ]
    return {
        "user": user,
        "parent": None,
        "limits": {
            "cpu_seconds": int(limits.seconds) + 60,
            "memory_bytes": None,
            "file_bytes": limits.disk_bytes,
            "open_files": 4096,
            # A fork bomb between two looks.
            "processes": 2 * limits.processes,
        },
        "landlock": None,
        "profile": None,  # bubblewrap has installed it
        "forks": True,
        "argv": first,
        "environment": cell_environment(plan),
        "scratch": "/tmp",
        "reply_bytes": 0,
    }
