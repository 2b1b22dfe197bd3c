"""A machine, a neighbor and an outside as network namespaces; who is reached from where, as JSON.

Started by root in namespaces of its own (`unshare --net --mount`), it becomes that machine. What it
prints is what PROBE found on the machine itself, and in a cell and a tool server with the open
network, which a user of the machine opens (`python -m tests.harnesses.open_world cell`).
"""

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gta_bench.harnesses.cell import Cell
from gta_bench.harnesses.choice import Plan
from tests.confine.users import run_as
from tests.served.foreign import bad, call_once

PORT = 7777
MACHINE, NEIGHBOR = "198.51.100.1", "198.51.100.2"
PRIVATE, METADATA, OUTSIDE = "10.9.8.7", "169.254.169.254", "203.0.113.7"
NAME = "outside.test"
ABSTRACT = "gta-open-world"

PROBE = f"""
import json, socket, struct
def tcp(address, device=None):
    with socket.socket() as s:
        s.settimeout(2)
        if device:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        s.connect((address, {PORT}))
        return s.recv(9)
def udp(address, device=None):
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        s.settimeout(2)
        index = socket.if_nametoindex(device) if device else 0
        options = [(socket.IPPROTO_IP, 8, struct.pack("=I4s4s", index, bytes(4), bytes(4)))]
        s.sendmsg([b"?"], options if device else [], 0, (address, {PORT}))
        return s.recv(9)
def abstract():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\\0{ABSTRACT}")
        return s.recv(9)
(device,) = (name for _, name in socket.if_nameindex() if name not in ("lo", "sit0"))
tries = {{"abstract": abstract, "name": lambda: tcp("{NAME}")}}
places = {{"loopback": "127.0.0.1", "machine": "{MACHINE}", "neighbor": "{NEIGHBOR}"}}
places |= {{"private": "{PRIVATE}", "metadata": "{METADATA}", "outside": "{OUTSIDE}"}}
for place, address in places.items():
    for way in (tcp, udp):
        tries[f"{{place}} {{way.__name__}}"] = lambda a=address, w=way: w(a)
        if place in ("neighbor", "private", "metadata"):
            tries[f"{{place}} {{way.__name__}} by device"] = lambda a=address, w=way: w(a, device)
found = {{}}
for name, attempt in tries.items():
    try:
        found[name] = attempt().decode()
    except OSError as exc:
        found[name] = ""
print(json.dumps(found))
"""


def serve() -> None:
    """Say hello by TCP and UDP at every address of this namespace, and answer for names."""
    hello = socket.create_server(("0.0.0.0", PORT))
    threading.Thread(target=_welcome, args=[hello], daemon=True).start()
    for port in (PORT, 53):
        box = socket.socket(type=socket.SOCK_DGRAM)
        # An answer has to come from the address that was asked.
        box.setsockopt(socket.IPPROTO_IP, 8, 1)
        box.bind(("0.0.0.0", port))
        threading.Thread(target=_reply, args=[box, port], daemon=True).start()


def _welcome(server: socket.socket) -> None:
    while True:
        taken, _ = server.accept()
        with taken:
            taken.sendall(b"hello")


def _reply(box: socket.socket, port: int) -> None:
    while True:
        data, options, _, asker = box.recvmsg(600, 100)
        reply = b"hello" if port == PORT else _resolved(data)
        box.sendmsg(
            [reply], [(*options[0][:2], b"\0\0\0\0" + options[0][2][4:8] + b"\0\0\0\0")], 0, asker
        )


def _resolved(query: bytes) -> bytes:
    """OUTSIDE for every name that is asked for as an IPv4 address, nothing for others."""
    end = query.index(b"\0", 12) + 5
    is_a = query[end - 4 : end - 2] == b"\0\1"
    head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_a else b"\0\0") + b"\0\0\0\0"
    answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(OUTSIDE)
    return head + query[12:end] + (answer if is_a else b"")


@contextmanager
def world() -> Iterator[None]:
    """What is around this machine."""
    names = Path(tempfile.mkstemp()[1])
    names.write_text(f"nameserver {PRIVATE}\n")
    names.chmod(0o644)
    far = subprocess.Popen(
        ["unshare", "--net", sys.executable, "-m", __spec__.name, "far"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert far.stdout is not None
        assert far.stdout.readline() == b"ready\n"
        there = f"nsenter --net=/proc/{far.pid}/ns/net ip"
        for line in (
            f"mount --bind {names} /etc/resolv.conf",
            "ip link set lo up",
            f"ip link add near type veth peer name far netns {far.pid}",
            f"ip address add {MACHINE}/24 dev near",
            "ip link set near up",
            f"{there} link set lo up",
            f"{there} address add {NEIGHBOR}/24 dev far",
            f"{there} link set far up",
            *(f"{there} address add {other} dev lo" for other in (PRIVATE, METADATA, OUTSIDE)),
            f"ip route add default via {NEIGHBOR}",
        ):
            subprocess.run(line.split(), check=True)
        serve()
        yield
    finally:
        far.kill()
        far.wait()
        names.unlink()


async def from_cell() -> str:
    """What PROBE finds in a cell."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("inputs", "outputs"):
            (Path(folder) / name).mkdir()
        plan = Plan(
            inputs=Path(folder) / "inputs", outputs=Path(folder) / "outputs", network="open"
        )
        async with Cell(plan) as cell:
            ran = await cell.run(["python3", "-c", PROBE])
    return ran.stdout.decode() or ran.stderr.decode()


def from_server() -> str:
    """What PROBE finds in a tool server."""
    with tempfile.TemporaryDirectory() as folder:
        return call_once(bad("runs", PROBE, network="open"), Path(folder) / "space", "work").text


def main(part: str) -> None:
    if part == "far":
        serve()
        print("ready", flush=True)
        sys.stdin.read()
    elif part == "cell":
        found = {"cell": asyncio.run(from_cell()), "server": from_server()}
        sys.stdout.write(json.dumps({place: json.loads(said) for place, said in found.items()}))
    else:
        with world(), socket.socket(socket.AF_UNIX) as abstract:
            abstract.bind(f"\0{ABSTRACT}")
            abstract.listen()
            threading.Thread(target=_welcome, args=[abstract], daemon=True).start()
            probe = [sys.executable, "-c", PROBE]
            machine = subprocess.run(probe, capture_output=True, text=True, check=True).stdout
            ran = run_as(part, ["-m", __spec__.name, "cell"])
            assert ran is not None, "no Python for that user"
            assert ran.returncode == 0, ran.stderr
            print(json.dumps({"machine": json.loads(machine), **json.loads(ran.stdout)}))


if __name__ == "__main__":
    main(sys.argv[1])
