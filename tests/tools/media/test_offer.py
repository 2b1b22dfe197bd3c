"""What the audio and video tools say of themselves: upstream's names, and honest availability."""

import json
from pathlib import Path

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.records.tools import ToolSpec
from gta_bench.settings import Settings
from gta_bench.tools.contract import Available, Equipment, Unavailable
from gta_bench.tools.media import ffmpeg, lettering
from gta_bench.tools.toolbox import Toolbox

MEDIA = (
    *("AudioClipTool", "NoiseReduction", "PitchShifting", "VideoClip", "AddTextVideoTool"),
    *("SoundCharacteristicExtraction", "SpeechToText", "VideoDescription"),
    *("VideoObjectDetection", "VideoOCR", "TextToVideoTool"),
)
# Intended, and rows of docs/deviations.md.
ADDED = {
    "PitchShifting": {"n_steps"},
    "AddTextVideoTool": {"text", "position", "color", "font_scale", "thickness", "filename"},
}
TYPES = {"start_time": "float", "end_time": "float"}


def specs() -> dict[str, ToolSpec]:
    return Toolbox(Equipment(Settings()), MEDIA).specs()


@pytest.mark.parametrize("name", MEDIA)
def test_names_types_and_requiredness_are_upstreams(workflow_dir: Path, name: str) -> None:
    upstream = json.loads((workflow_dir / "toolmeta.json").read_text(encoding="utf-8"))[name]
    spec = specs()[name]
    theirs = {entry["name"]: entry for entry in upstream["inputs"]}
    ours = {str(entry.name): entry for entry in spec.inputs}
    assert set(ours) - set(theirs) == ADDED.get(name, set())
    assert set(theirs) <= set(ours)
    for parameter, entry in theirs.items():
        assert ours[parameter].optional == entry["optional"]
        assert ours[parameter].type == TYPES.get(parameter, entry["type"])
    assert spec.description == upstream["description"]
    assert [output.type for output in spec.outputs] == [
        output["type"] for output in upstream["outputs"]
    ]


def test_without_a_jail_each_tool_says_so() -> None:
    box = Toolbox(Equipment(Settings()), MEDIA)
    for name in MEDIA:
        state = box.availability(name)
        assert isinstance(state, Unavailable), name
        assert state.fix


def test_what_needs_no_model_is_available_with_its_versions(media_box: Toolbox) -> None:
    for name in ("AudioClipTool", "VideoClip", "AddTextVideoTool"):
        state = media_box.availability(name)
        assert isinstance(state, Available)
        assert state.backend.startswith("ffmpeg ")


def test_a_machine_without_ffmpeg_is_told_the_package(tmp_path: Path) -> None:
    assert ffmpeg.find_ffmpeg(str(tmp_path)) is None
    for name, content in (("ffmpeg", "#!/bin/sh\nexit 1\n"), ("ffprobe", "")):
        (tmp_path / name).write_text(content, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    ffmpeg.find_ffmpeg.cache_clear()
    assert ffmpeg.find_ffmpeg(str(tmp_path)) is None
    assert ffmpeg.FIX == "apt install ffmpeg"


def test_an_ffmpeg_without_an_encoder_is_told_by_name(media_box: Toolbox, jail: Jail) -> None:
    lacking = ffmpeg.missing(Equipment(Settings(), jail=jail), "libx264", "libnothing")
    assert lacking is not None
    assert "was built without libnothing." in lacking.reason


def test_a_machine_without_the_font_is_told_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(lettering, "FONTS", tmp_path)
    lettering.font_missing.cache_clear()
    try:
        lacking = lettering.font_missing()
    finally:
        lettering.font_missing.cache_clear()
    assert lacking == Unavailable(
        "The font Noto Sans CJK is not installed.", "apt install fonts-noto-cjk"
    )
