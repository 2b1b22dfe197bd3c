"""Films and sounds for the tests, made by ffmpeg."""

import subprocess
from pathlib import Path


def ffmpeg(folder: Path, name: str, *arguments: str) -> bytes:
    """What ffmpeg makes with these arguments."""
    target = folder / name
    argv = ["ffmpeg", "-v", "error", "-nostdin", "-y", *arguments, str(target)]
    subprocess.run(argv, check=True, timeout=60)
    return target.read_bytes()


def counting_film(folder: Path, name: str, *arguments: str, frames: int = 50) -> bytes:
    """A film at 25 frames a second whose frame n has the gray level 4 n + 16."""
    source = (
        f"color=c=black:s=64x48:r=25:d={frames / 25},format=yuv444p,geq=lum=16+4*N:cb=128:cr=128"
    )
    return ffmpeg(folder, name, "-f", "lavfi", "-i", source, *arguments)


def tone(folder: Path, name: str, *arguments: str, seconds: float = 2.0) -> bytes:
    """A stereo tone: 440 Hz on the left, silence on the right."""
    source = f"aevalsrc=sin(2*PI*440*t)|0:s=44100:d={seconds}"
    return ffmpeg(folder, name, "-f", "lavfi", "-i", source, *arguments)
