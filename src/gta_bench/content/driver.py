"""Parsers of untrusted files: run in the jail, their replies validated as types."""

import json
import re
from collections.abc import Mapping
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
    "The jail sees only the environment of this Python: install gta-bench and its extras into one "
    "environment, not through a .pth file from another."
)

# The disk limit includes the file itself. A reply may contain pictures.
LIMITS = JailLimits(
    wall_seconds=28.0,
    cpu_seconds=28,
    file_bytes=2 * MOST_BYTES,
    disk_bytes=2 * MOST_BYTES,
    reply_bytes=128 * MIB,
)


@dataclass(frozen=True, slots=True)
class Driver(Generic[DriverValue]):
    """A module of `content.inside`, the packages that it needs, and the type of its reply."""

    module: str
    label: str
    modules: tuple[str, ...]
    shape: TypeAdapter[DriverValue]
    limits: JailLimits = field(default=LIMITS)

    async def read(
        self,
        jail: Jail,
        data: bytes,
        beside: Mapping[str, bytes] | None = None,
        **options: JsonValue,
    ) -> DriverValue:
        """Return what the parser read. Raises ToolError if it refuses the file or fails.

        `beside` are further files that belong to it.
        """
        require(missing_modules(*self.modules))
        check_size(data, label=self.label)
        given = {"file": data, "options.json": json.dumps(options).encode()}
        result = await self._run(jail, {**(beside or {}), **given})
        reply = result.value if isinstance(result.value, str) else ""
        if not reply.startswith("{"):
            raise ToolError(f"{self.label} refused the file: {reply}")
        try:
            return self.shape.validate_json(reply, strict=True)
        except ValidationError as exc:
            raise ToolError(f"{self.label} returned a reply that cannot be read.") from exc

    async def _run(self, jail: Jail, files: dict[str, bytes]) -> SnippetResult:
        """Run the parser. A package missing in the jail is not an error of the file."""
        try:
            return await jail.run_snippet(
                "",
                driver=read_inside(f"{self.module}.py"),
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
                f"{self.label} needs a package that the jail does not have: {lacking[1]}",
                fix=ONE_ENVIRONMENT,
            ) from exc


def check_size(data: bytes, *, label: str) -> None:
    """Raise ToolError if the file is empty or too large to parse."""
    if not data:
        raise ToolError("The file is empty.")
    if len(data) > MOST_BYTES:
        raise ToolError(f"The file has {len(data)} bytes; {label} reads at most {MOST_BYTES}.")


@cache
def read_inside(name: str) -> str:
    """Return a file of `content.inside`, which is sent into the jail as text."""
    return (files("gta_bench.content.inside") / name).read_text(encoding="utf-8")
