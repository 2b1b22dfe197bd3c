"""First process of a cell: forwards loopback ports to sockets, and runs commands for the host.

The host sends frames over the socket that is standard input here, which no command inherits. A
frame is a length and a JSON text, with bytes as base64.
"""

import asyncio
import base64
import ctypes
import json
import os
import resource
import signal
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

CHUNK = 1 << 16
TICK = 0.02
LAST_OUTPUT = 1.0  # seconds for pipes that a command's children may keep open after its end
LENGTH = struct.Struct("!I")
PR_SET_DUMPABLE = 4


class _Cell:
    """The running commands, and the connection to the host."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._running: dict[int, asyncio.subprocess.Process] = {}
        self._killed: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, message: dict[str, Any]) -> None:
        """Send a frame to the host."""
        text = json.dumps(message).encode()
        self._writer.write(LENGTH.pack(len(text)) + text)

    async def obey(self) -> None:
        """Carry out orders until the host closes the connection."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
                order = json.loads(await self._reader.readexactly(length))
                if order["do"] == "run":
                    task = asyncio.create_task(self._run(order))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                elif order["id"] in self._running:
                    _kill(self._running[order["id"]])
                else:  # the command is being started, or has ended
                    self._killed.add(order["id"])

    async def _run(self, order: dict[str, Any]) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *order["argv"],
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=order["cwd"],
                env=order["environment"],
                start_new_session=True,
            )
        except OSError as exc:
            said = f"{exc.filename or order['argv'][0]}: {exc.strerror}\n".encode()
            self.send({"id": order["id"], **_make_reply(127, b"", said, None)})
            return
        self._running[order["id"]] = process
        if order["id"] in self._killed:
            _kill(process)
        try:
            self.send({"id": order["id"], **await _watch(process, order)})
        finally:
            del self._running[order["id"]]


async def _watch(process: asyncio.subprocess.Process, order: dict[str, Any]) -> dict[str, Any]:
    assert process.stdout and process.stderr
    full = asyncio.Event()
    streams = bytearray(), bytearray()
    pipes = [
        asyncio.create_task(_read(process.stdout, streams[0], order["output_bytes"], full)),
        asyncio.create_task(_read(process.stderr, streams[1], order["output_bytes"], full)),
        asyncio.create_task(_feed(process, base64.b64decode(order["stdin"]))),
    ]
    end, overflow = asyncio.create_task(_wait_for_exit(process)), asyncio.create_task(full.wait())
    await asyncio.wait(
        (end, overflow), timeout=order["seconds"], return_when=asyncio.FIRST_COMPLETED
    )
    stopped = None
    if not end.done():
        stopped = "output" if full.is_set() else "timeout"
        _kill(process)
        await end
    await asyncio.wait(pipes, timeout=LAST_OUTPUT)
    for task in (*pipes, overflow):
        task.cancel()
    if full.is_set():
        stopped = "output"
    return _make_reply(end.result(), bytes(streams[0]), bytes(streams[1]), stopped)


async def _wait_for_exit(process: asyncio.subprocess.Process) -> int:
    """Return the command's status; asyncio would also wait for daemons that keep its pipes."""
    while process.returncode is None:
        await asyncio.sleep(TICK)
    return process.returncode


def _make_reply(status: int, stdout: bytes, stderr: bytes, stopped: str | None) -> dict[str, Any]:
    return {
        "status": status,
        "stdout": base64.b64encode(stdout).decode(),
        "stderr": base64.b64encode(stderr).decode(),
        "stopped": stopped,
    }


async def _read(
    stream: asyncio.StreamReader, into: bytearray, most: int, full: asyncio.Event
) -> None:
    while data := await stream.read(CHUNK):
        room = most - len(into)
        into += data[:room]
        if len(data) > room:
            full.set()
            return


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin
    with suppress(ConnectionError):
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


async def _relay(path: str) -> int:
    """Return a loopback port whose connections are forwarded to a socket."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_unix_connection(path)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))

    server = await asyncio.start_server(forward, "127.0.0.1", 0)
    _servers.append(server)
    port: int = server.sockets[0].getsockname()[1]
    return port


_servers: list[asyncio.Server] = []  # a server without references would be closed


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.close()


async def main(orders: dict[str, Any]) -> None:
    """Report to the host which port belongs to which socket, then carry out its orders."""
    # Limits data, not address space: runtimes reserve far more than they use.
    resource.setrlimit(resource.RLIMIT_DATA, (orders["data_bytes"], orders["data_bytes"]))
    # Commands have the same user, and could otherwise take over this process through its memory.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    line = socket.socket(fileno=os.dup(0))
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    cell = _Cell(*await asyncio.open_unix_connection(sock=line))
    ports = {path: await _relay(path) for path in orders["sockets"]}
    cell.send({"ready": str(Path("/proc/self/ns/pid").readlink()), "ports": ports})
    await cell.obey()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
