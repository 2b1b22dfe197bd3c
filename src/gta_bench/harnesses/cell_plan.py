"""What a cell shows of this machine and what bounds it, as the command that makes it."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import gta_bench
from gta_bench.confine import walls
from gta_bench.confine.inside.protocol import Orders
from gta_bench.confine.limits import MIB
from gta_bench.confine.walls import Python
from gta_bench.records.run import Network

Stop = Literal["timeout", "cost", "output", "disk", "memory", "processes"]
WORKSPACE, TASK, SOCKETS, HOME = "/workspace", "/task", "/run/gta", "/home/harness"
INSIDE = ("gta_bench/confine/inside", "gta_bench/harnesses/inside")
SYSTEM_NAMES = ("/etc/os-release", "/etc/debian_version")  # Inspect asks which system it is
OPEN_NETWORK_FILES = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl"),
    *("/etc/ca-certificates", "/etc/pki"),
)
OWN_FILES = {
    "passwd": f"harness:x:{walls.NOBODY}:{walls.NOBODY}::{HOME}:/bin/sh\n",
    "group": f"harness:x:{walls.NOBODY}:\n",
    "hosts": "127.0.0.1 localhost harness\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


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

    def words(self, stop: Stop) -> str:
        """What the harness did that it was stopped for."""
        return {
            "timeout": f"it had not ended after {self.seconds:g} seconds",
            "cost": f"it cost more than ${self.cost_usd or 0:g}",
            "output": f"it printed more than {self.output_bytes} bytes",
            "disk": f"it wrote more than {self.disk_bytes} bytes or {self.disk_files} files",
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


def bubblewrap(plan: Plan, folder: Path) -> list[str]:
    """The command that opens a cell whose own files lie in `folder`."""
    python, limits = Python.current(), plan.limits
    argv = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--unshare-user", "--disable-userns"]
    argv += ["--share-net"] if plan.network == "open" else []
    argv += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    argv += ["--hostname", "harness", "--uid", walls.NOBODY, "--gid", walls.NOBODY]
    argv += walls.system_tree()
    for name in ("/tmp", "/var/tmp", HOME):
        argv += ["--size", str(limits.disk_bytes), "--tmpfs", name]
    for path in _outermost([*map(Path, python.roots), *plan.readable]):
        argv += ["--ro-bind", str(path), str(path)]
    source = Path(gta_bench.__file__).parent.parent
    for inside in INSIDE:
        argv += ["--ro-bind", str(source / inside), f"/jail/{inside}"]
    outside = OPEN_NETWORK_FILES if plan.network == "open" else ()
    for name in (*SYSTEM_NAMES, *outside):
        argv += ["--ro-bind-try", name, name]
    for name in OWN_FILES:
        if f"/etc/{name}" not in outside:
            argv += ["--ro-bind", str(folder / "etc" / name), f"/etc/{name}"]
    argv += ["--dev", "/dev", "--proc", "/proc"]
    argv += ["--size", str(limits.disk_bytes), "--tmpfs", "/dev/shm"]
    argv += ["--bind", str(folder / "work"), WORKSPACE]
    argv += ["--ro-bind", str(plan.inputs), f"{WORKSPACE}/inputs"]
    argv += ["--bind", str(plan.outputs), f"{WORKSPACE}/outputs"]
    argv += ["--ro-bind", str(folder / "task"), TASK]
    argv += ["--ro-bind", str(folder / "sockets"), SOCKETS]
    argv += ["--chdir", WORKSPACE, "--remount-ro", "/", "--remount-ro", "/dev"]
    boot = [python.executable, "-s", "-P", "-B", "-c", walls.BOOT, "/jail"]
    return [*argv, "--", *boot, json.dumps(_orders(plan, python))]


def _outermost(paths: Sequence[Path]) -> list[Path]:
    """Each path once, without those that lie below another one."""
    distinct = dict.fromkeys(paths)
    return [path for path in distinct if not any(parent in distinct for parent in path.parents)]


def _orders(plan: Plan, python: Python) -> Orders:
    """What the jail's launcher does before it becomes the cell's first process."""
    limits = plan.limits
    told = {
        "sockets": [f"{SOCKETS}/{name}" for name in plan.sockets],
        "data_bytes": limits.memory_bytes,
    }
    first = [python.executable, "-I", "-B", f"/jail/{INSIDE[1]}/cell.py", json.dumps(told)]
    return {
        "parent": None,
        "limits": {
            "cpu_seconds": int(limits.seconds) + 60,
            "memory_bytes": None,
            "file_bytes": limits.disk_bytes,
            "open_files": 4096,
            # A fork bomb between two looks; the kernel does not count root's.
            "processes": 2 * limits.processes,
        },
        "landlock": None,
        "profile": "program",
        "forks": True,
        "argv": first,
        "environment": cell_environment(plan),
        "scratch": "/tmp",
        "reply_bytes": 0,
    }
