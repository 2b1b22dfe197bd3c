"""A harness that does what its task names; runs inside a cell, with the standard library alone."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

task = json.loads(Path(sys.argv[1]).read_text())
workspace, other = Path(sys.argv[2]), Path(f"/{sys.argv[3]}")


def tool(name: str, **arguments: str) -> str:
    body = {"name": name, "arguments": arguments}
    request = urllib.request.Request(
        os.environ["GTA_MCP_URL"],
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": body}).encode(),
        {
            "Authorization": f"Bearer {os.environ['GTA_MCP_TOKEN']}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        },
    )
    with urllib.request.urlopen(request) as reply:
        return str(json.load(reply)["result"]["content"][0]["text"])


def good() -> None:
    (workspace / "outputs" / "deep").mkdir()
    (workspace / "outputs" / "deep" / "note.txt").write_text("below")
    (workspace / "outputs" / "answer.md").write_text(tool("Calculator", expression="6*7"))
    tool("Nothing")
    print("It is", tool("Calculator", expression="1+1"))


def endless() -> None:
    (workspace / "outputs" / "begun.txt").write_text("half")
    while True:
        time.sleep(1)


def daemons() -> None:
    for _ in range(5):
        subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(9999)  # gta-daemon"],
            start_new_session=True,
        )
    print("done")


def disk() -> None:
    for number in range(100):
        (workspace / "outputs" / f"{number}.bin").write_bytes(os.urandom(1 << 20) * 4)


def noise() -> None:
    for _ in range(1 << 10):
        sys.stdout.write("x" * (1 << 20))


def vandal() -> None:
    for folder in ("inputs", "outputs"):
        try:
            (workspace / folder).rename(workspace / "gone")
        except OSError as exc:
            print(folder, exc.strerror)
    for file in (workspace / "inputs").iterdir():
        try:
            file.unlink()
        except OSError as exc:
            print(file.name, exc.strerror)
    (workspace / "outputs" / "passwd").symlink_to("/etc/passwd")
    (workspace / "outputs" / "loop").symlink_to("..")
    print(tool("Calculator", expression="2+2"))


def network() -> None:
    for host in ("192.0.2.1", "10.0.0.1"):
        try:
            socket.create_connection((host, 80), 2).close()
        except OSError as exc:
            print(exc.strerror)
    names = Path("/proc/net/dev").read_text().split("\n")[2:]
    print([name.split(":")[0].strip() for name in names if name])


def neighbor() -> None:
    print(other.exists(), other.parent.exists())
    seen = [path.name for path in Path("/proc").iterdir() if path.name.isdecimal()]
    print(len(seen) < 10)


def suicide() -> None:
    os.kill(-1, 9)


def wrong() -> None:
    sys.exit("I give up.")


def banner() -> None:
    print("This is agent version 2.4.6.")
    (workspace / "final.txt").write_text("\n")


globals()[task["request"]]()
