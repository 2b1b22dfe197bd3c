"""The state of a tool server: its files, or what a command prints about them, kept by content.

The state is in the server's own folder, which no system can write to: its deliverables are
elsewhere.
"""

import asyncio
import errno
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from gta_bench.confine.commands import locate
from gta_bench.confine.files import read_below
from gta_bench.confine.limits import MIB
from gta_bench.confine.service import ServiceProcess
from gta_bench.errors import ConfigError, ToolServerFailure
from gta_bench.records.files import Deliverable
from gta_bench.records.tool_servers import StateSnapshot
from gta_bench.redaction import current_redactor
from gta_bench.serving.tool_servers import list_readable
from gta_bench.settings import ToolServerSettings, expand_variables

MOST_BYTES: Final = 64 * MIB
MOST_FILES: Final = 2000
# The file under which checks find what `state_command` printed.
PRINTED: Final = "stdout"
KeepFile = Callable[[str, bytes], Deliverable]


class StateTooLarge(ToolServerFailure):
    """A state above the limits; `problem` says which one."""

    def __init__(self, message: str, problem: str) -> None:
        super().__init__(message)
        self.problem = problem


def has_state(server: ToolServerSettings) -> bool:
    """Whether the settings declare a state."""
    return server.state is not None or bool(server.state_command)


async def take_snapshot(
    name: str, server: ToolServerSettings, service: ServiceProcess, keep: KeepFile
) -> StateSnapshot:
    """Keep the state of a server as it is now. Raises ToolServerFailure if it cannot be read."""
    if server.state_command:
        printed = await _print_state(name, server, service)
        return StateSnapshot(files=(await asyncio.to_thread(keep, PRINTED, printed),))
    try:
        return await asyncio.to_thread(_keep_files, service, server.state or ".", keep)
    except OSError as exc:
        said = exc.strerror or type(exc).__name__
        failure = _failure(name, said)
        raise (StateTooLarge(str(failure), said) if exc.errno == errno.EFBIG else failure) from exc


def _keep_files(service: ServiceProcess, path: str, keep: KeepFile) -> StateSnapshot:
    found: list[Deliverable] = []
    strays: list[str] = []
    for name, data in read_below(service.work, path, most_bytes=MOST_BYTES, most_files=MOST_FILES):
        if data is None:
            strays.append(current_redactor().filename(name))
        else:
            found.append(keep(name, data))
    found.sort(key=lambda file: file.path)
    return StateSnapshot(files=tuple(found), strays=tuple(sorted(strays)))


async def _print_state(name: str, server: ToolServerSettings, service: ServiceProcess) -> bytes:
    """Run the command in a cell that has the folder of the server; return what it prints."""
    where = f"[tool_servers.{name}]"
    words = [expand_variables(word, where) for word in server.state_command]
    argv = locate(words)
    if argv is None:
        raise ConfigError(
            f"{where}: program {words[0]!r} of `state_command` not found; install it."
        )
    plan = replace(
        service.plan, argv=argv, readable=list_readable(server, argv), files="none", network="none"
    )
    seconds = server.call_seconds
    async with ServiceProcess(plan, service) as command:
        try:
            async with asyncio.timeout(seconds):
                printed = await command.read_all(MOST_BYTES)
        except TimeoutError as exc:
            raise _failure(name, f"`state_command` took more than {seconds:g} seconds") from exc
        if printed is None:
            said = f"`state_command` printed more than {MOST_BYTES} bytes"
            raise StateTooLarge(str(_failure(name, said)), said)
        if not command.succeeded:
            raise _failure(name, f"`state_command` failed, {await command.describe_end()}")
    return printed


def _failure(name: str, problem: str) -> ToolServerFailure:
    said = current_redactor().text(f"The state of tool server {name!r} cannot be read: {problem}. ")
    fix = f"Correct `state` or `state_command` of [tool_servers.{name}], or the server."
    return ToolServerFailure(said + fix)
