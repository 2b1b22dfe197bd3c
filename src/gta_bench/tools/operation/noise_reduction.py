"""NoiseReduction: spectral gating of a recording, its format and its channels kept."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, Available, Made, Tool, ToolInput, file_part
from gta_bench.tools.media import ffmpeg
from gta_bench.tools.media.probing import open_media
from gta_bench.tools.media.sound import Samples, decode, encode, kept_format
from gta_bench.tools.packages import find_missing, name_and_version


class NoiseReductionInput(ToolInput):
    """A file."""

    audio: str = Field(description="Path to the input audio file.")
    output_dir: str | None = Field(None, description="Accepted and ignored.")


class NoiseReduction(Tool[NoiseReductionInput]):
    """Decodes in the jail, gates in a thread, encodes in the jail."""

    name = "NoiseReduction"
    category = "operation"
    description = (
        "This tool reduces noise in input audio files using spectral gating via the "
        "'noisereduce' library."
    )
    version = "1"
    input_type = NoiseReductionInput
    outputs = (Parameter(type="audio", description="The audio with reduced noise."),)

    def check(self) -> Availability:
        lacking = find_missing("noisereduce", "numpy", extra="media") or ffmpeg.missing(
            self.equipment
        )
        return lacking or Available(_backend())

    async def apply(self, workspace: Workspace, given: NoiseReductionInput) -> Made:
        jail = self.equipment.need_jail()
        source = await open_media(jail, workspace, given.audio)
        samples = await decode(jail, source)
        cleaned = await self.equipment.in_thread(_cleaned, samples)
        form = kept_format(source.media)
        made = await encode(jail, cleaned, form)
        output = workspace.write(f"{source.stem}_denoised", made, suffix=form.suffix)
        return Made((file_part("audio", output),), backend=_backend(), jail=jail.kind)


def _cleaned(samples: Samples) -> Samples:
    from gta_bench.tools.media.effects import reduce_noise

    return samples.replaced(reduce_noise(samples.array(), samples.rate))


def _backend() -> str:
    return f"{name_and_version('noisereduce')}, {ffmpeg.program().backend}"
