"""Everything in a file is in its text, in a picture, or named as not shown."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gta_bench.records.evidence import FileEvidence
from gta_bench.tools.contract import Equipment
from tests.judging.planted.corpus import corpus
from tests.judging.planted.planting import Plant, find
from tests.judging.shown import Desk
from tests.needs import needs
from tests.tools.media_weights import fetch_moonshine

pytestmark = [pytest.mark.measure, needs("bwrap", "chromium", "ffmpeg", "soffice")]

PLANTED = 200


class Eyes:
    """Reads the pictures of a file, each once, and no more than are asked for."""

    def __init__(self, desk: Desk) -> None:
        from rapidocr import RapidOCR

        self._desk = desk
        self._reader: Any = RapidOCR(params={"Global.log_level": "error"})
        self._read: dict[str, str] = {}

    def __call__(self, shown: FileEvidence) -> Iterator[str]:
        for number, picture in enumerate(shown.pictures):
            if picture.digest not in self._read:
                pixels = np.asarray(self._desk.picture(shown, number))
                self._read[picture.digest] = " ".join(self._reader(pixels).txts or ())
            yield self._read[picture.digest]


def table(found: Sequence[tuple[Plant, str]]) -> str:
    """One line a file: how many of its words were found where."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for plant, where in found:
        counts[plant.file][where] += 1
    columns = ("text", "picture", "named", "lost")
    lines = [f"{'file':22}" + "".join(f"{column:>9}" for column in columns)]
    total = sum(counts.values(), Counter[str]())
    for name, count in [*sorted(counts.items()), ("all", total)]:
        lines.append(f"{name:22}" + "".join(f"{count[column]:9}" for column in columns))
    return "\n".join(lines)


def test_no_planted_word_is_lost(
    tmp_path: Path, equipment: Equipment, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Word title was invisible to the judge, without any note."""
    fetch_moonshine()
    assert equipment.jail is not None
    field, files = corpus(tmp_path, equipment.jail)
    desk = Desk(tmp_path, equipment)
    shown = desk.show(files)
    eyes = Eyes(desk)
    found = [(plant, find(plant, shown[plant.file], eyes)) for plant in field.plants]
    with capsys.disabled():
        print(f"\n{table(found)}")
    lost = [f"{plant.file}: {plant.place} ({plant.word})" for plant, at in found if at == "lost"]
    assert lost == []
    assert len(found) >= PLANTED
