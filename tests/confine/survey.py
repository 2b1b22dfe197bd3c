"""What foreign code finds of this machine when it looks everywhere: all of it should be nothing."""

import json
import os
import random
import socket
from pathlib import Path
from typing import TypedDict

from gta_bench.confine.bubblewrap import CODE, SYSTEM_FILES, SYSTEM_LINKS
from gta_bench.confine.walls import Python

PLACES = ("/etc", "/root", "/home", "/var", "/run", "/opt", "/srv", "/sys/kernel", "/boot")
MOST_PATHS, FROM_EACH = 600, 500


class Survey(TypedDict):
    """What was found, and as whom; `unfiltered` are processes without a system-call filter."""

    sysctls: list[str]
    files: list[str]
    sockets: list[str]
    set_id: list[str]
    unfiltered: list[str]
    user: int


# `GIVEN` stands for what the host knows: what may be read, what else there is, who listens.
CODE_INSIDE = r"""
import ctypes, json, os, socket, stat
GIVEN = json.loads(%r)

def opened(path, flags):
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK)
    except OSError:
        return False
    regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
    os.close(descriptor)
    return regular

def below(top, skip):
    for folder, folders, names in os.walk(top):
        paths = [os.path.join(folder, name) for name in folders]
        folders[:] = [os.path.basename(path) for path in paths if path not in skip]
        for name in names:
            path = os.path.join(folder, name)
            if path not in skip:
                yield path

def reached(family, address):
    try:
        with socket.socket(family) as one:
            one.settimeout(2)
            one.connect(tuple(address) if isinstance(address, list) else address)
    except OSError:
        return False
    return True

def attempt(make, *arguments):
    try:
        make(*arguments)
    except OSError:
        pass

def make_set_id():
    libc = ctypes.CDLL(None)
    for number, mode in enumerate((0o4755, 0o2755, 0o6711)):
        name = "set-id-" + str(number)
        open(name, "wb").close()
        attempt(os.chmod, name, mode)
        with open(name, "rb") as stream:
            attempt(os.fchmod, stream.fileno(), mode)
        libc.syscall(452, -100, name.encode(), mode, 0)
        attempt(os.open, name + "-opened", os.O_CREAT | os.O_WRONLY, mode)
        attempt(os.mknod, name + "-node", stat.S_IFREG | mode)
        attempt(os.mkdir, name + "-folder", mode)
        attempt(os.chmod, name + "-folder", mode)
        how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, mode, 0)
        libc.syscall(437, -100, (name + "-newer").encode(), how, 24)
        try:
            descriptor = os.open(".", os.O_TMPFILE | os.O_RDWR, mode)
            attempt(os.link, "/proc/self/fd/" + str(descriptor), name + "-linked")
        except OSError:
            pass
    return [name for name in os.listdir(".") if os.lstat(name).st_mode & 0o6000]

def unfiltered():
    found = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    for number in [name for name in names if name.isdecimal()]:
        try:
            if "Seccomp:\t0" in open("/proc/" + number + "/status").read():
                found.append(number)
        except OSError:
            pass
    return found

def solution():
    os.umask(0)
    skip = set(GIVEN["allowed"])
    files = {path for path in below("/", skip) if opened(path, os.O_RDONLY)}
    files |= {path for path in GIVEN["paths"] if opened(path, os.O_RDONLY)}
    settings = below("/proc/sys", ())
    return json.dumps({
        "sysctls": [path for path in settings if opened(path, os.O_WRONLY)],
        "files": sorted(files),
        "sockets": [str(one) for family, one in GIVEN["sockets"] if reached(family, one)],
        "set_id": make_set_id(),
        "unfiltered": unfiltered(),
        "user": os.getuid(),
    })
"""


def code(places: dict[str, str], own: list[str]) -> str:
    """The survey as a snippet; `own` are the folders that the code is given."""
    folder, port = places["folder"], int(places["port"])
    allowed = ["/usr", "/proc", "/dev", CODE, *SYSTEM_LINKS, *SYSTEM_FILES]
    allowed += [*Python.current().roots, *own]
    sockets: list[tuple[int, object]] = [
        (socket.AF_INET, ("127.0.0.1", port)),
        (socket.AF_INET, (_address(), port)),
        (socket.AF_UNIX, f"{folder}/s"),
        (socket.AF_UNIX, f"\0{places['name']}"),
        *((socket.AF_UNIX, name) for name in _listeners()),
    ]
    given = {
        "allowed": allowed,
        "paths": [places["secret"], *_paths(allowed)],
        "sockets": sockets,
    }
    return CODE_INSIDE % json.dumps(given)


def _paths(allowed: list[str]) -> list[str]:
    """Files of this machine outside of what may be read, as many as fit into a command."""
    found: list[str] = []
    for top in (*PLACES, str(Path(__file__).parents[2])):
        here: list[str] = []
        for folder, _, names in os.walk(top):
            here += [f"{folder}/{name}" for name in names[:20]]
            if len(here) > FROM_EACH:
                break
        found += [path for path in here if not _is_allowed(path, allowed)]
    return random.Random(7).sample(found, min(MOST_PATHS, len(found)))


def _is_allowed(path: str, allowed: list[str]) -> bool:
    return any(name.startswith(top) for name in (path, os.path.realpath(path)) for top in allowed)


def _listeners() -> list[str]:
    """Who else listens on this machine, by path or by abstract name."""
    lines = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace").splitlines()[1:]
    names = {fields[7] for line in lines if len(fields := line.split()) == 8}
    return [("\0" + name[1:]) if name.startswith("@") else name for name in sorted(names)][:50]


def _address() -> str:
    """This machine's own address on its network, or loopback's second."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.2"
