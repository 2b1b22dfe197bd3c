import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from gta_bench.errors import EnvironmentProblem, GtaError
from gta_bench.running.backends import backend as backends
from gta_bench.running.backends.backend import INLINE, PATIENCE, Processes, open_backend
from gta_bench.running.leases import Items
from gta_bench.runs import store
from tests.conftest import REPOSITORY
from tests.running.backends import works


@pytest.fixture
def two() -> Iterator[Processes]:
    backend = Processes(2)
    yield backend
    backend.close()


def items(folder: Path, *names: str) -> Items[tuple[str, str]]:
    return Items([(str(folder), name) for name in names])


def test_the_backend_is_this_process_unless_more_are_asked_for() -> None:
    with open_backend(None, None) as backend:
        assert backend is INLINE
    with open_backend(3, None) as backend:
        assert (backend.name, backend.places) == ("processes", 3)


def test_all_items_are_worked_on_in_as_many_processes_as_may_run(
    two: Processes, tmp_path: Path
) -> None:
    ticks: list[int] = []
    two.run(works.note, items(tmp_path, *"abcdef"), at_once=2, tick=lambda: ticks.append(1))
    by = {file.read_text(encoding="utf-8") for file in tmp_path.iterdir()}
    assert len(list(tmp_path.iterdir())) == 6
    assert 1 <= len(by) <= 2
    assert str(os.getpid()) not in by
    assert ticks


@pytest.mark.parametrize(
    ("name", "message", "code"),
    [
        ("bad", r"^This part is bad\.$", 2),
        ("full", r"^/somewhere: No space left on device\. Free some disk space\.$", 3),
    ],
)
def test_a_failure_is_told_as_it_would_be_here_and_ends_the_rest(
    two: Processes, tmp_path: Path, name: str, message: str, code: int
) -> None:
    with pytest.raises(GtaError, match=message) as caught:
        two.run(works.fail, items(tmp_path, name, "b"), at_once=1, tick=int)
    assert caught.value.exit_code == code
    assert not (tmp_path / "b").exists()


def test_work_whose_process_was_killed_is_begun_again(two: Processes, tmp_path: Path) -> None:
    two.run(works.die_once, items(tmp_path, "a", "b"), at_once=2, tick=int)
    assert {"a", "b"} <= {file.name for file in tmp_path.iterdir()}


def test_processes_that_are_killed_again_and_again_end_the_work(
    two: Processes, tmp_path: Path
) -> None:
    with pytest.raises(EnvironmentProblem, match="fewer --workers"):
        two.run(works.die, items(tmp_path, "a"), at_once=1, tick=int)


def test_an_interrupt_ends_every_process(two: Processes, tmp_path: Path) -> None:
    def interrupt() -> None:
        if (tmp_path / "a").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        two.run(works.note_slowly, items(tmp_path, "a"), at_once=1, tick=interrupt)
    worker = int((tmp_path / "a").read_text(encoding="utf-8"))
    assert not Path(f"/proc/{worker}").exists()


PROGRAM = """
from gta_bench.running.backends.backend import Processes
from gta_bench.running.leases import Items
from gta_bench.runs import store
from tests.running.backends import works
if __name__ == "__main__":
    Processes(1).run(works.note_slowly, Items([({folder!r}, "a")]), at_once=1, tick=int)
"""


def test_a_process_ends_with_the_driver_that_was_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(folder=str(tmp_path)), encoding="utf-8")
    path = f"{REPOSITORY / 'src'}:{REPOSITORY}"
    driver = subprocess.Popen(
        [sys.executable, str(program)], env={**os.environ, "PYTHONPATH": path}
    )
    end = time.monotonic() + 120
    while not (tmp_path / "a").exists() or not (tmp_path / "a").read_text(encoding="utf-8"):
        assert time.monotonic() < end
        time.sleep(0.1)
    worker = Path("/proc") / (tmp_path / "a").read_text(encoding="utf-8")
    assert worker.exists()
    driver.kill()
    driver.wait()
    while worker.exists():
        assert time.monotonic() < end
        time.sleep(0.1)


UNGUARDED = """
from pathlib import Path
from gta_bench.running.backends.backend import Processes, refuse_import_by_worker
from gta_bench.running.leases import Items
from gta_bench.runs import store
from tests.running.backends import works
with Path({folder!r}, "begun").open("a") as file:
    file.write("x")
refuse_import_by_worker()
Processes(1).run(works.note, Items([({folder!r}, "a")]), at_once=1, tick=int)
"""


def test_a_script_without_a_guard_is_refused_by_its_first_worker(tmp_path: Path) -> None:
    """Workers ran the script six times, and memory was said to have run out."""
    program = tmp_path / "program.py"
    program.write_text(UNGUARDED.format(folder=str(tmp_path)), encoding="utf-8")
    path = f"{REPOSITORY / 'src'}:{REPOSITORY}"
    ran = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode != 0
    assert "UsageError: Workers import the script" in ran.stderr
    assert 'if __name__ == "__main__"' in ran.stderr.splitlines()[-1]
    assert (tmp_path / "begun").read_text(encoding="utf-8") == "xx"
    assert not (tmp_path / "a").exists()


def test_an_interrupt_while_a_worker_imports_its_work_ends_it(
    two: Processes, tmp_path: Path
) -> None:
    """The worker ignored it, worked on, and was killed after 20 seconds."""
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        two.run(
            works.SlowImport(str(tmp_path)),
            Items(["a"]),
            at_once=1,
            tick=partial(interrupt, tmp_path),
        )
    assert not (tmp_path / "worked").exists()
    assert time.monotonic() - start < PATIENCE


def interrupt(folder: Path) -> None:
    if (folder / "importing").exists():
        raise KeyboardInterrupt


def test_a_head_that_does_not_answer_is_lost_once_patience_ends(
    loopback: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        head = backends._Head(f"127.0.0.1:{port}")
        head.check()
    head.check()
    monkeypatch.setattr(backends, "HEAD_PATIENCE", 0.0)
    with pytest.raises(EnvironmentProblem, match=f"cluster at 127.0.0.1:{port} is lost"):
        head.check()


def test_a_full_disk_of_temporary_files_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inspect, which builds its logs there, says that a log is missing."""
    assert (
        backends.explain_os_error(OSError(2, "No such file", "a.eval")) == "a.eval: No such file."
    )
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(store, "LEAST_ROOM", 2**60)
    assert backends.explain_os_error(OSError(2, "No such file", "a.eval")) == (
        f"a.eval: No such file. The disk with {tmp_path} on {platform.node()} is full: free some "
        "space."
    )


def test_the_private_switch_that_keeps_ray_on_loopback_is_still_there() -> None:
    """Ray replaces 127.0.0.1 by the machine's address unless this constant of its module is off."""
    program = "from ray._private import ray_constants; print(ray_constants.ENABLE_RAY_CLUSTER)"
    for value, printed in (("0", "False"), ("1", "True")):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": value},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == printed
