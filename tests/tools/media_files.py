"""Sounds and videos for tests, made by ffmpeg outside the jail, and a look at what tools made."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.records.calls import ToolResult
from gta_bench.tools.toolbox import Toolbox

STEREO = "aevalsrc=0.5*sin(2*PI*440*t)|0.5*sin(2*PI*660*t):s=44100:d={seconds}"
PICTURES = "testsrc=size={size}:rate={rate}:duration={seconds}"


def ffmpeg(*arguments: str) -> None:
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *arguments], check=True)


def make_stereo(file: Path, *, seconds: float = 5.0, options: tuple[str, ...] = ()) -> Path:
    """440 Hz on the left, 660 Hz on the right."""
    ffmpeg("-f", "lavfi", "-i", STEREO.format(seconds=seconds), *options, str(file))
    return file


def make_video(
    file: Path,
    *,
    seconds: float = 4.0,
    rate: str = "25",
    size: str = "320x240",
    sound: bool = True,
    options: tuple[str, ...] = ("-c:v", "libx264", "-pix_fmt", "yuv420p"),
) -> Path:
    """A moving test picture that shows its seconds, with a tone."""
    pictures = PICTURES.format(size=size, rate=rate, seconds=seconds)
    tone = ["-f", "lavfi", "-i", f"sine=440:duration={seconds}"] if sound else []
    ffmpeg("-f", "lavfi", "-i", pictures, *tone, *options, str(file))
    return file


def ffprobe(file: Path) -> dict[str, Any]:
    command = ["ffprobe", "-v", "error", "-show_format", "-show_streams", "-of", "json", str(file)]
    ran = subprocess.run(command, check=True, capture_output=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def streams(file: Path) -> dict[str, Any]:
    """The streams by their kind."""
    return {stream["codec_type"]: stream for stream in ffprobe(file)["streams"]}


def heard(file: Path, *, rate: int = 44_100) -> NDArray[np.float32]:
    """What a player would play: one row a channel."""
    channels = int(streams(file)["audio"]["channels"])
    command = ["ffmpeg", "-v", "error", "-i", str(file), "-map", "0:a:0"]
    command += ["-ar", str(rate), "-f", "f32le", "-"]
    raw = subprocess.run(command, check=True, capture_output=True).stdout
    return np.frombuffer(raw, dtype="<f4").reshape(-1, channels).T


def fundamental(wave: NDArray[np.float32], *, rate: int = 44_100) -> float:
    """The strongest frequency."""
    power = np.abs(np.fft.rfft(wave * np.hanning(wave.size)))
    return float(power.argmax()) * rate / wave.size


def pictures(file: Path, *, width: int, height: int) -> NDArray[np.uint8]:
    """All frames in RGB: time, row, column, color."""
    command = [
        "ffmpeg",
        "-v",
        "error",
        "-i",
        str(file),
        "-map",
        "0:v:0",
        "-fps_mode",
        "passthrough",
    ]
    command += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(command, check=True, capture_output=True).stdout
    return np.frombuffer(raw, dtype=np.uint8).reshape(-1, height, width, 3)


def workspace_of(folder: Path, *files: Path) -> Workspace:
    return Workspace.create(folder / "space", {f"inputs/{file.name}": file for file in files})


def call(toolbox: Toolbox, workspace: Workspace, tool: str, **arguments: JsonValue) -> ToolResult:
    return asyncio.run(toolbox.call(workspace, tool, arguments))


def made_file(workspace: Workspace, result: ToolResult) -> Path:
    """The file that a result names, on this machine."""
    return workspace.root / result.parts[0].content
