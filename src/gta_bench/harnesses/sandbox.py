"""A cell as Inspect's sandbox: its model bridge and the agents of inspect_swe work in it."""

from typing import Literal, overload

from inspect_ai.util import (
    ExecResult,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    SandboxUnavailableError,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from typing_extensions import override

from gta_bench.confine.limits import MIB
from gta_bench.harnesses.cell import Cell
from gta_bench.harnesses.cell_plan import HOME, WORKSPACE

CELL = "gta_cell"
EXEC_BYTES = 10 * MIB
READ_BYTES = 100 * MIB
WRITE = 'mkdir -p "$(dirname "$1")" && cat > "$1"'
MISSING = 3
READ = f'[ -e "$1" ] || exit {MISSING}; cat "$1"'


@sandboxenv(name=CELL)
class CellSandbox(SandboxEnvironment):
    """The sandbox of a sample; its solver opens the cell and closes it."""

    cell: Cell | None = None

    @override
    @classmethod
    async def sample_init(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        metadata: dict[str, str],
    ) -> dict[str, SandboxEnvironment]:
        return {"default": cls()}

    @override
    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        """Nothing is left: the cell ended with its solver."""

    @override
    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        # Inspect looks for a root before the cell is open, and there is none. Installers of
        # inspect_swe ask for root later; what they may write is the harness's own.
        known = (None, "harness") if self.cell is None else (None, "harness", "root")
        if user not in known:
            raise SandboxUserUnsupportedError(f"A cell has one user, and {user!r} is not it.")
        ran = await self._cell().run(
            cmd,
            stdin=_bytes(input or b""),
            cwd=cwd if cwd and cwd.startswith("/") else f"{WORKSPACE}/{cwd or ''}",
            environment=env,
            seconds=timeout,
            output_bytes=EXEC_BYTES,
        )
        if ran.stop == "timeout":
            raise TimeoutError(f"{cmd[0]} took longer than {timeout} seconds.")
        out, err = (text.decode("utf-8", "replace") for text in (ran.stdout, ran.stderr))
        return ExecResult(ran.status == 0, ran.status, out, err)

    @override
    async def write_file(self, file: str, contents: str | bytes) -> None:
        ran = await self._cell().run(["sh", "-c", WRITE, "sh", file], stdin=_bytes(contents))
        if ran.status != 0:
            raise PermissionError(ran.stderr.decode("utf-8", "replace").strip())

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    @override
    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        ran = await self._cell().run(["sh", "-c", READ, "sh", file], output_bytes=READ_BYTES)
        if ran.status == MISSING:
            raise FileNotFoundError(file)
        if ran.status != 0:
            raise PermissionError(ran.stderr.decode("utf-8", "replace").strip())
        return ran.stdout.decode("utf-8") if text else ran.stdout

    @override
    def default_polling_interval(self) -> float:
        return 0.2

    def _cell(self) -> Cell:
        if self.cell is None:
            raise SandboxUnavailableError(f"No cell is open; {HOME} does not exist yet.")
        return self.cell


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data
