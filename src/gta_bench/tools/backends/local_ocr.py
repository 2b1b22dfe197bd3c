"""Text recognition by RapidOCR; runs inside a worker process."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from gta_bench.tools.backends.boxes import clamp
from gta_bench.tools.backends.pictures import decode
from gta_bench.tools.backends.worker import Outcome

if TYPE_CHECKING:
    from rapidocr import RapidOCR

# Threads of one session spin while they wait for each other, which is slower on busy cores.
PARAMETERS = {
    "Global.log_level": "error",
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}


def job(data: bytes, options: Mapping[str, JsonValue]) -> Outcome:
    """Lines as `[x1, y1, x2, y2, text]`, in the order in which they are read."""
    import numpy

    picture = decode(data, str(options["path"]))
    found: Any = _engine()(numpy.asarray(picture)[:, :, ::-1])
    if found.boxes is None or found.txts is None:
        return Outcome([])
    lines: list[JsonValue] = []
    for corners, text in zip(found.boxes, found.txts, strict=True):
        low, high = corners.min(axis=0), corners.max(axis=0)
        box = clamp([*low.tolist(), *high.tolist()], picture.size)
        lines.append([*box, " ".join(text.split())])
    return Outcome(lines)


@cache
def _engine() -> "RapidOCR":
    from rapidocr import RapidOCR

    return RapidOCR(params=PARAMETERS)
