"""Local models: text recognition, object detection, style transfer. Runs in a worker process."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import JsonValue

from gta_bench.errors import ToolError
from gta_bench.tools.backends.boxes import clamp
from gta_bench.tools.backends.workers import JobOutcome
from gta_bench.tools.pictures import decode, encode, shrink

if TYPE_CHECKING:
    from PIL.Image import Image
    from rapidocr import RapidOCR

# By default RapidOCR enlarges the shorter side to 736 pixels, however long the other one gets: an
# image of 3 x 900 pixels takes minutes, and no more words are found in others. Pictures are
# fitted here instead.
LONGEST_READ = 2000
SHORTEST_READ = 64
PARAMETERS = {
    "Global.log_level": "error",
    "Det.limit_type": "max",
    "Det.limit_side_len": LONGEST_READ,
    # At its default of 0.9 the classifier turns upright lines upside down.
    "Cls.cls_thresh": 0.99,
    # Threads of one session spin while they wait for each other, which is slower on busy cores.
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}

DETECTED_SIDE = 320
OVERLAP = 0.45  # boxes of one class that overlap more are one object

PAINTED_STYLES = 26
LONGEST_PAINTED = 1024
SHORTEST_PAINTED = 32
STEP = 4  # the network halves a side twice


class Fitted(NamedTuple):
    """A picture in the size that is read, and the factor by which it was scaled."""

    picture: "Image"
    factor: float


def read_lines(data: bytes, options: Mapping[str, JsonValue]) -> JobOutcome:
    """Return the lines of text as `[x1, y1, x2, y2, text]`, in reading order."""
    import numpy

    picture = decode(data, str(options["path"]))
    fitted = fit(picture)
    found: Any = _load_ocr()(numpy.asarray(fitted.picture)[:, :, ::-1])
    if found.boxes is None or found.txts is None:
        return JobOutcome([])
    lines: list[JsonValue] = []
    for corners, text in zip(found.boxes / fitted.factor, found.txts, strict=True):
        box = clamp([*corners.min(axis=0), *corners.max(axis=0)], picture.size)
        lines.append([*box, " ".join(text.split())])
    return JobOutcome(lines)


def fit(picture: "Image") -> Fitted:
    """Scale a large picture down, and put a narrow one on white."""
    from PIL import Image

    factor = min(1.0, LONGEST_READ / max(picture.size))
    width, height = (max(1, round(side * factor)) for side in picture.size)
    scaled = picture.resize((width, height), Image.Resampling.BICUBIC)
    paper = Image.new("RGB", (max(width, SHORTEST_READ), max(height, SHORTEST_READ)), "white")
    paper.paste(scaled, (0, 0))
    return Fitted(paper, factor)


@cache
def _load_ocr() -> "RapidOCR":
    from rapidocr import RapidOCR

    return RapidOCR(params=PARAMETERS)


def detect_objects(data: bytes, options: Mapping[str, JsonValue]) -> JobOutcome:
    """Return objects as `[x1, y1, x2, y2, label, score]`, highest score first."""
    import cv2
    import numpy

    picture = decode(data, str(options["path"]))
    width, height = picture.size
    network, labels = _load_detector(str(options["weights"]))
    blob = cv2.dnn.blobFromImage(
        numpy.asarray(picture), 1 / 127.5, (DETECTED_SIDE, DETECTED_SIDE), (127.5, 127.5, 127.5)
    )
    network.setInput(blob)
    rows = network.forward()[0, 0]
    corners = [
        (row[3] * width, row[4] * height, (row[5] - row[3]) * width, (row[6] - row[4]) * height)
        for row in rows
    ]
    scores, classes = rows[:, 2].tolist(), rows[:, 1].astype(int).tolist()
    kept = cv2.dnn.NMSBoxesBatched(corners, scores, classes, float(str(options["floor"])), OVERLAP)
    found: list[JsonValue] = []
    for index in sorted(kept, key=lambda index: -scores[index]):
        x, y, wide, high = map(float, corners[index])
        box = clamp((x, y, x + wide, y + high), picture.size)
        found.append([*box, labels[classes[index] - 1], scores[index]])
    return JobOutcome(found)


@cache
def _load_detector(folder: str) -> tuple[Any, list[str]]:
    import cv2

    weights = Path(folder)
    network = cv2.dnn.readNetFromTensorflow(
        str(weights / "frozen_inference_graph.pb"),
        str(weights / "ssd_mobilenet_v3_large_coco_2020_01_14.pbtxt"),
    )
    cv2.setNumThreads(1)
    return network, (weights / "labels.txt").read_text(encoding="utf-8").splitlines()


def paint_picture(data: bytes, options: Mapping[str, JsonValue]) -> JobOutcome:
    """Return the picture in another style as PNG, its longer side at most 1024 pixels."""
    path = str(options["path"])
    picture = shrink(decode(data, path), LONGEST_PAINTED)
    if min(picture.size) < SHORTEST_PAINTED:
        width, height = picture.size
        raise ToolError(f"`{path}` is too small or too narrow for a style: {width} x {height}.")
    painted = _paint(_load_painter(str(options["weights"])), picture, int(str(options["style"])))
    return JobOutcome(None, encode(painted))


def _paint(session: Any, picture: "Image", style: int) -> "Image":
    import numpy
    from PIL import Image

    width, height = picture.size
    pixels = numpy.asarray(picture, dtype=numpy.float32) / 255
    margins = ((0, -height % STEP), (0, -width % STEP), (0, 0))
    planes = numpy.pad(pixels, margins, mode="reflect").transpose(2, 0, 1)[None]
    weights = numpy.zeros(PAINTED_STYLES, dtype=numpy.float32)
    weights[style] = 1
    inputs = {"image": numpy.ascontiguousarray(planes), "style_weights": weights}
    (made,) = session.run(None, inputs)
    painted = made[0].transpose(1, 2, 0)[:height, :width].clip(0, 1)
    return Image.fromarray((painted * 255 + 0.5).astype(numpy.uint8))


@cache
def _load_painter(folder: str) -> Any:
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    model = str(Path(folder) / "multistyle26.onnx")
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
