"""Object detection by SSD MobileNet in OpenCV; runs inside a worker process."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue

from gta_bench.tools.backends.boxes import clamp
from gta_bench.tools.backends.pictures import decode
from gta_bench.tools.backends.worker import JobOutcome

SIDE = 320
OVERLAP = 0.45  # boxes of one class that overlap more are one object


class _Detector(NamedTuple):
    """A loaded network and the names of its classes."""

    network: Any
    labels: tuple[str, ...]


def job(data: bytes, options: Mapping[str, JsonValue]) -> JobOutcome:
    """Objects as `[x1, y1, x2, y2, label, score]`, the surest first."""
    import cv2
    import numpy

    picture = decode(data, str(options["path"]))
    width, height = picture.size
    detector = _load(str(options["weights"]))
    blob = cv2.dnn.blobFromImage(
        numpy.asarray(picture), 1 / 127.5, (SIDE, SIDE), (127.5, 127.5, 127.5)
    )
    detector.network.setInput(blob)
    rows = detector.network.forward()[0, 0]
    places = [
        (row[3] * width, row[4] * height, (row[5] - row[3]) * width, (row[6] - row[4]) * height)
        for row in rows
    ]
    scores, classes = rows[:, 2].tolist(), rows[:, 1].astype(int).tolist()
    kept = cv2.dnn.NMSBoxesBatched(places, scores, classes, float(str(options["floor"])), OVERLAP)
    found: list[JsonValue] = []
    for index in sorted(kept, key=lambda index: -scores[index]):
        x, y, wide, high = map(float, places[index])
        box = clamp((x, y, x + wide, y + high), picture.size)
        found.append([*box, detector.labels[classes[index] - 1], scores[index]])
    return JobOutcome(found)


@cache
def _load(folder: str) -> _Detector:
    import cv2

    place = Path(folder)
    network = cv2.dnn.readNetFromTensorflow(
        str(place / "frozen_inference_graph.pb"),
        str(place / "ssd_mobilenet_v3_large_coco_2020_01_14.pbtxt"),
    )
    cv2.setNumThreads(1)
    labels = (place / "labels.txt").read_text(encoding="utf-8").splitlines()
    return _Detector(network, tuple(labels))
