"""Style transfer by Magenta's network of 26 styles; runs inside a worker process."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from gta_bench.errors import ToolError
from gta_bench.tools.backends.pictures import decode, encode, shrunk
from gta_bench.tools.backends.worker import JobOutcome

if TYPE_CHECKING:
    from PIL.Image import Image

STYLES = 26
LONGEST = 1024
SHORTEST = 32
STEP = 4  # the network halves a side twice


def job(data: bytes, options: Mapping[str, JsonValue]) -> JobOutcome:
    """The picture as PNG, its longer side at most 1024 pixels."""
    path = str(options["path"])
    picture = shrunk(decode(data, path), LONGEST)
    if min(picture.size) < SHORTEST:
        width, height = picture.size
        raise ToolError(f"`{path}` is too small or too narrow for a style: {width} x {height}.")
    painted = _paint(_load(str(options["weights"])), picture, int(str(options["style"])))
    return JobOutcome(None, encode(painted))


def _paint(session: Any, picture: "Image", style: int) -> "Image":
    import numpy
    from PIL import Image

    width, height = picture.size
    pixels = numpy.asarray(picture, dtype=numpy.float32) / 255
    margins = ((0, -height % STEP), (0, -width % STEP), (0, 0))
    planes = numpy.pad(pixels, margins, mode="reflect").transpose(2, 0, 1)[None]
    weights = numpy.zeros(STYLES, dtype=numpy.float32)
    weights[style] = 1
    inputs = {"image": numpy.ascontiguousarray(planes), "style_weights": weights}
    (made,) = session.run(None, inputs)
    painted = made[0].transpose(1, 2, 0)[:height, :width].clip(0, 1)
    return Image.fromarray((painted * 255 + 0.5).astype(numpy.uint8))


@cache
def _load(folder: str) -> Any:
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    model = str(Path(folder) / "multistyle26.onnx")
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
