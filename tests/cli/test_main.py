"""The command as a process: its exit codes, its one-line failures, its start."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("inspect_ai", "ray", "torch", "pandas", "pydantic", "httpx", "rich")


def gta(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gta_bench.cli", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_the_package_itself_is_the_command(tmp_path: Path) -> None:
    """Where pip's folder of scripts is not on PATH, `python -m gta_bench` is what works."""
    command = [sys.executable, "-m", "gta_bench", "dat"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    script = gta("dat", cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", script.stderr)
    assert "See `gta --help`" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--version"], 0, ""),
        (["dat"], 2, "No such command 'dat'"),
        (["data", "stats", "cities"], 2, "'cities' is not one of 'atomic', 'workflow'"),
        (["--config", "gone.toml", "doctor"], 2, "'gone.toml' does not exist"),
        (
            ["data", "stats", "atomic"],
            3,
            "gta: data/gta_atomic/dataset.json: no such file. Download it with `gta",
        ),
        (["data", "fetch", "atomic", "--data", "/proc/gta/data"], 3, "gta: /proc/gta"),
    ],
)
def test_a_mistake_ends_in_its_exit_code_and_without_a_traceback(
    tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    (tmp_path / "gta.toml").write_text('[data]\ngithub = "http://127.0.0.1:9"\n', encoding="utf-8")
    result = gta(*arguments, cwd=tmp_path)
    assert (result.returncode, "Traceback" in result.stderr) == (code, False)
    assert said in result.stderr


def test_a_wrong_settings_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "gta.toml").write_text("[data]\natomic = 3\n", encoding="utf-8")
    result = gta("data", "stats", "atomic", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr == (
        "gta: gta.toml: `data.atomic`: input should be a valid string, got 3 (int).\n"
    )


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom gta_bench.cli import app\napp(['--help'], standalone_mode=False)\n"
        f"print('loaded:', *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "loaded:"


@pytest.mark.measure
def test_help_starts_in_at_most_three_times_the_import_of_click(tmp_path: Path) -> None:
    import time

    def seconds(*command: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, check=True)
        return time.perf_counter() - start

    click_only, whole = zip(
        *[
            (seconds("-c", "import click"), seconds("-m", "gta_bench.cli", "--help"))
            for _ in range(15)
        ],
        strict=True,
    )
    ratio = min(whole) / min(click_only)
    print(f"gta --help / import click: {ratio:.2f}")
    assert ratio <= 3


@pytest.mark.parametrize("arguments", ["--help", "tools list"])
def test_a_reader_that_stops_ends_the_command_quietly(tmp_path: Path, arguments: str) -> None:
    """`gta report RUN | head` ended with exit code 1, as a run that is not complete does."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "gta_bench.cli", *arguments.split()]
    with os.fdopen(writing, "wb") as pipe:
        ran = subprocess.run(
            command, cwd=tmp_path, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (ran.returncode, ran.stderr) == (128 + signal.SIGPIPE, "")


def test_a_broken_pipe_elsewhere_is_told(tmp_path: Path) -> None:
    program = (
        "import click, gta_bench.cli as cli\n"
        "@click.command()\n"
        "def broken() -> None:\n"
        "    raise BrokenPipeError(32, 'Broken pipe')\n"
        "cli.COMMANDS['broken'] = ('__main__:broken', '')\n"
        "cli.main()"
    )
    command = [sys.executable, "-c", program, "broken"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 3
    assert ran.stderr.startswith(
        "gta: A program or connection that this command was writing to has closed"
    )
