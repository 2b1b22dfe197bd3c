"""Video for browsers: H.264 and AAC in an MP4 that starts before it is fully loaded."""

from collections.abc import Mapping, Sequence

from gta_bench.confine.jail import Jail
from gta_bench.confine.workspace import OutputFile, Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.media import ffmpeg
from gta_bench.tools.media.probing import ProbedFile, probe

NEEDS = ("libx264",)
MADE = "made.mp4"
EVEN = "scale=trunc(iw/2)*2:trunc(ih/2)*2,setsar=1,format=yuv420p"  # H.264 wants even sides
COPIED = ("aac", "mp3")  # sound that an MP4 may contain and browsers can play


async def render(
    jail: Jail,
    source: ProbedFile,
    *,
    problem: str,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
    over: str | None = None,
    extra: Mapping[str, bytes] | None = None,
    copy_sound: bool = False,
) -> bytes:
    """Return the video, encoded again with its sound.

    `before` goes before the input, `after` before the output. `over` are filters that make one
    picture to overlay on every frame, from the files `extra`. `copy_sound` copies the sound without
    encoding it, if an MP4 may contain it.
    """
    source.need_picture()
    graph = f"[0:V:0]{EVEN}[out]"
    if over is not None:
        graph = f"{over}[over];[0:V:0][over]overlay=eof_action=repeat,{EVEN}[out]"
    arguments = [*ffmpeg.reading(ffmpeg.INPUT, *before), "-filter_complex", graph]
    arguments += ["-map", "[out]", "-map", "0:a:0?", "-map_chapters", "-1", "-threads", "2", *after]
    arguments += ["-c:v", "libx264", "-preset", "veryfast", "-crf", "20"]
    arguments += [
        *_sound_arguments(source, copy=copy_sound),
        "-movflags",
        "+faststart",
        "-f",
        "mp4",
        MADE,
    ]
    inputs = {ffmpeg.INPUT: source.data, **(extra or {})}
    made = await ffmpeg.convert(jail, inputs, arguments, problem=problem)
    return made[MADE]


async def keep(
    jail: Jail, workspace: Workspace, name: str, made: bytes
) -> tuple[OutputFile, float]:
    """Write a video after checking that it has pictures; also returns its length in seconds."""
    media = await probe(jail, made, path=name)
    if media.picture is None or not media.seconds:
        raise ToolError(f"`{name}` would have no pictures.")
    return workspace.write(name, made, suffix=".mp4"), media.seconds


def _sound_arguments(source: ProbedFile, *, copy: bool) -> list[str]:
    track = source.media.sound
    if track is None:
        return []
    if copy and track.codec in COPIED:
        return ["-c:a", "copy"]
    return ["-c:a", "aac", "-b:a", "160k", "-ac", str(min(2, max(1, track.channels)))]
