"""Episodes through the real verifiers, OpenEnv and NeMo Gym, against bare ones in the same run.

GTA_VERIFIERS_PYTHON, GTA_OPENENV_PYTHON and GTA_NEMO_GYM_PYTHON name interpreters of environments
that have the plugins; without them they are installed (several minutes, 0.6 to 1.3 GB each). The
figures go to docs/measurements.md.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.measure
PROGRAM = Path(__file__).with_name("rl_frameworks.py")
EPISODES = 500  # in each way of playing: in process and served
LEAST = 0.5


def find_python(framework: str, folder: Path) -> Path:
    """The interpreter of the framework, installed by the documented commands if it is not named."""
    named = os.environ.get(f"GTA_{framework.upper()}_PYTHON")
    if named:
        return Path(named)
    plugin = REPOSITORY / "plugins" / framework
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    extra = "[forge]" if framework == "verifiers" else ""
    for what in (["--upgrade", "pip"], [f"{plugin}{extra}"], ["--no-deps", str(REPOSITORY)]):
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *what], check=True)
    return python


@pytest.mark.parametrize("framework", ["verifiers", "openenv", "nemo_gym"])
def test_a_framework_plays_the_same_episodes_at_half_the_speed_of_bare_ones(
    framework: str, loopback: None, tmp_path: Path
) -> None:
    python = find_python(framework, tmp_path / "environment")
    paths = [str(REPOSITORY / "src"), str(REPOSITORY / "plugins" / framework / "src")]
    ran = subprocess.run(
        [str(python), str(PROGRAM), framework, str(EPISODES), str(tmp_path / "work")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    print(json.dumps(found, indent=2))
    assert found["same"], "the same seed is not the same episode"
    assert not found["left"], "an episode leaves no files behind"
    for way in found["ways"].values():
        assert (way["episodes"], way["gold"], way["empty"]) == (EPISODES, [1.0], [0.0])
    bare = found["ways"].pop("bare")
    ratios = {name: way["cpu"] / bare["cpu"] for name, way in found["ways"].items()}
    print(framework, ratios)
    assert max(ratios.values()) >= LEAST
