"""Every attack, on every road into both jails, as root and as a user without rights."""

import json
import os
import re
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import cast

import pytest

from gta_bench.confine.limits import JailKind
from gta_bench.confine.users import NOBODY, RANGE
from tests.confine.attacks import Attack, attacks, expected
from tests.confine.conftest import require
from tests.confine.corpus import APPLY, SECRET, Outcome, Results, Road
from tests.confine.users import ORDINARY, USERS, run_as

Done = subprocess.CompletedProcess[str] | None
CORPUS = attacks(os.uname().machine)

# Ten ways in: three roads into bubblewrap and two into Landlock, as root and as an ordinary user.
WAYS: tuple[tuple[JailKind, Road], ...] = (
    ("bubblewrap", "snippet"),
    ("bubblewrap", "program"),
    ("bubblewrap", "cell"),
    ("landlock", "snippet"),
    ("landlock", "program"),
)
# The same corpus once more as root takes as long again, so it is run with the slow tests.
BY_USER = [
    pytest.param(user, marks=[pytest.mark.slow] if user != USERS[-1] else []) for user in USERS
]
CASES = [
    pytest.param(attack, *way, id=f"{attack.name}-{'-'.join(way)}")
    for way in WAYS
    for attack in CORPUS
    if attack.kind in APPLY[way[1]]
]


@cache
def running(user: str) -> dict[tuple[JailKind, Road], Future[Done]]:
    """One program runs the whole corpus on one road as one user; two of them at a time."""
    pool = ThreadPoolExecutor(2)
    return {way: pool.submit(run_as, user, ["-m", "tests.confine.corpus", *way]) for way in WAYS}


def results(kind: JailKind, road: Road, user: str) -> Results:
    require(kind)
    done = running(user)[kind, road].result()
    if done is None:
        pytest.skip("no Python that an unprivileged user can start")
    assert done.returncode == 0, done.stderr
    return cast(Results, json.loads(done.stdout))


def outcome_of(attack: Attack, kind: JailKind, road: Road, user: str) -> Outcome:
    found = results(kind, road, user)["outcomes"]
    return next(row for row in found if row["name"] == attack.name)


def test_the_corpus_has_no_name_twice_and_is_not_small() -> None:
    assert len({attack.name for attack in CORPUS}) == len(CORPUS) > 100


@pytest.mark.parametrize("user", BY_USER)
@pytest.mark.parametrize(("attack", "kind", "road"), CASES)
def test_hostile_code_is_stopped_and_reported(
    attack: Attack, kind: JailKind, road: Road, user: str
) -> None:
    row = outcome_of(attack, kind, road, user)
    said = f"{row['outcome']}: {row['words']}"
    assert re.match(expected(attack, kind, road), said, re.DOTALL), said
    assert row["jail"] == kind
    assert len(row["words"]) < 70_000


@pytest.mark.parametrize("user", BY_USER)
@pytest.mark.parametrize(("kind", "road"), WAYS)
class TestAfterTheWholeCorpus:
    def test_no_secret_came_out(self, kind: JailKind, road: Road, user: str) -> None:
        assert SECRET not in json.dumps(results(kind, road, user)["outcomes"])

    def test_the_planted_file_is_untouched(self, kind: JailKind, road: Road, user: str) -> None:
        assert results(kind, road, user)["secret_intact"]

    def test_nothing_of_this_machine_was_found(self, kind: JailKind, road: Road, user: str) -> None:
        found = results(kind, road, user)["survey"]
        nothing: list[str] = []
        assert found == {
            "sysctls": nothing,
            "files": nothing,
            "sockets": nothing,
            "set_id": nothing,
            "unfiltered": nothing,
            "user": found["user"],
        }

    def test_nobody_inside_was_root(self, kind: JailKind, road: Road, user: str) -> None:
        inside = results(kind, road, user)["survey"]["user"]
        if user == "unprivileged":
            assert inside == (NOBODY if kind == "bubblewrap" else ORDINARY)
        elif os.geteuid() == 0:
            assert inside in RANGE

    def test_no_file_runs_as_its_owner(self, kind: JailKind, road: Road, user: str) -> None:
        assert results(kind, road, user)["set_id_left"] == []

    def test_no_process_is_left(self, kind: JailKind, road: Road, user: str) -> None:
        assert results(kind, road, user)["left_behind"] == []

    def test_no_folder_is_left(self, kind: JailKind, road: Road, user: str) -> None:
        assert results(kind, road, user)["folders"] == []

    def test_the_next_call_works(self, kind: JailKind, road: Road, user: str) -> None:
        assert results(kind, road, user)["next_call"] == "42"

    def test_nothing_took_longer_than_its_limit(
        self, kind: JailKind, road: Road, user: str
    ) -> None:
        # Calls wait for one of four slots, so only the slots' sum can be bounded from outside.
        found = results(kind, road, user)["outcomes"]
        assert sum(row["seconds"] > 60 for row in found) == 0

    def test_it_ran_as_the_user_it_says(self, kind: JailKind, road: Road, user: str) -> None:
        own = ORDINARY if user == "unprivileged" else os.getuid()
        assert results(kind, road, user)["user"] == own
