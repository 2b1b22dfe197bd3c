"""Starts that fail: each is named in one line within ten seconds, and `--out` is untouched.

Those that need nothing special run in this process: an import of the engine takes most of a start.
`pytest -rP` prints the table of docs/measurements.md, where each is a process.
"""

import io
import resource
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path
from typing import NamedTuple

import pytest

from gta_bench.cli import main
from gta_bench.demo import ATOMIC, WORKFLOW
from tests.chat_server import ChatServer, chat_server
from tests.needs import needs

pytestmark = pytest.mark.slow

WITHIN = 10.0
STEP = f"run atomic --mode step --data {ATOMIC} --out runs/new"
LOOP = f"run atomic --mode end-to-end --data {ATOMIC} --out runs/new"
DELIVER = f"run workflow --agent silent --data {WORKFLOW} --out runs/new"
# Runs the command as where a package is not installed.
WITHOUT = "import sys; sys.modules[{0!r}] = None; from gta_bench.cli import main; main()"
PLAIN = "from gta_bench.cli import main; main()"
DEAD = "http://127.0.0.1:9/v1"
SETTINGS = """
[scoring]
similarity = "exact-or-half"
[models.good]
model = "openai-api/local/known"
base_url = "{url}"
key_env = "GTA_TEST_KEY_A"
[models.dead]
model = "openai-api/local/known"
base_url = "{dead}"
key_env = "GTA_TEST_KEY_A"
[models.stranger]
model = "openai-api/local/known"
base_url = "{url}"
key_env = "GTA_TEST_KEY_B"
[models.unknown]
model = "openai-api/local/nobody"
base_url = "{url}"
key_env = "GTA_TEST_KEY_A"
[models.lost]
model = "openai-api/local/known"
base_url = "{root}/api"
key_env = "GTA_TEST_KEY_A"
[models.keyless]
model = "openai-api/local/known"
base_url = "{url}"
key_env = "GTA_TEST_KEY_C"
"""


class Case(NamedTuple):
    """A start that fails: what was typed, what is said of what happened and of what to do."""

    name: str
    typed: str
    happened: str
    fix: str
    code: int = 3
    missing: str | None = None
    mount: tuple[str, ...] = ()


CASES = [
    Case(
        "dead port", f"{STEP} --model dead", "127.0.0.1:9/v1 cannot be reached", "Start the server"
    ),
    Case("wrong key", f"{STEP} --model stranger", "rejects the key", "export GTA_TEST_KEY_B=…"),
    Case("wrong model", f"{STEP} --model unknown", "`nobody` does not exist", "/v1/models` lists"),
    Case("wrong base path", f"{STEP} --model lost", "status 404", "ends in /v1"),
    Case("no key variable", f"{STEP} --model keyless", "KEY_C is not set", "export GTA_TEST_KEY_C"),
    Case("dead judge", f"{DELIVER} --judge dead", "Judge 'openai-api", "Start the server"),
    Case(
        "judge without pictures",
        f"{DELIVER} --judge good",
        "does not accept images",
        "pictures = false",
    ),
    Case(
        "disk full",
        f"{STEP} --agent gold --out small/run",
        "No space left on device",
        "Free some disk space",
        mount=("--size", "65536", "--tmpfs", "small"),
    ),
    Case(
        "unwritable --out",
        f"{STEP} --agent gold --out fixed/run",
        "fixed/run: ",
        "Choose a path that you can write to",
        mount=("--ro-bind", "fixed", "fixed"),
    ),
    Case("no openai", f"{STEP} --model good", "openai", "pip install", missing="openai"),
    Case(
        "no Ray",
        f"{STEP} --agent gold --cluster auto",
        "needs ray",
        "gta-bench[cluster]",
        missing="ray",
    ),
    Case(
        "no documents",
        f"{DELIVER} --judge scripted/honest",
        "pypdf",
        "gta-bench[workflow]",
        missing="pypdf",
    ),
    Case("bad gta.toml", f"--config torn.toml {STEP}", "is not valid TOML", "torn.toml", code=2),
    Case(
        "half-downloaded data",
        "run atomic --mode step --agent gold --data half --out runs/new",
        "is not valid JSON",
        "get the file again",
    ),
    Case(
        "dead tool server",
        f"{LOOP} --agent gold --tools http://127.0.0.1:9",
        "http://127.0.0.1:9 does not answer",
        "Start it",
    ),
    # beside the fifteen
    Case(
        "harness that never starts",
        f"{LOOP} --harness 'python3 gone.py {{task_file}}'",
        "can't open file",
        "Fix the command",
    ),
]


@pytest.fixture
def server(loopback: None) -> Iterator[ChatServer]:
    with chat_server() as server:
        server.key, server.model = "right", "known"
        yield server


@pytest.fixture
def folder(tmp_path: Path, server: ChatServer) -> Path:
    root = server.url.removesuffix("/v1")
    settings = SETTINGS.format(url=server.url, dead=DEAD, root=root)
    (tmp_path / "gta.toml").write_text(settings, encoding="utf-8")
    (tmp_path / "torn.toml").write_text("[judge", encoding="utf-8")
    for name in ("small", "fixed"):
        (tmp_path / name).mkdir()
    shutil.copytree(ATOMIC, tmp_path / "half")
    whole = (ATOMIC / "dataset.json").read_bytes()
    (tmp_path / "half" / "dataset.json").write_bytes(whole[: len(whole) // 2])
    return tmp_path


def command(case: Case, folder: Path) -> list[str]:
    program = PLAIN if case.missing is None else WITHOUT.format(case.missing)
    # The shell splits what was typed as a user's would.
    words = [sys.executable, "-c", program]
    line = ["bash", "-c", f'exec "$@" {case.typed}', "gta", *words]
    if not case.mount:
        return line
    mount = [str(folder / word) if (folder / word).is_dir() else word for word in case.mount]
    return ["bwrap", "--dev-bind", "/", "/", *mount, *line]


def start(case: Case, folder: Path) -> tuple[int, str]:
    """The exit code of the command in a process of its own, and what it said."""
    done = subprocess.run(
        command(case, folder), cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode, done.stderr


def start_here(case: Case, folder: Path) -> tuple[int, str]:
    """The same in this process, which has imported the engine already."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(said):
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["gta", *shlex.split(case.typed)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert isinstance(ended.value.code, int)
    return ended.value.code, said.getvalue()


def count_work() -> float:
    """Seconds of processors that this process and ended ones took."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


@pytest.fixture(scope="module")
def engine_start() -> float:
    """Seconds of processors for the engine's import alone, which every start takes."""
    before = count_work()
    imports = "import inspect_ai.model, openai"
    subprocess.run([sys.executable, "-c", imports], check=True)
    return count_work() - before


@needs("bwrap")
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_start_that_fails_is_named_within_ten_seconds_and_leaves_out_as_it_was(
    case: Case,
    folder: Path,
    server: ChatServer,
    engine_start: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.sees = case.name != "judge without pictures"
    keys = {"GTA_TEST_KEY_A": "right", "GTA_TEST_KEY_B": "wrong", "GTA_TOOLS_TOKEN": "x" * 32}
    for name, key in keys.items():
        monkeypatch.setenv(name, key)
    alone = case.mount or case.missing or case is CASES[0]
    before = sorted(folder.rglob("*"))
    begun, worked = time.monotonic(), count_work()
    code, said = (start if alone else start_here)(case, folder)
    seconds, worked = time.monotonic() - begun, count_work() - worked
    assert code == case.code, said
    *notices, line = said.splitlines()
    # On a busy machine, a server here may need longer than a user is left without a word.
    assert all("has not answered after" in notice for notice in notices), said
    assert line.startswith("gta: ")
    assert case.happened in line and case.fix in line, line
    assert sorted(folder.rglob("*")) == before
    print(f"| {case.name} | {seconds:.1f} | {worked:.1f} | {line.removeprefix('gta: ')} |")
    # On a busy machine the clock says how busy it is; what is waited for is bounded by the code.
    assert worked < max(WITHIN, 6 * engine_start)


def test_the_table_has_fifteen_starts() -> None:
    assert len({case.name for case in CASES[:15]}) == 15
