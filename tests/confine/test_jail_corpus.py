"""Every attack, in both jails, as root and as a user without rights."""

import json
import os
import re
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import cast

import pytest

from gta_bench.confine.limits import JailKind
from tests.confine.attacks import Attack, attacks
from tests.confine.conftest import KINDS, require
from tests.confine.corpus import SECRET, Outcome, Results
from tests.confine.users import NOBODY, USERS, run_as

CORPUS = attacks(os.uname().machine)

# The same corpus once more as root takes as long again, so it is run with the slow tests.
BY_USER = [
    pytest.param(user, marks=[pytest.mark.slow] if user != USERS[-1] else []) for user in USERS
]


@cache
def running(user: str) -> dict[JailKind, Future[subprocess.CompletedProcess[str] | None]]:
    """One program runs the whole corpus in one jail as one user; two of them at a time."""
    pool = ThreadPoolExecutor(2)
    return {kind: pool.submit(run_as, user, ["-m", "tests.confine.corpus", kind]) for kind in KINDS}


def results(kind: JailKind, user: str) -> Results:
    require(kind)
    done = running(user)[kind].result()
    if done is None:
        pytest.skip("no Python that an unprivileged user can start")
    assert done.returncode == 0, done.stderr
    return cast(Results, json.loads(done.stdout))


def outcome_of(attack: Attack, kind: JailKind, user: str) -> Outcome:
    return next(row for row in results(kind, user)["outcomes"] if row["name"] == attack.name)


def test_the_corpus_has_no_name_twice_and_is_not_small() -> None:
    assert len({attack.name for attack in CORPUS}) == len(CORPUS) > 100


@pytest.mark.parametrize("user", BY_USER)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attack", CORPUS, ids=lambda attack: attack.name)
def test_hostile_code_is_stopped_and_reported(attack: Attack, kind: JailKind, user: str) -> None:
    row = outcome_of(attack, kind, user)
    assert re.fullmatch(attack.outcome, row["outcome"]), row
    assert re.search(attack.sees, row["words"]), row
    assert row["jail"] == kind
    assert len(row["words"]) < 70_000


@pytest.mark.parametrize("user", BY_USER)
@pytest.mark.parametrize("kind", KINDS)
class TestAfterTheWholeCorpus:
    def test_no_secret_came_out(self, kind: JailKind, user: str) -> None:
        assert SECRET not in json.dumps(results(kind, user)["outcomes"])

    def test_the_planted_file_is_untouched(self, kind: JailKind, user: str) -> None:
        assert results(kind, user)["secret_intact"]

    def test_no_process_is_left(self, kind: JailKind, user: str) -> None:
        assert results(kind, user)["left_behind"] == []

    def test_no_folder_is_left(self, kind: JailKind, user: str) -> None:
        assert results(kind, user)["folders"] == []

    def test_the_next_call_works(self, kind: JailKind, user: str) -> None:
        assert results(kind, user)["next_call"] == "42"

    def test_nothing_took_longer_than_its_limit(self, kind: JailKind, user: str) -> None:
        # Calls wait for one of four slots, so only the slots' sum can be bounded from outside.
        assert sum(row["seconds"] > 60 for row in results(kind, user)["outcomes"]) == 0

    def test_it_ran_as_the_user_it_says(self, kind: JailKind, user: str) -> None:
        expected = NOBODY if user == "unprivileged" else os.getuid()
        assert results(kind, user)["user"] == expected
