"""PitchShifting: a recording higher or lower by semitones, at the same length."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, Available, Made, Tool, ToolInput, file_part, text
from gta_bench.tools.media import ffmpeg
from gta_bench.tools.media.probing import open_media
from gta_bench.tools.media.sound import Samples, decode, encode, kept_format
from gta_bench.tools.packages import find_missing, name_and_version

UNCHANGED = "n_steps is 0, so the pitch is unchanged."


class PitchShiftingInput(ToolInput):
    """A file and an interval."""

    audio: str = Field(description="Path to the input audio file.")
    n_steps: float = Field(
        0.0,
        ge=-24,
        le=24,
        allow_inf_nan=False,
        description="Semitones to shift by, -24 to 24: 12 is one octave up, -12 one down.",
    )
    output_dir: str | None = Field(None, description="Accepted and ignored.")


class PitchShifting(Tool[PitchShiftingInput]):
    """Decodes in the jail, shifts in a thread, encodes in the jail."""

    name = "PitchShifting"
    category = "operation"
    description = (
        "This tool applies pitch shifting to an audio file, altering its pitch by a specified "
        "number of semitones."
    )
    version = "1"
    input_type = PitchShiftingInput
    outputs = (Parameter(type="audio", description="The audio, shifted by n_steps semitones."),)

    def check(self) -> Availability:
        lacking = find_missing("librosa", "numpy", extra="media") or ffmpeg.missing(self.equipment)
        return lacking or Available(_backend())

    async def apply(self, workspace: Workspace, given: PitchShiftingInput) -> Made:
        jail = self.equipment.need_jail()
        source = await open_media(jail, workspace, given.audio)
        samples = await decode(jail, source)
        shifted = await self.equipment.in_thread(_shifted, samples, given.n_steps)
        form = kept_format(source.media)
        made = await encode(jail, shifted, form)
        output = workspace.write(f"{source.stem}_shifted", made, suffix=form.suffix)
        note = () if given.n_steps else (text(UNCHANGED),)
        return Made((file_part("audio", output), *note), backend=_backend(), jail=jail.kind)


def _shifted(samples: Samples, semitones: float) -> Samples:
    from gta_bench.tools.media.effects import shift_pitch

    return samples.replaced(shift_pitch(samples.array(), samples.rate, semitones))


def _backend() -> str:
    return f"{name_and_version('librosa')}, {ffmpeg.program().backend}"
