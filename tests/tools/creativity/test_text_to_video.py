import re
from pathlib import Path

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.settings import EndpointSettings, Settings, ToolSettings
from gta_bench.tools.contract import Available, Equipment, Unavailable
from gta_bench.tools.toolbox import Toolbox
from tests.needs import needs
from tests.tools.media_files import call, make_stereo, make_video, streams, workspace_of
from tests.tools.media_server import Script, said, serving

JOB = "GET /v1/videos/v-1"


def video_box(jail: Jail, url: str) -> Toolbox:
    settings = Settings(
        endpoints={"studio": EndpointSettings(url=url, model="film-3")},
        tools={"TextToVideoTool": ToolSettings(endpoint="studio")},
    )
    return Toolbox(Equipment(settings, jail=jail))


def script(content: bytes) -> Script:
    return Script(
        {
            "POST /v1/videos": [said({"id": "v-1", "status": "queued"})],
            JOB: [
                said({"id": "v-1", "status": "in_progress"}),
                said({"id": "v-1", "status": "completed"}),
            ],
            f"{JOB}/content": [(200, content)],
        }
    )


@pytest.mark.slow
@needs("ffmpeg")
@pytest.mark.parametrize(
    ("name", "options"),
    [("made.mp4", ("-c:v", "libx264")), ("made.webm", ("-c:v", "libvpx"))],
)
def test_the_video_of_the_endpoint_is_kept_as_it_is(
    loopback: None, jail: Jail, tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    made = make_video(tmp_path / name, seconds=1, sound=False, options=options)
    follow = script(made.read_bytes())
    workspace = workspace_of(tmp_path)
    with serving(follow) as url:
        result = call(
            video_box(jail, url), workspace, "TextToVideoTool", description="A cat", output_dir="/"
        )
    kept = workspace.root / result.parts[0].content
    assert kept.name == f"video{made.suffix}"
    assert kept.read_bytes() == made.read_bytes()
    assert set(streams(kept)) == {"video"}
    assert re.fullmatch(r"film-3 at 127.0.0.1:\d+ \(endpoint studio\)", result.backend)
    assert b'"A cat"' in follow.asked[0][1]
    assert [path for path, _ in follow.asked].count(JOB) == 2


@pytest.mark.slow
@needs("ffmpeg")
def test_what_is_no_video_is_not_kept(loopback: None, jail: Jail, tmp_path: Path) -> None:
    sound = make_stereo(tmp_path / "a.mp3", seconds=0.5).read_bytes()
    for content, told in ((b"<html>busy</html>", "cannot be read"), (sound, "not an MP4 or WebM")):
        workspace = workspace_of(tmp_path / told.split()[0])
        with serving(script(content)) as url, pytest.raises(ToolError, match=told):
            call(video_box(jail, url), workspace, "TextToVideoTool", description="A cat")
        assert workspace.outputs().files == ()


def test_a_job_that_fails_is_told_with_its_reason(
    loopback: None, jail: Jail, tmp_path: Path
) -> None:
    follow = script(b"")
    failed = {"id": "v-1", "status": "failed", "error": {"message": "not allowed"}}
    follow.replies["POST /v1/videos"] = [said(failed)]
    with serving(follow) as url, pytest.raises(ToolError, match="made no video: not allowed"):
        call(video_box(jail, url), workspace_of(tmp_path), "TextToVideoTool", description="A cat")


def test_without_an_endpoint_there_is_no_video_at_all(
    media_box: Toolbox, jail: Jail, tmp_path: Path
) -> None:
    """Upstream draws a moving square with the first letters of the text."""
    state = media_box.availability("TextToVideoTool")
    assert isinstance(state, Unavailable)
    assert state.reason == "no endpoint is set for TextToVideoTool."
    with pytest.raises(ToolUnavailable, match="no endpoint is set"):
        call(media_box, workspace_of(tmp_path), "TextToVideoTool", description="A cat")
    ready = video_box(jail, "http://127.0.0.1:9/v1").availability("TextToVideoTool")
    assert ready == Available("film-3 at 127.0.0.1:9 (endpoint studio)")
