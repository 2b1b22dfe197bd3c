"""Parsers of foreign files, sent into the jail and brought home as checked types."""

import json
import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Generic, TypeVar

from pydantic import JsonValue, TypeAdapter, ValidationError

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailLimits, SnippetResult
from gta_bench.content.needs import missing_modules, require
from gta_bench.errors import ConfinedError, ToolError, ToolUnavailable

DriverValue = TypeVar("DriverValue")

MOST_BYTES = 64 * MIB
IMPORT_FAILED = re.compile(
    r"The [\w ]{1,40} failed: ((?:ModuleNotFoundError|ImportError): .{1,300})"
)
ONE_ENVIRONMENT = (
    "The jail sees the environment of this Python only: install gta-bench and its extras into one "
    "environment, and not by a .pth file from another."
)

# The file itself lies in the jail's own memory disk, hence the room. A reply may hold pictures.
LIMITS = JailLimits(
    wall_seconds=28.0,
    cpu_seconds=28,
    file_bytes=2 * MOST_BYTES,
    disk_bytes=2 * MOST_BYTES,
    reply_bytes=128 * MIB,
)


@dataclass(frozen=True, slots=True)
class Driver(Generic[DriverValue]):
    """A module of `content.inside`: what it needs and what its reply becomes."""

    module: str
    label: str
    modules: tuple[str, ...]
    shape: TypeAdapter[DriverValue]
    limits: JailLimits = field(default=LIMITS)

    async def read(self, jail: Jail, data: bytes, **options: JsonValue) -> DriverValue:
        """What the parser made of the file; ToolError if it is refused, broken or too much."""
        require(missing_modules(*self.modules))
        check_size(data, label=self.label)
        result = await self._run(jail, {"file": data, "options.json": json.dumps(options).encode()})
        reply = result.value if isinstance(result.value, str) else ""
        if not reply.startswith("{"):
            raise ToolError(f"{self.label} refused the file: {reply}")
        try:
            return self.shape.validate_json(reply, strict=True)
        except ValidationError as exc:
            raise ToolError(f"{self.label} gave a reply that cannot be read.") from exc

    async def _run(self, jail: Jail, files: dict[str, bytes]) -> SnippetResult:
        """Run the parser; a package that the jail lacks is no fault of the file."""
        try:
            return await jail.run_snippet(
                "",
                driver=_source(self.module),
                files=files,
                limits=self.limits,
                label=self.label,
            )
        except (ConfinedError, ToolUnavailable) as exc:
            lacking = IMPORT_FAILED.match(
                exc.reason if isinstance(exc, ToolUnavailable) else str(exc)
            )
            if lacking is None:
                raise
            raise ToolUnavailable(
                f"{self.label} lacks a package inside the jail: {lacking[1]}", mend=ONE_ENVIRONMENT
            ) from exc


def check_size(data: bytes, *, label: str) -> None:
    """Refuse what is empty or too large before anybody looks into it."""
    if not data:
        raise ToolError("The file is empty.")
    if len(data) > MOST_BYTES:
        raise ToolError(f"The file has {len(data)} bytes; {label} reads at most {MOST_BYTES}.")


@cache
def _source(module: str) -> str:
    return (files("gta_bench.content.inside") / f"{module}.py").read_text(encoding="utf-8")
