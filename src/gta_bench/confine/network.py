"""The open network of a cell: pasta in its own namespace, with a filter against local addresses.

No special rights are needed: pasta creates the namespace as an ordinary user (as nobody if we are
root), and root of that namespace only sets the filter. A cell that joins the namespace cannot
change either: it runs as another user, or in a nested user namespace.
"""

import asyncio
import os
import shutil
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Network, collapse_addresses
from pathlib import Path
from subprocess import SubprocessError
from typing import Any

from gta_bench.confine.bubblewrap import NOBODY, choose_job_user
from gta_bench.errors import EnvironmentProblem

INSTALL = "`apt install passt nftables`"
TUN = Path("/dev/net/tun")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAMS = ("pasta", "nft", "nsenter")
REFUSED = "--network open does not work here"
NEEDS = "It needs user namespaces, nftables in the kernel and a default route by IPv4."
READY_SECONDS = 20.0
END_SECONDS = 5.0
SHOWN = 300

ADDRESS, GATEWAY, RESOLVER = "10.0.2.2", "10.0.2.1", "10.0.2.3"
OPTIONS = (
    *("--foreground", "--quiet", "--stderr", "--config-net", "--ns-ifname", "tap0"),
    # Pasta knows less about IPv6 neighbors, and a filter for both would be twice as long.
    *("--ipv4-only", "--address", ADDRESS, "--netmask", "28", "--gateway", GATEWAY),
    # By default it forwards the ports of the host's loopback, and the gateway is the host.
    *("--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none"),
    *("--no-map-gw", "--no-icmp", "--no-dhcp", "--dns-forward", RESOLVER),
)
# Prints the process id as the host numbers it, then waits until stdin is closed.
HOLD = 'nft "$1" && read -r pid rest < /proc/self/stat && echo "$pid" && exec cat'
# What programs need to trust the servers that they reach.
CERTIFICATES = (
    *("/etc/ca-certificates", "/etc/ssl/certs", "/etc/ssl/openssl.cnf"),
    *("/etc/pki/tls/certs", "/etc/pki/ca-trust"),
)
# Ranges without public Internet addresses. Ranges for documentation reach no machine anyway.
PRIVATE = tuple(
    IPv4Network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15"),
        *("224.0.0.0/4", "240.0.0.0/4"),
    )
)


@dataclass(frozen=True, slots=True)
class OpenNetwork:
    """A network namespace that reaches the Internet; a command prefixed with `join` runs in it."""

    join: tuple[str, ...]
    process: asyncio.subprocess.Process
    listener: asyncio.Task[None]  # reads pasta's messages, so that it never blocks on a full pipe

    async def close(self) -> None:
        """End pasta, and with it the namespace."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
        self.listener.cancel()


async def open_network() -> OpenNetwork:
    """Create a namespace that reaches only public addresses; EnvironmentProblem if that fails."""
    if sys.platform != "linux":
        raise EnvironmentProblem(f"{REFUSED}: it needs Linux.")
    is_root = choose_job_user("bubblewrap") is not None
    if os.geteuid() == 0 and not is_root:
        raise EnvironmentProblem(f"{REFUSED}: root has no CAP_SYS_ADMIN. Run as an ordinary user.")
    _require_parts()
    other: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if is_root else {}
    try:
        process = await asyncio.create_subprocess_exec(
            *(_program("pasta"), *OPTIONS, "--", "/bin/sh", "-c", HOLD, "sh", _filter()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": PATH},
            cwd="/",
            start_new_session=True,
            **other,
        )
    except (OSError, SubprocessError) as exc:
        raise EnvironmentProblem(f"{REFUSED}: pasta cannot be started ({exc}). {NEEDS}") from exc
    spaces = f"/proc/{await _read_process_id(process)}/ns"
    owner = () if is_root else (f"--user={spaces}/user", "--preserve-credentials")
    join = (_program("nsenter"), *owner, f"--net={spaces}/net", "--")
    return OpenNetwork(join, process, asyncio.create_task(_listen(process)))


async def require_network() -> None:
    """Raise EnvironmentProblem if `open_network` does not work here."""
    await (await open_network()).close()


async def _read_process_id(process: asyncio.subprocess.Process) -> int:
    """The id of the process that keeps the namespace open, once the filter is set."""
    assert process.stdout is not None and process.stderr is not None
    line = b""
    with suppress(TimeoutError):
        async with asyncio.timeout(READY_SECONDS):
            line = await process.stdout.readline()
    if line.strip().isdigit():
        return int(line)
    with suppress(ProcessLookupError):
        process.kill()
    stderr = b""
    with suppress(TimeoutError):  # a process that it started may keep the pipe open
        async with asyncio.timeout(END_SECONDS):
            stderr = await process.stderr.read()
    await process.wait()
    message = " ".join(stderr.decode("utf-8", "replace").split())[-SHOWN:]
    raise EnvironmentProblem(f"{REFUSED}: pasta says {(message or 'nothing')!r}. {NEEDS}")


async def _listen(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    while await process.stderr.read(1 << 16):
        pass


def _require_parts() -> None:
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if missing:
        raise EnvironmentProblem(f"--network open needs {' and '.join(missing)}: {INSTALL}.")
    if not TUN.exists():
        raise EnvironmentProblem(f"--network open needs {TUN}: `modprobe tun` as root.")
    if TUN.stat().st_mode & 0o006 != 0o006:
        raise EnvironmentProblem(
            f"--network open needs {TUN} to be open to all users, as udev creates it: "
            f"`chmod 666 {TUN}` as root."
        )


def _program(name: str) -> str:
    return shutil.which(name, path=PATH) or name


def _filter() -> str:
    """nftables rules for outgoing traffic.

    Routes would not be enough: a socket that is bound to a device bypasses them.
    """
    near = ", ".join(map(str, collapse_addresses([*PRIVATE, *_near()])))
    return f"""
table inet gta {{
  chain out {{
    type filter hook output priority 0; policy drop;
    oifname "lo" accept
    ip daddr {RESOLVER} udp dport 53 accept
    ip daddr != {{ {near} }} accept
    reject
  }}
}}
"""


def _near() -> Iterator[IPv4Network]:
    """The host's own addresses, and everything it reaches without the default route."""
    for line in Path("/proc/net/route").read_text(encoding="ascii").splitlines()[1:]:
        target, mask = (line.split()[column] for column in (1, 7))
        network = IPv4Network(f"{_address(target)}/{_address(mask)}")
        if network.prefixlen > 1:  # a VPN splits the default route in two
            yield network
    previous = ""
    for line in Path("/proc/net/fib_trie").read_text(encoding="ascii").splitlines():
        if line.strip() == "/32 host LOCAL":
            yield IPv4Network(previous.split()[-1])
        previous = line


def _address(word: str) -> str:
    """An address from the kernel's hexadecimal form, in the byte order of memory."""
    return socket.inet_ntoa(struct.pack("=I", int(word, 16)))
