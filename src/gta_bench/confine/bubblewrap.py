"""The bubblewrap command for snippets, programs and the cells of harnesses, and the job's user.

Every namespace is new, the file tree contains only what is listed here, and no code inside is root
on the host. A job of an ordinary user runs as that user in a user namespace. A job of root has no
user namespace, because there it would still be root to the kernel: it starts with only the right
to change its user, and does so before any foreign code runs (`Orders.user`).
"""

import os
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path, PurePosixPath

import gta_bench
from gta_bench.confine.inside import seccomp
from gta_bench.confine.limits import JailKind
from gta_bench.errors import EnvironmentProblem

# Besides /usr: how programs find libraries, fonts and each other. No accounts, no host names.
SYSTEM_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
SYSTEM_FILES = ("/etc/fonts", "/etc/ld.so.cache", "/etc/alternatives", "/var/cache/fontconfig")
CODE = "/jail"  # where this package is visible inside

NOBODY = 65534
# systemd's range for services without a user of their own. Every job gets its own user: the kernel
# counts processes by user, and two jobs must not share one count.
RANGE = range(61184, 65520)
CHOWN, SETGID, SETUID, SETPCAP, SYS_ADMIN = 0, 6, 7, 8, 21
NEEDED: dict[JailKind, tuple[int, ...]] = {
    "bubblewrap": (CHOWN, SETGID, SETUID, SETPCAP, SYS_ADMIN),
    "landlock": (CHOWN, SETGID, SETUID, SETPCAP),
}

_numbers = count()


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or folder of the host (`source`), and its path inside (`target`)."""

    source: str
    target: str
    writable: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Walls:
    """What is visible inside.

    `memory` maps empty in-memory folders to their size; `code` lists the visible parts of this
    package. `user` is the user that root's job becomes (`choose_job_user`). Without `shared_memory`
    (a size) there is no /proc either. With `network` the job keeps the network of its parent.
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


def choose_job_user(kind: JailKind) -> int | None:
    """The user that the next job becomes; None if it keeps ours.

    It keeps ours if we are an ordinary user, or root without the needed capabilities, as in a
    container.
    """
    if sys.platform != "linux" or kind not in NEEDED or os.geteuid() != 0:
        return None
    status = Path("/proc/self/status").read_text(encoding="ascii")
    capabilities = int(status.partition("CapEff:")[2].split()[0], 16)
    if not all(capabilities >> capability & 1 for capability in NEEDED[kind]):
        return None
    return RANGE[(os.getpid() * 97 + next(_numbers)) % len(RANGE)]


def find_job_user(outputs: Path) -> int | None:
    """The user of the job that has these outputs already, else the one that the next job becomes.

    A harness and the tool servers of its task write to the same folder.
    """
    chosen, owner = choose_job_user("bubblewrap"), outputs.stat().st_uid
    return owner if chosen is not None and owner in RANGE else chosen


@contextmanager
def open_filter_file(*, forks: bool = True) -> Iterator[int]:
    """A descriptor from which bubblewrap reads the system-call filter for every process inside.

    The launcher could install the filter for the program only, not for bubblewrap's first process,
    which an ordinary user's program could take over through /proc.
    """
    descriptor = os.memfd_create("gta-filter")
    try:
        os.write(descriptor, _program_filter(forks))
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


@cache
def _program_filter(forks: bool) -> bytes:
    return seccomp.compile_filter("program", forks=forks)


def build(walls: Walls, filter_: int) -> list[str]:
    """The bubblewrap command; append the command to run inside."""
    if walls.user is not None:
        _require_readable(walls.binds)
    argv = [shutil.which("bwrap") or "bwrap", *_user_options(walls.user)]
    argv += ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    argv += [] if walls.network else ["--unshare-net"]
    argv += ["--die-with-parent", "--new-session", "--clearenv", "--hostname", walls.name]
    argv += ["--seccomp", str(filter_), *_system_options()]
    for folder, size in walls.memory.items():
        argv += [*_parents(folder), "--perms", "1777", "--size", str(size), "--tmpfs", folder]
    argv += ["--dev", "/dev"]
    if walls.shared_memory is not None:
        # Kernel settings: bubblewrap protects them only by the permissions of the files.
        argv += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
        argv += ["--perms", "1777", "--size", str(walls.shared_memory), "--tmpfs", "/dev/shm"]
    source = Path(gta_bench.__file__).parent.parent
    code = [Bind(str(source / part), f"{CODE}/{part}") for part in walls.code]
    for bind in (*code, *walls.binds):  # may be below the in-memory folders
        how = "--bind" if bind.writable else "--ro-bind"
        argv += [*_parents(bind.target), how + ("-try" if bind.optional else "")]
        argv += [bind.source, bind.target]
    for name, value in walls.environment.items():
        argv += ["--setenv", name, value]
    # `/dev` is an in-memory folder that bubblewrap gives no size limit.
    return [*argv, "--chdir", walls.cwd, "--remount-ro", "/", "--remount-ro", "/dev", "--"]


def _require_readable(binds: Sequence[Bind]) -> None:
    """Refuse what only its owner can read, because root's job is another user inside."""
    for bind in binds:
        try:
            mode = Path(bind.source).stat().st_mode
        except OSError:  # bubblewrap reports it
            continue
        needed = 0o5 if stat.S_ISDIR(mode) else 0o4
        if not (bind.writable or bind.optional) and mode & needed != needed:
            raise EnvironmentProblem(
                f"{bind.source} is readable only by its owner, but jobs of root run as another "
                f"user. Run `chmod -R o+rX {bind.source}`, or run gta as an ordinary user."
            )


def _user_options(user: int | None) -> list[str]:
    if user is None:
        nobody = str(NOBODY)
        argv = ["--unshare-user", "--disable-userns", "--uid", nobody, "--gid", nobody]
        return [*argv, "--cap-drop", "ALL"]
    kept = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
    return ["--cap-drop", "ALL", *(word for name in kept for word in ("--cap-add", name))]


def _parents(path: str) -> list[str]:
    """Options for the parent folders; bubblewrap's own would be closed to other users than root."""
    folders = [str(parent) for parent in PurePosixPath(path).parents][-2::-1]
    return [word for folder in folders for word in ("--perms", "0755", "--dir", folder)]


def _system_options() -> list[str]:
    """Options for the system's programs and libraries, read-only."""
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
