"""The walls of bubblewrap: one builder for snippets, programs and the cells of harnesses.

Every kind of namespace is new, the tree of files holds what is named here, and nobody inside is
root of this machine. An ordinary user's job is that user in a user namespace. Root's job has no
user namespace, for there it would still be root to the kernel: it starts with no more than the
right to become another user, and does so before any foreign code runs (`Orders.user`).
"""

import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath

import gta_bench
from gta_bench.confine.inside import seccomp
from gta_bench.confine.users import NOBODY
from gta_bench.errors import EnvironmentProblem

# Besides /usr: how programs find libraries, fonts and each other. No accounts, no host names.
SYSTEM_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
SYSTEM_FILES = (
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/var/cache/fontconfig",
)
CODE = "/jail"  # where our own code stands inside


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or folder of this machine, and where it stands inside."""

    source: str
    place: str
    writable: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Walls:
    """What is inside. `memory` are empty folders by size; `code` is what of this package is shown.

    `user` is whom the job becomes where we are root (`job_user`). Without a size of its
    `shared_memory` it has no /proc either. With `network` it keeps the network it is started in.
    """

    name: str
    user: int | None
    cwd: str
    code: Sequence[str]
    memory: Mapping[str, int]
    binds: Sequence[Bind] = ()
    shared_memory: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    network: bool = False


@contextmanager
def filter_file(*, forks: bool = True) -> Iterator[int]:
    """The system-call filter that holds for every process inside, as bubblewrap reads it.

    The launcher could install it for the program alone, and not for bubblewrap's first process,
    which an ordinary user's program may take over through /proc.
    """
    descriptor = os.memfd_create("gta-filter")
    try:
        os.write(descriptor, _filter(forks))
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


@cache
def _filter(forks: bool) -> bytes:
    return seccomp.compiled("program", forks=forks)


def build(walls: Walls, filter_: int) -> list[str]:
    """The command that stands up the walls; what runs inside is appended."""
    if walls.user is not None:
        _require_readable(walls.binds)
    argv = [shutil.which("bwrap") or "bwrap", *_who(walls.user)]
    argv += ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    argv += [] if walls.network else ["--unshare-net"]
    argv += ["--die-with-parent", "--new-session", "--clearenv", "--hostname", walls.name]
    argv += ["--seccomp", str(filter_), *_system()]
    for place, size in walls.memory.items():
        argv += [*_parents(place), "--perms", "1777", "--size", str(size), "--tmpfs", place]
    argv += ["--dev", "/dev"]
    if walls.shared_memory is not None:
        # The settings of the kernel: bubblewrap leaves them to the rights of its files.
        argv += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
        argv += ["--perms", "1777", "--size", str(walls.shared_memory), "--tmpfs", "/dev/shm"]
    source = Path(gta_bench.__file__).parent.parent
    code = [Bind(str(source / part), f"{CODE}/{part}") for part in walls.code]
    for bind in (*code, *walls.binds):  # may lie below the folders of memory
        how = "--bind" if bind.writable else "--ro-bind"
        argv += [*_parents(bind.place), how + ("-try" if bind.optional else "")]
        argv += [bind.source, bind.place]
    for name, value in walls.environment.items():
        argv += ["--setenv", name, value]
    # `/dev` is memory that bubblewrap gives no size.
    return [*argv, "--chdir", walls.cwd, "--remount-ro", "/", "--remount-ro", "/dev", "--"]


def _require_readable(binds: Sequence[Bind]) -> None:
    """Whoever is not root inside must be able to read what root lends."""
    for bind in binds:
        try:
            mode = Path(bind.source).stat().st_mode
        except OSError:  # bubblewrap says so
            continue
        needed = 0o5 if stat.S_ISDIR(mode) else 0o4
        if not (bind.writable or bind.optional) and mode & needed != needed:
            raise EnvironmentProblem(
                f"{bind.source} can be read by its owner alone, and root's jail is not root: "
                f"`chmod -R o+rX {bind.source}`, or run as an ordinary user."
            )


def _who(user: int | None) -> list[str]:
    if user is None:
        nobody = str(NOBODY)
        argv = ["--unshare-user", "--disable-userns", "--uid", nobody, "--gid", nobody]
        return [*argv, "--cap-drop", "ALL"]
    kept = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
    return ["--cap-drop", "ALL", *(word for name in kept for word in ("--cap-add", name))]


def _parents(place: str) -> list[str]:
    """Folders on the way, which bubblewrap would close to others than root."""
    folders = [str(parent) for parent in PurePosixPath(place).parents][-2::-1]
    return [word for folder in folders for word in ("--perms", "0755", "--dir", folder)]


def _system() -> list[str]:
    """The system's programs and libraries, read-only."""
    argv = ["--ro-bind", "/usr", "/usr"]
    for name in SYSTEM_LINKS:
        path = Path(name)
        if path.is_symlink():
            argv += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            argv += ["--ro-bind", name, name]
    for name in SYSTEM_FILES:
        argv += [*_parents(name), "--ro-bind-try", name, name]
    return argv
