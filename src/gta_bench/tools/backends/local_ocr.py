"""Text recognition by RapidOCR; runs inside a worker process."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import JsonValue

from gta_bench.tools.backends.boxes import clamp
from gta_bench.tools.backends.pictures import decode
from gta_bench.tools.backends.worker import JobOutcome

if TYPE_CHECKING:
    from PIL.Image import Image
    from rapidocr import RapidOCR

# RapidOCR itself enlarges the shorter side to 736 pixels however long the other one gets: an
# image of 3 x 900 pixels takes minutes, and no more words are found in others. Pictures are
# fitted here instead.
LONGEST = 2000
SHORTEST = 64
PARAMETERS = {
    "Global.log_level": "error",
    "Det.limit_type": "max",
    "Det.limit_side_len": LONGEST,
    # At its default of 0.9 the classifier turns upright lines upside down.
    "Cls.cls_thresh": 0.99,
    # Threads of one session spin while they wait for each other, which is slower on busy cores.
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}


class Fitted(NamedTuple):
    """A picture in the size that is read, and the factor by which it was scaled."""

    picture: "Image"
    factor: float


def job(data: bytes, options: Mapping[str, JsonValue]) -> JobOutcome:
    """Lines as `[x1, y1, x2, y2, text]`, in the order in which they are read."""
    import numpy

    picture = decode(data, str(options["path"]))
    fitted = fit(picture)
    found: Any = _engine()(numpy.asarray(fitted.picture)[:, :, ::-1])
    if found.boxes is None or found.txts is None:
        return JobOutcome([])
    lines: list[JsonValue] = []
    for corners, text in zip(found.boxes / fitted.factor, found.txts, strict=True):
        box = clamp([*corners.min(axis=0), *corners.max(axis=0)], picture.size)
        lines.append([*box, " ".join(text.split())])
    return JobOutcome(lines)


def fit(picture: "Image") -> Fitted:
    """The picture scaled down if it is large, and on white where it is narrow."""
    from PIL import Image

    factor = min(1.0, LONGEST / max(picture.size))
    width, height = (max(1, round(side * factor)) for side in picture.size)
    scaled = picture.resize((width, height), Image.Resampling.BICUBIC)
    paper = Image.new("RGB", (max(width, SHORTEST), max(height, SHORTEST)), "white")
    paper.paste(scaled, (0, 0))
    return Fitted(paper, factor)


@cache
def _engine() -> "RapidOCR":
    from rapidocr import RapidOCR

    return RapidOCR(params=PARAMETERS)
