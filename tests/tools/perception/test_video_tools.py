"""VideoOCR and VideoObjectDetection as an agent calls them, on the two films of GTA-Workflow."""

import asyncio
import re
from pathlib import Path

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.confine.workspace import Workspace
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.toolbox import Toolbox
from tests.needs import needs

pytestmark = [pytest.mark.slow, needs("ffmpeg")]
LOOKED = re.compile(r"Looked at (\d+) of (\d+) frames of the ([\d.]+) s, at (.*?) s\.")
FILMS = {"video/90-2.mp4": (29, 3.48), "reddit_data/133/video.mp4": (None, 12.0)}


@pytest.mark.parametrize("tool", ["VideoOCR", "VideoObjectDetection"])
@pytest.mark.parametrize("film", FILMS)
def test_real_films_give_bounded_output_with_the_right_times(
    tool: str, film: str, workflow_dir: Path, tmp_path: Path, jail: Jail, offline: Equipment
) -> None:
    frames, seconds = FILMS[film]
    source = workflow_dir / "resources" / film
    workspace = Workspace.create(tmp_path, {"inputs/film.mp4": source})
    toolbox = Toolbox(Equipment(Settings(), jail=jail, weights=offline.weights), [tool])
    result = asyncio.run(toolbox.call(workspace, tool, {"video": "inputs/film.mp4"}))
    assert len(result.text) < 25_000
    looked = re.search(
        r"Looked at (\d+) of (\d+) frames of the ([\d.]+) s, at (.*?) s\.", result.text
    )
    assert looked is not None
    assert 4 <= int(looked[1]) <= 16
    assert float(looked[3]) == pytest.approx(seconds, abs=0.5)
    assert frames is None or int(looked[2]) == frames
    times = [float(time) for time in looked[4].split(", ")]
    assert times == sorted(times)
    assert 0 <= times[0] < times[-1] <= float(looked[3])
