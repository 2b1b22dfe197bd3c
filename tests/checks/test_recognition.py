"""Text on pictures and speech: real models where they decide, and what happens without them."""

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageStat

from gta_bench.checks.decide import decide_leaf
from gta_bench.checks.delivery import CheckedWork, Recognition
from gta_bench.confine.jail import Jail
from gta_bench.errors import ToolUnavailable
from gta_bench.records.verdicts import Scored, Unscored
from gta_bench.records.workflow import Checkpoint
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.recognition import make_recognition
from tests.checks.works import decide, deliver
from tests.content import samples
from tests.content.films import counting_film, tone
from tests.needs import needs
from tests.tools.conftest import encoded, written
from tests.tools.media_weights import fetch_moonshine, fetch_speech

PICTURE = {"is": "image.text", "file": "a.png"}
SPEECH = {"is": "media.says", "file": "a.wav"}


def recognized(jail: Jail, weights: Path) -> Recognition:
    return make_recognition(Equipment(Settings(), jail=jail, weights=weights))


def found(work: CheckedWork, check: dict[str, Any]) -> tuple[float, str]:
    verdict = decide(work, check)
    assert isinstance(verdict, Scored), verdict
    return verdict.value, verdict.reason


@pytest.mark.slow
def test_text_on_a_picture_is_read(jail: Jail, tmp_path: Path) -> None:
    picture = encoded(written("Invoice 4711", "Total 23.50"))
    work = deliver({"a.png": picture}, jail, recognition=recognized(jail, tmp_path))
    assert found(work, {**PICTURE, "all": ["invoice 4711", "TOTAL"]})[0] == 10
    assert found(work, {**PICTURE, "all": ["Total", "Receipt"], "least": 1})[0] == 10
    points, reason = found(work, {**PICTURE, "all": ["Total", "Receipt"]})
    assert points == 0 and "Invoice 4711" in reason and "wanted 'Receipt'" in reason
    points, reason = found(work, {**PICTURE, "all": ["Bill", "Receipt"], "least": 1})
    assert points == 0 and reason.endswith("wanted 1 of 'Bill', 'Receipt'")


@pytest.mark.slow
@needs("ffmpeg")
def test_speech_is_heard(jail: Jail) -> None:
    weights, spoken = fetch_moonshine(), fetch_speech().read_bytes()
    work = deliver({"a.wav": spoken}, jail, recognition=recognized(jail, weights))
    assert (
        found(work, {**SPEECH, "all": ["ever failed", "fail better"], "none": ["gave up"]})[0] == 10
    )
    assert found(work, {**SPEECH, "all": ["fail", "succeed"], "least": 1})[0] == 10
    assert found(work, {**SPEECH, "all": ["succeed"]})[1].endswith("wanted 'succeed'")
    assert found(work, {**SPEECH, "none": ["fail again"]})[0] == 0
    assert found(work, {**SPEECH, "none": ["gain"]})[0] == 10, "a part of a word is no word"


@needs("ffmpeg")
def test_text_of_a_film_is_read_at_its_time(jail: Jail, tmp_path: Path) -> None:
    """The stand-in for recognition says how bright the frame is, which rises with its time."""
    calls = []

    async def read_picture(data: bytes) -> str:
        calls.append(data)
        with Image.open(io.BytesIO(data)) as frame:
            return "dark" if ImageStat.Stat(frame.convert("L")).mean[0] < 110 else "bright"

    async def hear(data: bytes, path: str) -> str:
        raise AssertionError

    files = {"a.wav": tone(tmp_path, "a.wav"), "film.mp4": counting_film(tmp_path, "film.mp4")}
    work = deliver(files, jail, recognition=Recognition(read_picture, hear))
    film = {"is": "media.shows", "file": "film.mp4"}
    assert found(work, {**film, "at": 0, "all": ["dark"]})[0] == 10
    assert found(work, {**film, "at": 1.8, "all": ["bright"]})[0] == 10
    assert found(work, {**film, "at": 1.8, "all": ["dark", "bright"], "least": 1})[0] == 10
    assert len(calls) == 2, "what was read once is kept"
    assert found(work, {**film, "at": 0, "all": ["bright"]}) == (
        0,
        "film.mp4, second 0: found 'dark', wanted 'bright'",
    )
    assert found(work, {**film, "at": 9, "all": ["dark"]}) == (
        0,
        "film.mp4: no frame can be decoded at second 9",
    )
    sound = {**film, "file": "a.wav", "at": 0, "all": ["dark"]}
    assert found(work, sound) == (0, "a.wav: has no film")


@needs("ffmpeg")
def test_without_weights_speech_is_unscored_with_the_reason(jail: Jail, tmp_path: Path) -> None:
    files = {"a.wav": tone(tmp_path, "a.wav"), "film.mp4": counting_film(tmp_path, "film.mp4")}
    work = deliver(files, jail, recognition=recognized(jail, tmp_path / "empty"))
    verdict = decide(work, {**SPEECH, "all": ["x"]})
    assert isinstance(verdict, Unscored) and verdict.cause == "check_failed"
    assert "Moonshine tiny are not here. gta tools fetch moonshine-tiny" in verdict.detail
    silent = {"is": "media.says", "file": "film.mp4", "all": ["x"]}
    assert found(work, silent) == (0, "film.mp4: has no sound")


def test_without_recognition_the_leaf_is_unscored(jail: Jail) -> None:
    verdict = decide(deliver({"a.png": samples.image(9, 9)}, jail), {**PICTURE, "all": ["x"]})
    assert isinstance(verdict, Unscored) and "no recognition of text" in verdict.detail


def test_a_model_that_fails_leaves_the_leaf_unscored_and_is_asked_again(jail: Jail) -> None:
    calls = []

    async def read_picture(data: bytes) -> str:
        calls.append(data)
        if len(calls) == 1:
            raise ToolUnavailable("Text recognition failed.", fix="Run it again.")
        return "Total 5"

    async def hear(data: bytes, path: str) -> str:
        raise AssertionError

    work = deliver({"a.png": samples.noise(9)}, jail, recognition=Recognition(read_picture, hear))
    check = {**PICTURE, "all": ["total"]}
    assert isinstance(decide(work, check), Unscored)
    assert found(work, check)[0] == found(work, check)[0] == 10
    assert len(calls) == 2, "what was read once is kept"
    leaf = Checkpoint.model_validate({"id": "a", "by": "check", "checks": [check]})
    assert asyncio.run(decide_leaf(leaf, work)).type == "scored"
