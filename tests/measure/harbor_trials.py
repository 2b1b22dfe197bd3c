"""Trials of Harbor's own package in bubblewrap instead of Docker; its interpreter runs this file.

The arguments are the folder of the results and then `AGENT=FOLDER` for each trial: one of Harbor's
agents (`oracle` applies the solution, `nop` does nothing) and a task. Printed are, as JSON, the
rewards of each trial, or the name of the exception and its message.

The environment follows an exported Dockerfile: it copies files, and installs the packages besides
gta-bench from its wheels. Everything else of an image (gta-bench, its programs) is this machine's.
GTA_PYTHON names the interpreter that has gta-bench, GTA_SOURCE the folder to import it from.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial

OWN = ("workspace", "tests", "logs", "solution", "packages", "programs")
AT_ONCE = 5
# A job in our jail mounts its own /proc, which needs the whole one here.
OUTER = ("--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc", "--cap-add", "ALL")


class LocalEnvironment(BaseEnvironment):  # type: ignore[misc, unused-ignore]
    """The files of this machine, read-only, with folders of its own for what an image adds."""

    @staticmethod
    def type() -> str:
        return "local"

    def _validate_definition(self) -> None:
        assert (self.environment_dir / "Dockerfile").is_file()

    async def start(self, force_build: bool) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="gta-harbor-"))
        for name in OWN:
            (self.root / name).mkdir()
        for name in ("agent", "artifacts", "verifier"):
            (self.root / "logs" / name).mkdir()
        for name, module in (("gta", "-m gta_bench.cli"), ("python3", "")):
            program = self.root / "programs" / name
            program.write_text(f'#!/bin/sh\nexec "{os.environ["GTA_PYTHON"]}" {module} "$@"\n')
            program.chmod(0o755)
        for line in (self.environment_dir / "Dockerfile").read_text().splitlines():
            await self._follow(line.split())

    async def _follow(self, words: list[str]) -> None:
        match words:
            case ["COPY", source, target] if target != "/wheels":
                await self.upload_dir(self.environment_dir / source, target)
            case ["RUN", "pip", "install", *options]:
                named = [one.strip('"') for one in options if one.startswith('"')]
                others = [one for one in named if not one.startswith("gta-bench")]
                if others:
                    wheels = self.environment_dir / "wheels"
                    places = ["--find-links", wheels, "--target", self.root / "packages"]
                    pip = [os.environ["GTA_PYTHON"], "-m", "pip", "install", "--quiet"]
                    command = [*pip, "--no-deps", "--no-index", *places, *others]
                    subprocess.run(command, check=True)
            case ["RUN", "mkdir", "-p", *folders]:
                for folder in folders:
                    self._find(folder).mkdir(parents=True, exist_ok=True)

    async def stop(self, delete: bool) -> None:
        shutil.rmtree(self.root)

    def _find(self, path: str) -> Path:
        """Where a path of the environment is on this machine."""
        parts = Path(path).parts[1:]
        assert parts[0] in OWN, path
        return self.root.joinpath(*parts)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        shutil.copy(source_path, self._find(target_path))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self._find(target_dir), dirs_exist_ok=True, symlinks=True)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        shutil.copy(self._find(source_path), target_path, follow_symlinks=False)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(self._find(source_dir), target_dir, dirs_exist_ok=True, symlinks=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        given = {
            "HOME": os.environ["HOME"],
            "PATH": f"/programs:{os.environ['PATH']}",
            "PYTHONPATH": f"/packages:{os.environ['GTA_SOURCE']}",
            **(self._merge_env(env) or {}),
        }
        inside = ["--chdir", cwd or "/workspace", "sh", "-c", command]
        process = await asyncio.create_subprocess_exec(
            *("bwrap", *self._walls(), *inside),
            env=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        async with asyncio.timeout(timeout_sec):
            stdout, stderr = await process.communicate()
        return ExecResult(
            stdout=stdout.decode(), stderr=stderr.decode(), return_code=process.returncode
        )

    def _walls(self) -> list[str]:
        found = ["--tmpfs", "/"]
        for place in Path("/").iterdir():
            if place.is_symlink():
                found += ["--symlink", str(place.readlink()), str(place)]
            elif place.is_dir() and place.name not in (*OWN, "dev", "proc", "tmp"):
                found += ["--ro-bind", str(place), str(place)]
        found += [*OUTER, "--tmpfs", "/tmp"]
        for kept in (os.environ["GTA_PYTHON"], os.environ["GTA_SOURCE"]):
            if kept.startswith("/tmp/"):
                folder = str(Path(kept).parent.parent)
                found += ["--ro-bind", folder, folder]
        for name in OWN:
            found += ["--bind", str(self.root / name), f"/{name}"]
        return found


async def run_trial(results: Path, agent: str, folder: str) -> object:
    config = TrialConfig(
        task=TaskConfig(path=Path(folder)),
        trials_dir=results,
        agent=AgentConfig(name=agent),
        environment=EnvironmentConfig(import_path="harbor_trials:LocalEnvironment"),
    )
    done = await (await Trial.create(config)).run()
    if done.verifier_result is not None:
        return done.verifier_result.rewards
    return [done.exception_info.exception_type, done.exception_info.exception_message]


async def run_trials(results: Path, trials: list[str]) -> list[object]:
    slots = asyncio.Semaphore(AT_ONCE)

    async def run_one(trial: str) -> object:
        agent, _, folder = trial.partition("=")
        async with slots:
            return await run_trial(results, agent, folder)

    return await asyncio.gather(*map(run_one, trials))


if __name__ == "__main__":
    made = asyncio.run(run_trials(Path(sys.argv[1]), sys.argv[2:]))
    sys.stdout.write(json.dumps(made))
