"""Every attack, on every road into both jails, as root and as a user without rights."""

import json
import os
import re
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from gta_bench.confine.bubblewrap import NOBODY, RANGE
from gta_bench.confine.limits import JailKind
from tests.confine.attacks import Attack, attacks, expected
from tests.confine.conftest import require
from tests.confine.corpus import APPLY, SECRET, Results, Road
from tests.confine.users import ORDINARY, USERS, run_as
from tests.sharing import shared

CORPUS = attacks(os.uname().machine)

# Ten ways in: three roads into bubblewrap and two into Landlock, as root and as an ordinary user.
Way = tuple[JailKind, Road]
WAYS: tuple[Way, ...] = (
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


class Corpus:
    """The whole corpus on every road; one program a road and user, two of them at a time."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory, self._pool = factory, ThreadPoolExecutor(2)
        factory.getbasetemp()  # made here: threads that need it at the same time would fail
        self._begun: dict[str, dict[Way, Future[Path]]] = {}

    def results(self, user: str, way: Way) -> Results | None:
        """What came of it; None where no Python can be started as that user."""
        if user not in self._begun:
            self._begun[user] = {one: self._pool.submit(self._run, user, one) for one in WAYS}
        read = json.loads(self._begun[user][way].result().read_text("utf-8"))
        return cast(Results | None, read)

    def _run(self, user: str, way: Way) -> Path:
        def write(file: Path) -> None:
            done = run_as(user, ["-m", "tests.confine.corpus", *way])
            assert done is None or done.returncode == 0, done.stderr
            file.write_text("null" if done is None else done.stdout, "utf-8")

        return shared(self._factory, "-".join((user, *way)), write)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus(tmp_path_factory)


@pytest.fixture
def found(kind: JailKind, road: Road, user: str, corpus: Corpus) -> Results:
    require(kind)
    read = corpus.results(user, (kind, road))
    if read is None:
        pytest.skip("no Python that an unprivileged user can start")
    return read


def test_the_corpus_has_no_name_twice_and_is_not_small() -> None:
    assert len({attack.name for attack in CORPUS}) == len(CORPUS) > 100


@pytest.mark.parametrize("user", BY_USER)
@pytest.mark.parametrize(("attack", "kind", "road"), CASES)
def test_hostile_code_is_stopped_and_reported(
    attack: Attack, kind: JailKind, road: Road, found: Results
) -> None:
    row = next(row for row in found["outcomes"] if row["name"] == attack.name)
    said = f"{row['outcome']}: {row['words']}"
    assert re.match(expected(attack, kind, road), said, re.DOTALL), said
    assert row["jail"] == kind
    assert len(row["words"]) < 70_000


@pytest.mark.parametrize("user", BY_USER)
@pytest.mark.parametrize(("kind", "road"), WAYS)
class TestAfterTheWholeCorpus:
    def test_no_secret_came_out(self, found: Results) -> None:
        assert SECRET not in json.dumps(found["outcomes"])

    def test_the_planted_file_is_untouched(self, found: Results) -> None:
        assert found["secret_intact"]

    def test_nothing_of_this_machine_was_found(self, found: Results) -> None:
        survey = found["survey"]
        nothing: list[str] = []
        assert survey == {
            "sysctls": nothing,
            "files": nothing,
            "sockets": nothing,
            "set_id": nothing,
            "unfiltered": nothing,
            "user": survey["user"],
        }

    def test_nobody_inside_was_root(self, kind: JailKind, found: Results, user: str) -> None:
        inside = found["survey"]["user"]
        if user == "unprivileged":
            assert inside == (NOBODY if kind == "bubblewrap" else ORDINARY)
        elif os.geteuid() == 0:
            assert inside in RANGE

    def test_no_file_runs_as_its_owner(self, found: Results) -> None:
        assert found["set_id_left"] == []

    def test_no_process_is_left(self, found: Results) -> None:
        assert found["left_behind"] == []

    def test_no_folder_is_left(self, found: Results) -> None:
        assert found["folders"] == []

    def test_the_next_call_works(self, found: Results) -> None:
        assert found["next_call"] == "42"

    def test_nothing_took_longer_than_its_limit(self, found: Results) -> None:
        # Calls wait for one of four slots, so only the slots' sum can be bounded from outside.
        assert sum(row["seconds"] > 60 for row in found["outcomes"]) == 0

    def test_it_ran_as_the_user_it_says(self, found: Results, user: str) -> None:
        own = ORDINARY if user == "unprivileged" else os.getuid()
        assert found["user"] == own
