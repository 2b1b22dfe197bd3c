"""Checks that an author writes in Python: what they can do, and what stops them."""

import socket
from pathlib import Path
from typing import Any

import pytest

from gta_bench.checks.delivery import CheckedWork
from gta_bench.confine.jail import Jail
from gta_bench.records.verdicts import Scored, Unscored
from tests.checks.works import decide, deliver, stop_readers
from tests.content import samples


@pytest.fixture(scope="module")
def work(jail: Jail) -> CheckedWork:
    files = {
        "sales.csv": b"Region,Revenue\nNorth,5\nSouth,3\nWest,1\n",
        "logo.png": samples.image(4, 3),
        "notes.md": b"Sales grew in the north.",
    }
    return deliver(files, jail, answer="West trails.")


def python(source: str) -> dict[str, Any]:
    return {"is": "python", "run": "checks/own.py:own", "source": source}


@pytest.mark.parametrize(
    ("source", "score", "says"),
    [
        ("from typing import Any\ndef own(work: Any) -> Any: return 10", 10, ""),
        ("def own(work): return True", 10, "10 points"),
        ("def own(work): return work.answer.startswith('East')", 0, "0 points"),
        ("def own(work): return 4.5", 4.5, "4.5 points"),
        (
            "def own(work):\n    rows = work.tables('sales.csv')[0]\n"
            "    return {'score': 3, 'found': f'{len(rows)} rows', 'wanted': '5'}",
            3,
            "checks/own.py:own: found 4 rows, wanted 5",
        ),
        ("def own(work): return b'PNG' in work.read('logo.png') and len(work.files) == 3", 10, ""),
        ("def own(work): return 'north' in work.text('notes.md')", 10, ""),
        ("def own(work): return {'score': True}", 10, "10 points"),
        ("def own(work): return {'score': False}", 0, "0 points"),
        ("def own(work): return {'score': 0, 'found': 'a\\ud800b\\0c'}", 0, "own: a?b c"),
        ("def own(work): return work.read('no.csv')", 0, "own: no.csv is not delivered"),
        ("def own(work): return work.text('no.csv')", 0, "own: no.csv is not delivered"),
        ("def own(work): return work.tables('logo.png')", 0, "logo.png has no tables: is png, "),
        (
            "def own(work):\n    try: work.tables('no.csv')\n    except LookupError: return 2",
            2,
            "2 points",
        ),
    ],
)  # fmt: skip
def test_a_python_check_gives_points(
    work: CheckedWork, source: str, score: float, says: str
) -> None:
    verdict = decide(work, python(source))
    assert isinstance(verdict, Scored), verdict
    assert verdict.value == score and says in verdict.reason


EXAMPLE = Path(__file__).parents[2] / "docs/how-to/own-tasks.md"


@pytest.mark.parametrize(
    ("plan", "score", "says"),
    [
        (b"name,task,hours\nAda,x,40\n", 10, "0 of 1 people above 40 hours"),
        (b"name,task,hours\nAda,x,41\n", 0, "1 of 1 people above 40 hours"),
        (b"name,task,hours\nAda,x,nan\n", 0, "1 of 1 people"),
        (b"name,task,hours\nAda,x,many\n", 0, "a row without hours: could not convert"),
        (b"name,task\nAda,x\n", 0, "a row without hours: list index out of range"),
        (b"name,task,hours\n", 0, "0 of 0 people"),
        (None, 0, "plan.csv is not delivered"),
    ],
)
def test_the_documented_check_decides_work_of_any_shape(
    jail: Jail, plan: bytes | None, score: float, says: str
) -> None:
    source = EXAMPLE.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    work = deliver({} if plan is None else {"plan.csv": plan}, jail)
    check = {"is": "python", "run": "checks/plan.py:is_feasible", "source": source}
    verdict = decide(work, check)
    assert isinstance(verdict, Scored), verdict
    assert verdict.value == score and says in verdict.reason


HOST = "def own(work): return open('{file}').read() == 'secret'"
NETWORK = "def own(work):\n    import socket\n    socket.create_connection(('127.0.0.1', {port}))"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def own(work): return 1 / 0", "ZeroDivisionError"),
        ("def own(work): return 11", "gave"),
        ("def own(work): return 'good'", "must return points"),
        ("def own(work):\n    while True: pass", "was stopped after"),
    ],
)
def test_a_check_that_breaks_leaves_the_leaf_unscored(
    work: CheckedWork, monkeypatch: pytest.MonkeyPatch, source: str, says: str
) -> None:
    import gta_bench.checks.python as module
    from gta_bench.confine.limits import JailLimits

    monkeypatch.setattr(module, "LIMITS", JailLimits(wall_seconds=3.0, cpu_seconds=3))
    verdict = decide(work, python(source))
    assert isinstance(verdict, Unscored) and verdict.cause == "check_failed"
    assert says in verdict.detail and verdict.detail.startswith("check 1 (python): ")


def test_a_file_that_this_machine_cannot_read_leaves_the_leaf_unscored(
    jail: Jail, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_readers(monkeypatch)
    work = deliver({"a.pptx": samples.deck()}, jail)
    verdict = decide(work, python("def own(work): return 'x' in work.text('a.pptx')"))
    assert isinstance(verdict, Unscored) and "the machine was too slow" in verdict.detail


def test_a_check_cannot_read_the_host(work: CheckedWork, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret")
    verdict = decide(work, python(HOST.format(file=tmp_path / "key")))
    assert isinstance(verdict, Unscored) and verdict.cause == "check_failed"


@pytest.mark.parametrize(("limit", "reads"), [("MOST_BYTES", "read"), ("MOST_SAID", "text")])
def test_a_large_file_does_not_keep_a_check_from_deciding(
    jail: Jail, monkeypatch: pytest.MonkeyPatch, limit: str, reads: str
) -> None:
    """A junk file of 65 MiB once made every Python check of a task unscored."""
    import gta_bench.checks.python as module

    monkeypatch.setattr(module, limit, 200)
    work = deliver({"junk.md": b"x" * 300, "notes.md": b"Sales grew in the north."}, jail)
    notes = "def own(work): return 'north' in work.text('notes.md') and len(work.files) == 2"
    verdict = decide(work, python(notes))
    assert isinstance(verdict, Scored) and verdict.value == 10, verdict
    verdict = decide(work, python(f"def own(work): return bool(work.{reads}('junk.md'))"))
    assert isinstance(verdict, Scored) and verdict.value == 0, verdict
    assert "with the smaller files" in verdict.reason


def test_a_check_cannot_reach_the_network(work: CheckedWork, loopback: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()
        server.accept()[0].close()
        verdict = decide(work, python(NETWORK.format(port=port)))
        assert isinstance(verdict, Unscored) and verdict.cause == "check_failed"
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
