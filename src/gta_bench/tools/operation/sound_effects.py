"""NoiseReduction and PitchShifting: a changed recording in the format of the input."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import (
    Availability,
    Available,
    Input,
    Made,
    Tool,
    ToolInput,
    file_part,
    text,
)
from gta_bench.tools.media import ffmpeg
from gta_bench.tools.media.probing import open_media
from gta_bench.tools.media.sound import Samples, decode, encode, find_format
from gta_bench.tools.packages import find_missing, name_and_version

UNCHANGED = "n_steps is 0, so the pitch is unchanged."


class SoundEffect(Tool[Input]):
    """Decodes in the jail, changes the samples in a thread, encodes in the jail."""

    category = "operation"
    version = "1"
    package: ClassVar[str]

    def check(self) -> Availability:
        lacking = find_missing(self.package, "numpy", extra="media")
        lacking = lacking or ffmpeg.missing(self.equipment)
        return lacking or Available(self._backend())

    def _backend(self) -> str:
        return f"{name_and_version(self.package)}, {ffmpeg.program().backend}"

    async def _change(
        self, workspace: Workspace, audio: str, change: Callable[[Samples], Samples], ending: str
    ) -> Made:
        jail = self.equipment.need_jail()
        source = await open_media(jail, workspace, audio)
        samples = await decode(jail, source)
        changed = await self.equipment.in_thread(change, samples)
        form = find_format(source.media)
        data = await encode(jail, changed, form)
        output = workspace.write(f"{source.stem}_{ending}", data, suffix=form.suffix)
        return Made((file_part("audio", output),), backend=self._backend(), jail=jail.kind)


class NoiseReductionInput(ToolInput):
    """A recording."""

    audio: str = Field(description="Path to the input audio file.")
    output_dir: str | None = Field(None, description="Accepted and ignored.")


class NoiseReduction(SoundEffect[NoiseReductionInput]):
    """Spectral gating of a recording; its channels are kept."""

    name = "NoiseReduction"
    description = (
        "This tool reduces noise in input audio files using spectral gating via the "
        "'noisereduce' library."
    )
    input_type = NoiseReductionInput
    outputs = (Parameter(type="audio", description="The audio with reduced noise."),)
    package = "noisereduce"

    async def apply(self, workspace: Workspace, given: NoiseReductionInput) -> Made:
        def reduce(samples: Samples) -> Samples:
            from gta_bench.tools.media.effects import reduce_noise

            return samples.replaced(reduce_noise(samples.array(), samples.rate))

        return await self._change(workspace, given.audio, reduce, "denoised")


class PitchShiftingInput(ToolInput):
    """A recording and an interval."""

    audio: str = Field(description="Path to the input audio file.")
    n_steps: float = Field(
        0.0,
        ge=-24,
        le=24,
        allow_inf_nan=False,
        description="Semitones to shift by, -24 to 24: 12 is one octave up, -12 one down.",
    )
    output_dir: str | None = Field(None, description="Accepted and ignored.")


class PitchShifting(SoundEffect[PitchShiftingInput]):
    """Shifts a recording up or down by semitones; its length is kept."""

    name = "PitchShifting"
    description = (
        "This tool applies pitch shifting to an audio file, altering its pitch by a specified "
        "number of semitones."
    )
    input_type = PitchShiftingInput
    outputs = (Parameter(type="audio", description="The audio, shifted by n_steps semitones."),)
    package = "librosa"

    async def apply(self, workspace: Workspace, given: PitchShiftingInput) -> Made:
        def shift(samples: Samples) -> Samples:
            from gta_bench.tools.media.effects import shift_pitch

            return samples.replaced(shift_pitch(samples.array(), samples.rate, given.n_steps))

        made = await self._change(workspace, given.audio, shift, "shifted")
        return made if given.n_steps else replace(made, parts=(*made.parts, text(UNCHANGED)))
