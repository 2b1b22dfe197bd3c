"""AddTextVideoTool: text on every frame of a video; the audio is copied."""

import re
from collections.abc import Mapping

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, Available, Made, Tool, ToolInput, file_part
from gta_bench.tools.media import ffmpeg, lettering, video
from gta_bench.tools.media.lettering import EM_PER_SCALE, MARGIN
from gta_bench.tools.media.probing import MovingPicture, open_media
from gta_bench.tools.operation.shared import ClipName

NEEDS = (*video.NEEDS, "libfreetype", "libfontconfig")
TEXT_FILE = "text.txt"
BRIGHT = 128


class AddTextVideoInput(ToolInput):
    """A video, a text and its style."""

    video: str = Field(description="Path to the input video file.")
    text: str = Field(description="The text to show.")
    position: str = Field(
        "50,50", description="'x,y' in pixels: left end and base line of the first line of text."
    )
    color: str = Field("255,255,255", description="'B,G,R', each 0 to 255.")
    font_scale: float = Field(
        1.0, gt=0, le=20, allow_inf_nan=False, description="Size: 1 is a font of 30 pixels."
    )
    thickness: int = Field(2, ge=1, le=20, description="Weight of the letters; 3 or more is bold.")
    filename: ClipName = None
    output_dir: str | None = Field(None, description="Accepted and ignored.")


class AddTextVideoTool(Tool[AddTextVideoInput]):
    """Draws the text from a file, so that none of it is read as a filter option."""

    name = "AddTextVideoTool"
    category = "operation"
    description = "This tool is used to add text watermarks or annotations to a video."
    version = "1"
    input_type = AddTextVideoInput
    outputs = (Parameter(type="video", description="The video with the text, as MP4."),)

    def check(self) -> Availability:
        lacking = ffmpeg.missing(self.equipment, *NEEDS) or lettering.font_missing()
        return lacking or Available(ffmpeg.program().backend)

    async def apply(self, workspace: Workspace, given: AddTextVideoInput) -> Made:
        point = _read_numbers("position", given.position, ("x", "y"))
        color = _read_color(given.color)
        text = lettering.clean(given.text)
        jail = self.equipment.need_jail()
        source = await open_media(jail, workspace, given.video)
        lines, style = _build_filters(given, text, point, color, source.need_picture())
        made = await video.render(
            jail,
            source,
            problem=f"Text cannot be put on `{source.path}`",
            over=style,
            extra={TEXT_FILE: "\n".join(lines).encode()},
            copy_sound=True,
        )
        name = given.filename or f"{source.stem}_text"
        output, _ = await video.keep(jail, workspace, name, made)
        part = file_part("video", output)
        return Made((part,), backend=ffmpeg.program().backend, jail=jail.kind)


def _build_filters(
    given: AddTextVideoInput,
    text: str,
    point: tuple[int, ...],
    color: tuple[int, ...],
    picture: MovingPicture,
) -> tuple[tuple[str, ...], str]:
    """Return the lines and ffmpeg's filters for them: first an outline, then the letters."""
    # Text that begins in the right half is moved to the left as far as necessary.
    x, y = point  # the left end of the first line, on its baseline
    left = x if MARGIN <= x <= picture.width // 2 else MARGIN
    lines, size = lettering.fit(
        text,
        size=max(lettering.SMALLEST, round(EM_PER_SCALE * given.font_scale)),
        width=max(1, picture.width - left - MARGIN),
        height=picture.height - 2 * MARGIN,
    )
    blue, green, red = color
    contrast = "black" if 0.11 * blue + 0.59 * green + 0.3 * red >= BRIGHT else "white"
    own = f"0x{red:02x}{green:02x}{blue:02x}"
    bold = min((given.thickness - 1) // 2, size // 8)
    shared = {
        "font": lettering.family(text),
        "textfile": f"../inputs/{TEXT_FILE}",
        "expansion": "none",
        "fontsize": str(size),
        "fontcolor": own,
        "x": f"'max({MARGIN},min({x},w-text_w-{MARGIN}))'",
        "y": f"'max({MARGIN},min({y}-ascent,h-text_h-{MARGIN}))'",
    }
    outline = {"borderw": str(bold + max(1, size // 24)), "bordercolor": contrast}
    letters = {"borderw": str(bold), "bordercolor": own}
    draw = ",".join(_drawtext({**shared, **border}) for border in (outline, letters))
    # Drawn once instead of on each frame, which would double the time.
    blank = f"color=black@0:size={picture.width}x{picture.height},trim=end_frame=1,format=rgba"
    return lines, f"{blank},{draw}"


def _drawtext(options: Mapping[str, str]) -> str:
    return "drawtext=" + ":".join(f"{name}={value}" for name, value in options.items())


def _read_numbers(name: str, given: str, parts: tuple[str, ...]) -> tuple[int, ...]:
    """Read whole numbers separated by commas, with or without brackets."""
    found = re.fullmatch(r"\s*[(\[]?\s*(-?\d{1,6}(?:\s*,\s*-?\d{1,6})*)\s*[)\]]?\s*", given)
    numbers = tuple(int(number) for number in found[1].split(",")) if found else ()
    if len(numbers) != len(parts):
        wanted = ",".join(parts)
        raise ToolError(f"{name} is {given[:40]!r}; write {wanted!r} as whole numbers.")
    return numbers


def _read_color(given: str) -> tuple[int, ...]:
    color = _read_numbers("color", given, ("B", "G", "R"))
    if not all(0 <= part <= 255 for part in color):
        raise ToolError(f"color is {given[:40]!r}; each of B, G and R must be from 0 to 255.")
    return color
