"""The worker process: runs the local models, one job at a time, told through its pipes.

A job is a line of JSON and the bytes it announces; so is the answer. Models stay loaded between
jobs. The process ends when its input does, so none outlives the program that started it.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import BinaryIO, NamedTuple

from pydantic import JsonValue

from gta_bench.errors import ToolError


class JobOutcome(NamedTuple):
    """What a job came to: a value, and bytes if it made a file."""

    value: JsonValue
    data: bytes = b""


_Job = Callable[[bytes, Mapping[str, JsonValue]], JobOutcome]

JOBS: Mapping[str, str] = {
    "ocr": "gta_bench.tools.backends.local_ocr:job",
    "detect": "gta_bench.tools.backends.local_detector:job",
    "stylize": "gta_bench.tools.backends.local_style:job",
}
# Below the event loop and the jailed programs, which answer in milliseconds.
NICENESS = 5


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Do jobs until the input ends."""
    while line := requests.readline():
        header = json.loads(line)
        data = requests.read(header["bytes"])
        reply, made = _do(header["job"], data, header["options"])
        replies.write(json.dumps({**reply, "bytes": len(made)}).encode() + b"\n" + made)
        replies.flush()


def _do(
    name: str, data: bytes, options: Mapping[str, JsonValue]
) -> tuple[dict[str, JsonValue], bytes]:
    module, _, attribute = JOBS[name].partition(":")
    job: _Job = getattr(import_module(module), attribute)
    try:
        outcome = job(data, options)
    except ToolError as exc:
        return {"error": str(exc)}, b""
    return {"value": outcome.value}, outcome.data


def main() -> None:
    """Serve on the process's own pipes; whatever a library prints goes to stderr."""
    os.nice(NICENESS)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
