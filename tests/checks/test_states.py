"""Checks of the state of tool servers: what they find, and what they do not fall for."""

import hashlib
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gta_bench.checks.delivery import CheckedState, CheckedWork
from gta_bench.confine.jail import Jail
from gta_bench.content.database import find_query_problem
from gta_bench.records.checks import SqliteQuery, StateFile
from gta_bench.records.files import Deliverable
from gta_bench.records.tool_servers import ServerState, StateSnapshot
from gta_bench.records.verdicts import Scored, Unscored
from tests.checks.works import decide, points

TEA = b"Assam and Ceylon"
SCRIPT = """
CREATE TABLE tickets (id TEXT, closed INTEGER, hours REAL);
INSERT INTO tickets VALUES ('T-17', 1, 2.5), ('T-18', 0, NULL), ('T-23', 1, 0.25);
"""


def snapshot(files: Mapping[str, bytes], *strays: str) -> tuple[StateSnapshot, dict[str, bytes]]:
    kept = {hashlib.sha256(data).hexdigest(): data for data in files.values()}
    listed = tuple(
        Deliverable(path=path, digest=hashlib.sha256(data).hexdigest(), size=len(data))
        for path, data in files.items()
    )
    return StateSnapshot(files=listed, strays=strays), kept


def work(
    jail: Jail,
    after: Mapping[str, bytes],
    before: Mapping[str, bytes] | None = None,
    strays: tuple[str, ...] = (),
    delivered: Mapping[str, bytes] | None = None,
) -> CheckedWork:
    """A unit whose server `own` has these files; other files were delivered."""
    first, kept = snapshot(before or {})
    last, more = snapshot(after, *strays)
    state = ServerState(server="own", before=first, after=last)
    read = {**kept, **more}.__getitem__
    files = {f"outputs/{name}": partial(bytes, data) for name, data in (delivered or {}).items()}
    return CheckedWork("", files, jail, states=[CheckedState(state, read)])


def database(folder: Path, script: str = SCRIPT) -> bytes:
    file = folder / "made.db"
    with closing(sqlite3.connect(file)) as base:
        base.executescript(script)
    return file.read_bytes()


def file_check(**about: Any) -> dict[str, Any]:
    return {"is": "state.file", "server": "own", "path": "data/tea.txt", **about}


def query(text: str, **about: Any) -> dict[str, Any]:
    return {"is": "sqlite.query", "server": "own", "path": "data/a.db", "query": text, **about}


OLD = {"data/old.txt": b"old", "data/tea.txt": b"none"}


@pytest.mark.parametrize(
    ("about", "holds"),
    [
        ({}, True),
        ({"path": "data/*.txt"}, False),  # two files
        ({"path": "*/tea.txt"}, True),
        ({"path": "tea.txt"}, False),
        ({"exists": False}, False),
        ({"path": "data/gone.txt", "exists": False}, True),
        ({"path": "data/link", "exists": False}, False),
        ({"path": "data/link"}, False),
        ({"changed": True}, True),
        ({"changed": False}, False),
        ({"path": "data/old.txt", "changed": False}, True),
        ({"path": "data/old.txt", "changed": True}, False),
        ({"all": ["assam", "Ceylon"]}, True),
        ({"all": ["assam"], "case": True}, False),
        ({"any": ["Darjeeling", "Ceylon"], "none": ["Oolong"]}, True),
        ({"none": ["Assam"]}, False),
        ({"sha256": hashlib.sha256(TEA).hexdigest()}, True),
        ({"sha256": hashlib.sha256(b"x").hexdigest()}, False),
    ],
)
def test_a_file_of_a_server_is_as_wanted(jail: Jail, about: dict[str, Any], holds: bool) -> None:
    found = work(
        jail, {"data/tea.txt": TEA, "data/old.txt": b"old"}, before=OLD, strays=("data/link",)
    )
    assert points(decide(found, file_check(**about))) == (10 if holds else 0)


@pytest.mark.parametrize(
    ("check", "holds"),
    [
        (query("SELECT count(*) FROM tickets WHERE closed", equals=2), True),
        (query("SELECT count(*) FROM tickets WHERE closed", equals=3), False),
        (query("SELECT sum(hours) FROM tickets", equals=2.7, within=0.1), True),
        (query("SELECT sum(hours) FROM tickets", equals=2.7), False),
        (query("SELECT id FROM tickets WHERE hours > 1", equals="t-17"), True),
        (query("SELECT hours FROM tickets WHERE id = 'T-18'", equals=0), False),  # NULL
        (query("SELECT id FROM tickets", equals="T-17"), False),  # three rows
        (query("SELECT id, closed FROM tickets LIMIT 1", equals="T-17"), False),  # two columns
        (query("SELECT id FROM tickets WHERE 0", equals="T-17"), False),
        (
            query(
                "SELECT id, hours FROM tickets WHERE closed ORDER BY id",
                rows=[["T-17", 2.5], ["T-23", 0.25]],
            ),
            True,
        ),
        (query("SELECT id FROM tickets ORDER BY id", rows=[["T-17"], ["T-23"], ["T-18"]]), False),
        (query("SELECT id FROM tickets WHERE id = 'T-99'", rows=[]), True),
        (query("WITH x(n) AS (SELECT 4) SELECT n FROM x", equals=4), True),
        (query("SELECT a FROM no_such_table", equals=4), False),
        (query("SELECT no_such_column FROM tickets", equals=4), False),
        (query("SELECT 1 FROM tickets a, tickets b, tickets c, tickets d, tickets e, tickets f, "
               "tickets g", equals=1), False),  # 2187 rows
        (query("SELECT 1", path="data/none.db", equals=1), False),
    ],
)  # fmt: skip
def test_a_query_gives_the_wanted_value_or_rows(
    jail: Jail, tmp_path: Path, check: dict[str, Any], holds: bool
) -> None:
    found = work(jail, {"data/a.db": database(tmp_path)})
    assert points(decide(found, check)) == (10 if holds else 0)


@pytest.mark.parametrize(
    "text",
    [
        "ATTACH 'other.db' AS other",
        "PRAGMA writable_schema = ON",
        "SELECT * FROM pragma_database_list",
        "SELECT load_extension('x')",
        "DELETE FROM tickets",
        "WITH x(n) AS (SELECT 1) DELETE FROM tickets",
        "CREATE TABLE more (n)",
        "SELECT 1; DROP TABLE tickets",
        "VACUUM INTO 'copy.db'",
        "EXPLAIN SELECT 1",
        "SELECT zeroblob(1000000000)",
        "SELECT zeroblob(100000) FROM tickets a, tickets b, tickets c, tickets d",
        "SELEC 1",
        "",
    ],
)
def test_a_query_that_is_more_than_a_select_is_unscored(
    jail: Jail, tmp_path: Path, text: str
) -> None:
    check, files = query(text or " ", equals=1), {"data/a.db": database(tmp_path)}
    verdict = decide(work(jail, files, before=files), check)
    assert isinstance(verdict, Unscored), verdict
    assert "The query cannot be used" in verdict.detail


def test_an_endless_query_is_unscored_in_time(
    jail: Jail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gta_bench.content import driver

    inside = driver.read_inside("database.py").replace("SECONDS = 10.0", "SECONDS = 0.3")
    monkeypatch.setattr(driver, "read_inside", lambda name: inside)
    endless = "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT max(n) FROM x"
    made = {"data/a.db": database(tmp_path)}
    for before in (made, {}):
        verdict = decide(work(jail, made, before), query(endless, equals=1))
        assert isinstance(verdict, Unscored)
        assert "takes more than 0.3 seconds" in verdict.detail
    # A database that makes any query endless is the system's doing.
    (tmp_path / "made.db").unlink()
    trap = {"data/a.db": database(tmp_path, f"CREATE VIEW tickets AS {endless}")}
    for before in (made, {}):
        found = decide(work(jail, trap, before), query("SELECT count(*) FROM tickets", equals=1))
        assert isinstance(found, Scored) and found.value == 0
        assert "takes more than 0.3 seconds" in found.reason


def test_a_state_that_became_too_large_fails_its_checks(jail: Jail) -> None:
    large = ServerState(server="own", excess="it has more than 10 bytes")
    checked = CheckedWork(
        "", {}, jail, states=[CheckedState(large, dict[str, bytes]().__getitem__)]
    )
    for about in ({}, {"exists": False}):
        found = decide(checked, file_check(**about))
        assert isinstance(found, Scored) and found.value == 0
        assert "too large: it has more than 10 bytes" in found.reason


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no database at all" * 100,
        b"SQLite format 3\0" + os.urandom(5000),
        "cut",
        "scrambled",
        "hostile view",
    ],
)
def test_a_damaged_or_hostile_database_fails(jail: Jail, tmp_path: Path, data: bytes | str) -> None:
    whole = database(tmp_path)
    view = "CREATE VIEW tickets AS SELECT load_extension('evil') AS id"
    made = {
        "cut": lambda: whole[:5000],
        "scrambled": lambda: whole[:100] + bytes(reversed(whole[100:])),
        "hostile view": lambda: database(tmp_path / "..", f"DROP VIEW IF EXISTS tickets; {view}"),
    }
    bad = data if isinstance(data, bytes) else made[data]()
    assert (
        points(decide(work(jail, {"data/a.db": bad}), query("SELECT id FROM tickets", rows=[])))
        == 0
    )


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_changes_beside_the_file_count_and_undone_ones_do_not(
    jail: Jail, tmp_path: Path, mode: str
) -> None:
    """A server that was killed leaves a write-ahead log, or a journal of what it had begun."""
    file = tmp_path / "a.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as base:
        base.execute(f"PRAGMA journal_mode = {mode}")
        base.executescript(SCRIPT)
        base.execute("PRAGMA cache_size = 1")
        base.execute("BEGIN")
        base.execute("UPDATE tickets SET closed = 1")
        if mode == "WAL":
            base.execute("COMMIT")
        files = {f"data/{one.name}": one.read_bytes() for one in tmp_path.iterdir()}
    assert len(files) > 1
    files.pop("data/a.db-shm", None)
    closed = query("SELECT count(*) FROM tickets WHERE closed", equals=3 if mode == "WAL" else 2)
    assert points(decide(work(jail, files), closed)) == 10


def test_a_deliverable_of_the_same_name_is_no_state(jail: Jail, tmp_path: Path) -> None:
    planted = {"tea.txt": TEA, "data/tea.txt": TEA, "data/a.db": database(tmp_path)}
    empty = work(jail, {}, delivered=planted)
    assert points(decide(empty, file_check())) == 0
    assert points(decide(empty, query("SELECT count(*) FROM tickets", equals=3))) == 0
    other = work(jail, {"data/tea.txt": b"Oolong"}, delivered=planted)
    assert points(decide(other, file_check(all=["Assam"]))) == 0


def test_without_a_state_the_leaf_is_unscored_and_says_why(jail: Jail) -> None:
    verdict = decide(work(jail, {}), file_check(server="files"))
    assert isinstance(verdict, Unscored) and verdict.cause == "check_failed"
    assert "no state of the tool server 'files', but of own. Declare `state`" in verdict.detail
    lost = CheckedWork(
        "", {}, jail, states=[CheckedState(ServerState(server="own", unknown="lost"), str.encode)]
    )
    verdict = decide(lost, file_check(exists=False))
    assert isinstance(verdict, Unscored)
    assert "The state of the tool server 'own' is not known: lost." in verdict.detail


@pytest.mark.parametrize(
    ("kind", "about", "message"),
    [
        (StateFile, file_check(exists=False, changed=True), "no other condition"),
        (StateFile, file_check(sha256="abc"), "sha256"),
        (SqliteQuery, query("SELECT 1"), "give `equals` or `rows`"),
        (SqliteQuery, query("SELECT 1", equals=1, rows=[[1]]), "give `equals` or `rows`"),
        (SqliteQuery, query("SELECT 1", rows=[[True]]), "rows"),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(
    kind: type[StateFile | SqliteQuery], about: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        kind.model_validate(about)


def test_a_query_is_checked_without_its_tables() -> None:
    assert find_query_problem("SELECT a FROM b WHERE c ORDER BY d") is None
    assert "syntax error" in str(find_query_problem("SELECT FROM"))
    assert "single SELECT" in str(find_query_problem("ATTACH 'x' AS y"))
    assert "load_extension" in str(find_query_problem("SELECT load_extension('x')"))
    assert find_query_problem("SELECT a FROM b; -- all of them") is not None
    assert find_query_problem("SELECT a FROM b -- all of them\n;") is None
