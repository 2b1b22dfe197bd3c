"""On macOS and Windows nothing foreign is started, whoever asks for it."""

import json
from pathlib import Path

import pytest

from tests.authoring.folders import write_authored
from tests.systems.machines import SYSTEMS, Machine

NAMES = {"darwin": "macOS", "win32": "Windows"}
# Each way to start something foreign, and every kind of jail, asked for directly.
ASK = """
import asyncio, json, tempfile
from pathlib import Path
from gta_bench.confine import files, network, process
from gta_bench.confine.jail import Jail
from gta_bench.confine.probe import find_jail, probe
from gta_bench.confine.service import ServicePlan, ServiceProcess
from gta_bench.errors import GtaError
from gta_bench.harnesses.cell import Cell
from gta_bench.settings import Settings
from gta_bench.tools.equipment import use_equipment

task = Path(tempfile.mkdtemp())
(task / "outputs").mkdir()
bounds = process.ProcessBounds(
    wall_seconds=1, start_seconds=1, ready=b"", stdout_bytes=1, stderr_bytes=1
)

async def equip():
    async with use_equipment(Settings(), unsafe_no_jail=True) as equipment:
        equipment.need_jail()

ways = {
    "bubblewrap": lambda: Jail("bubblewrap"),
    "landlock": lambda: Jail("landlock"),
    "none": lambda: Jail("none"),
    "find": lambda: asyncio.run(find_jail()),
    "unconfined": lambda: asyncio.run(find_jail(unconfined=True)),
    "equipment": lambda: asyncio.run(equip()),
    "process": lambda: process.run(
        ["true"], stdin=b"", environment={}, cwd="/", bounds=bounds
    ),
    "server": lambda: ServiceProcess(ServicePlan(argv=["true"], task=task)),
    "harness": lambda: Cell(None),
    "network": lambda: asyncio.run(network.open_network()),
    "take back": lambda: files.take_back(task, task.stat()),
}
said = {}
for name, way in ways.items():
    try:
        way()
        said[name] = "did it"
    except GtaError as exc:
        said[name] = str(exc)
said["probe"] = " ".join(f"{one.works} {one.reason} {one.fix}" for one in asyncio.run(probe()))
print(json.dumps(said))
"""


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_way_to_foreign_code_is_refused_in_one_line_with_three_roads(
    system: str, tmp_path: Path
) -> None:
    machine = Machine(system, tmp_path / "home")
    (tmp_path / "ask.py").write_text(ASK, encoding="utf-8")
    code, text = machine.python(str(tmp_path / "ask.py"))
    assert code == 0, text
    said = json.loads(text.splitlines()[-1])
    assert "it needs Linux" in said.pop("network")
    probed = said.pop("probe")
    assert f"False {NAMES[system]} has no bubblewrap." in probed
    assert f"False {NAMES[system]} has no landlock." in probed
    for name, line in said.items():
        assert f"needs the jail, which {NAMES[system]} does not have." in line, name
        for road in ("`--tape`", "`--tools URL`", "docker/Dockerfile"):
            assert road in line, name
        assert "\n" not in line
    assert machine.started() == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_jailed_tool_says_so_and_others_work(system: str, tmp_path: Path) -> None:
    machine = Machine(system, tmp_path / "home")
    code, text = machine.run("tools", "call", "Calculator", "--arg", "expression=6 * 7")
    assert (code, text.splitlines()[0]) == (0, "42")
    snippet = "command=def solution():\n    return 1"
    code, text = machine.run("tools", "call", "Solver", "--arg", snippet)
    assert code == 3
    assert "`--tape`" in text and "`--tools URL`" in text and "docker/Dockerfile" in text
    assert len(text.splitlines()) == 1, text
    assert machine.started() == []


def test_the_pretended_systems_lack_what_the_real_ones_lack(tmp_path: Path) -> None:
    """The simulation itself: gta_bench sees the other system, other packages see this one."""
    lines = (
        "import os, sys\nfrom gta_bench import settings\nprint(sys.platform, settings.sys.platform)"
    )
    assert Machine("win32", tmp_path / "a").python("-c", lines).text.split() == ["linux", "win32"]
    lines = "from gta_bench import settings\nsettings.os.geteuid()"
    assert "has no attribute 'geteuid'" in Machine("win32", tmp_path / "a").python("-c", lines).text
    assert Machine("darwin", tmp_path / "b").python("-c", lines).code == 0
    lines = "from gta_bench.confine import files\nprint(files.HAS_DESCRIPTORS)"
    assert Machine("win32", tmp_path / "a").python("-c", lines).text.strip() == "False"
    assert Machine("darwin", tmp_path / "b").python("-c", lines).text.strip() == "True"


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_pilot_decides_nothing_and_says_why(system: str, tmp_path: Path) -> None:
    machine = Machine(system, tmp_path / "home")
    write_authored(machine.folder)
    code, text = machine.run("task", "pilot", "q3-sales", "--no-judge")
    assert code == 1 and "q3-sales: unchecked (27 scores missing)" in text
    assert f"needs the jail, which {NAMES[system]} does not have. Replay a tape" in text
    assert [one for one in machine.started() if Path(one[0]).name != "git"] == []
