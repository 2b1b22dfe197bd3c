"""`--network open`: outside addresses are reached, this machine and its neighbors are not."""

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.confine import network
from gta_bench.errors import EnvironmentProblem
from tests.builders import write_workflow
from tests.confine.attacks import attacks, expected
from tests.confine.users import REPOSITORY, USERS, environment, python_for, run_as
from tests.harnesses.open_world import OUTSIDE
from tests.needs import needs

REACHED = {"name", "outside tcp", "outside udp"}


@needs("bwrap", "pasta")
@pytest.mark.parametrize("user", USERS)
def test_only_the_outside_is_reached(user: str) -> None:
    """Loopback, abstract sockets, own addresses, neighbors by routes and by devices."""
    if os.geteuid() != 0:
        pytest.skip("a machine with a neighbor and an outside takes root to build")
    if python_for(user) is None:
        pytest.skip("no Python for an ordinary user")
    command = ["unshare", "--net", "--mount", sys.executable, "-m", "tests.harnesses.open_world"]
    ran = subprocess.run(
        [*command, user],
        env={**environment(), "PATH": network.PATH},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert set(found["machine"].values()) == {"hello"}, "each of them is there to be reached"
    for place in ("cell", "server"):
        assert {name for name, said in found[place].items() if said} == REACHED


@pytest.mark.slow
@needs("bwrap", "pasta")
@pytest.mark.parametrize("user", USERS)
def test_an_open_cell_has_the_walls_of_every_cell(user: str) -> None:
    """The corpus of attacks, and a look at everything around."""
    ran = run_as(user, ["-m", "tests.confine.corpus", "bubblewrap", "cell", "open"])
    if ran is None:
        pytest.skip("no Python for an ordinary user")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    del found["survey"]["user"]
    assert not any(found["survey"].values()), found["survey"]
    corpus = {attack.name: attack for attack in attacks(os.uname().machine)}
    for row in found["outcomes"]:
        said = f"{row['outcome']}: {row['words']}"
        wanted = expected(corpus[row["name"]], "bubblewrap", "cell")
        assert re.match(wanted, said, re.DOTALL), (row["name"], said)


@needs("pasta")
def test_nothing_is_left_of_a_way_that_was_closed() -> None:
    async def use() -> tuple[bytes, str]:
        way = await network.open_network()
        ask = ["sh", "-c", "cat /proc/net/route; grep CapEff /proc/self/status"]
        pipe = asyncio.subprocess.PIPE
        inside = await asyncio.create_subprocess_exec(*way.join, *ask, stdout=pipe)
        said, _ = await inside.communicate()
        await way.close()
        return said, way.join[-2].rpartition("=")[2]

    said, namespace = asyncio.run(use())
    assert b"tap0" in said
    assert not Path(namespace).exists()


def test_without_pasta_it_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "PATH", str(tmp_path))
    options = ["--harness", "true", "--network", "open", "--out", str(tmp_path / "run")]
    data = write_workflow(tmp_path / "data")
    result = CliRunner().invoke(app, ["run", "workflow", "--data", str(data), *options])
    assert isinstance(result.exception, EnvironmentProblem)
    assert str(result.exception) == (
        "--network open needs pasta and nft and nsenter: `apt install passt nftables`."
    )
    assert not (tmp_path / "run").exists()


def test_a_device_for_root_alone_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in network.PROGRAMS:
        (tmp_path / name).write_text("#!/bin/sh\necho no device >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    tun = tmp_path / "tun"
    monkeypatch.setattr(network, "PATH", str(tmp_path))
    monkeypatch.setattr(network, "TUN", tun)
    with pytest.raises(EnvironmentProblem, match="`modprobe tun` as root"):
        asyncio.run(network.require_network())
    tun.touch(0o600)
    with pytest.raises(EnvironmentProblem, match=r"`chmod 666 .*tun` as root"):
        asyncio.run(network.require_network())
    tun.chmod(0o666)
    with pytest.raises(EnvironmentProblem, match=r"does not work here: pasta "):
        asyncio.run(network.require_network())


def test_the_filter_knows_what_is_near() -> None:
    rules = network._filter()
    assert "127.0.0.0/8" in rules
    assert "169.254.0.0/16" in rules
    assert OUTSIDE not in rules
