"""Root of a container, which lacks capabilities: it has a jail all the same, or is refused."""

import json
import os
import re
import subprocess
import sys
from typing import cast

import pytest

from gta_bench.confine.bubblewrap import NOBODY, RANGE
from gta_bench.confine.limits import JailKind
from tests.confine.attacks import attacks, expected
from tests.confine.conftest import require
from tests.confine.corpus import Results, Road
from tests.confine.users import run_here
from tests.needs import needs

CORPUS = {attack.name: attack for attack in attacks(os.uname().machine)}
# What is taken away, the way in, and as whom foreign code then runs. Bubblewrap takes a user
# namespace, where root is one without a right outside; Landlock's root gives up all it has.
WAYS: list[tuple[str, JailKind, Road, range]] = [
    ("-sys_admin", "bubblewrap", "program", range(NOBODY, NOBODY + 1)),
    ("-sys_admin", "bubblewrap", "cell", range(NOBODY, NOBODY + 1)),
    ("-sys_admin", "landlock", "program", RANGE),
    ("-all", "landlock", "snippet", range(1)),
    ("-all", "landlock", "program", range(1)),
]
CHOSEN = """
import asyncio
from gta_bench.confine.probe import find_jail
print(asyncio.run(find_jail()).kind)
"""

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be a root with less"),
    needs("bwrap"),
]


def without(capabilities: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    drop = [f"--bounding-set={capabilities}", f"--inh-caps={capabilities}"]
    return run_here(["setpriv", *drop, sys.executable, *arguments], timeout=300)


@pytest.mark.parametrize(("missing", "jail"), [("-sys_admin", "bubblewrap"), ("-all", "landlock")])
def test_a_jail_that_works_is_found(missing: str, jail: JailKind) -> None:
    require(jail)
    done = without(missing, "-c", CHOSEN)
    assert done.stdout.strip() == jail, done.stderr


def test_the_open_network_is_refused_in_one_line() -> None:
    code = (
        "import asyncio; from gta_bench.confine import network; asyncio.run(network.open_network())"
    )
    done = without("-sys_admin", "-c", code)
    assert "root has no CAP_SYS_ADMIN. Run as an ordinary user." in done.stderr.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize(("missing", "kind", "road", "users"), WAYS)
def test_nothing_of_this_machine_is_found(
    missing: str, kind: JailKind, road: Road, users: range
) -> None:
    require(kind)
    done = without(missing, "-m", "tests.confine.corpus", kind, road)
    assert done.returncode == 0, done.stderr
    found = cast(Results, json.loads(done.stdout))
    survey = dict(found["survey"])
    assert survey.pop("user") in users
    assert survey == {name: [] for name in survey}
    assert (found["set_id_left"], found["left_behind"], found["folders"]) == ([], [], [])
    assert found["secret_intact"]
    for row in found["outcomes"]:
        said = f"{row['outcome']}: {row['words']}"
        wanted = expected(CORPUS[row["name"]], kind, road)
        assert re.match(wanted, said, re.DOTALL), (row["name"], said)
