"""ffmpeg and ffprobe, always in the jail, on one untrusted file that cannot refer to others."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailLimits, ProgramResult
from gta_bench.errors import ToolError
from gta_bench.tools.contract import Equipment, Unavailable

# The folders of programs that the jail shows.
PATH = "/usr/local/bin:/usr/bin:/bin"
INPUT = "media"
FIX = "apt install ffmpeg"

# Formats with their own content. Playlists (hls, dash, concat), scripts (lavfi), pictures by
# pattern (image2) and subtitles are left out, because they name other files.
DEMUXERS = (
    "aac,ac3,aiff,amr,ape,asf,au,avi,caf,flac,flv,gif,h264,hevc,ivf,m4v,matroska,webm,"
    "mov,mp4,m4a,3gp,3g2,mj2,mp3,mpc,mpeg,mpegts,mpegvideo,ogg,tta,w64,wav,wv"
)
READ_SAFELY = ("-protocol_whitelist", "file,pipe", "-format_whitelist", DEMUXERS)
OWN_INPUT = re.compile(rf"\S*inputs/{INPUT}\S*:\s*|\[[^]]*@ 0x[0-9a-f]+\]\s*")

LOOK = JailLimits(wall_seconds=15.0, cpu_seconds=20, output_bytes=8 * MIB)
# Raw samples are about ten times larger than the file that they come from.
WORK = JailLimits(
    wall_seconds=120.0,
    cpu_seconds=240,
    memory_bytes=3072 * MIB,
    file_bytes=320 * MIB,
    disk_bytes=512 * MIB,
)


class Ffmpeg(NamedTuple):
    """An installed ffmpeg: its version and what it was built with."""

    ffmpeg: str
    ffprobe: str
    version: str
    features: frozenset[str]

    @property
    def backend(self) -> str:
        """Return its name and version, as results record it."""
        return f"ffmpeg {self.version}"


@cache
def find_ffmpeg(path: str = PATH) -> Ffmpeg | None:
    """Return the ffmpeg of this machine with its version, if it is installed."""
    ffmpeg, ffprobe = shutil.which("ffmpeg", path=path), shutil.which("ffprobe", path=path)
    if ffmpeg is None or ffprobe is None:
        return None
    try:
        ran = subprocess.run([ffmpeg, "-version"], capture_output=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    words = ran.stdout.decode("utf-8", "replace").split()
    features = frozenset(word[9:] for word in words if word.startswith("--enable-"))
    return Ffmpeg(ffmpeg, ffprobe, words[2] if len(words) > 2 else "of unknown version", features)


def missing(equipment: Equipment, *features: str) -> Unavailable | None:
    """Return why ffmpeg does not work here, if so; `features` as in `--enable-libx264`."""
    found = find_ffmpeg()
    if found is None:
        return Unavailable("ffmpeg is not installed.", FIX)
    absent = [feature for feature in features if feature not in found.features]
    if absent:
        reason = f"ffmpeg {found.version} was built without {', '.join(absent)}."
        return Unavailable(reason, "Install a full build: apt install ffmpeg")
    return equipment.no_jail if equipment.jail is None else None


def program() -> Ffmpeg:
    """Return the installed ffmpeg; raises ToolError if there is none."""
    found = find_ffmpeg()
    if found is None:
        raise ToolError(f"ffmpeg is not installed. Install it: {FIX}")
    return found


async def look(jail: Jail, data: bytes, arguments: Sequence[str], *, path: str) -> bytes:
    """Return what ffprobe prints about a file; `path` names it in errors."""
    argv = [program().ffprobe, "-v", "error", *READ_SAFELY, *arguments, f"file:../inputs/{INPUT}"]
    ran = await jail.run_program(argv, inputs={INPUT: data}, limits=LOOK, allow_fork=False)
    _check_success(ran, f"`{path}` cannot be read as audio or video")
    return ran.stdout


async def convert(
    jail: Jail,
    inputs: Mapping[str, bytes],
    arguments: Sequence[str],
    *,
    problem: str,
    limits: JailLimits = WORK,
) -> Mapping[str, bytes]:
    """Return the files that ffmpeg makes; raises ToolError with `problem` if it fails.

    `arguments` name an input by `reading()`, or as `../inputs/NAME` inside a filter.
    """
    argv = [program().ffmpeg, "-v", "error", "-nostdin", "-y", "-hide_banner", *arguments]
    ran = await jail.run_program(argv, inputs=inputs, limits=limits, allow_fork=False)
    _check_success(ran, problem)
    return ran.files


def reading(name: str = INPUT, *options: str) -> list[str]:
    """Return the arguments that open an input safely; `options` go before it."""
    return [*READ_SAFELY, *options, "-i", f"file:../inputs/{name}"]


def _check_success(ran: ProgramResult, problem: str) -> None:
    """Raise ToolError with ffmpeg's last line, without addresses and our own paths."""
    if ran.succeeded:
        return
    lines = OWN_INPUT.sub("", ran.stderr.decode("utf-8", "replace")).strip().splitlines()
    if any("not on whitelist" in line for line in lines):
        raise ToolError(f"{problem}: it is a playlist or another format that is not supported.")
    cause = lines[-1].strip()[:200].rstrip(".") if lines else "there was no output"
    raise ToolError(f"{problem}: {cause}.")
