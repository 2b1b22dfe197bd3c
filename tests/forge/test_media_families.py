"""Families with pictures, film and speech: structure, truth, bytes, and what checks decide."""

import asyncio
import io
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from gta_bench.checks.decide import decide_leaf
from gta_bench.checks.delivery import CheckedWork, Recognition
from gta_bench.confine.jail import Jail
from gta_bench.confine.probe import find_jail
from gta_bench.datasets.folders import GroupEntry, build_task, read_task_file
from gta_bench.forge.draft import LEVELS, TaskDraft, TaskLevel, Work
from gta_bench.forge.drawing import BLUES, SHAPES
from gta_bench.forge.families import annotate, chart, clip, cut
from gta_bench.forge.inside import boxes
from gta_bench.forge.writing import Order, list_files, make_task, write_draft
from gta_bench.records.verdicts import Scored
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.recognition import make_recognition
from tests.needs import needs
from tests.tools.media_weights import fetch_moonshine

PICTURES = {"annotate": annotate.FAMILY, "chart": chart.FAMILY}
SPOKEN = {"clip": clip.FAMILY, "cut": cut.FAMILY}


@pytest.fixture(scope="module")
def jail() -> Iterator[Jail]:
    with asyncio.run(find_jail(slots=1)) as jail:
        yield jail


def draw(name: str, level: TaskLevel, number: int = 1) -> TaskDraft:
    return make_task({**PICTURES, **SPOKEN}[name], Order("public", "tests", level), number)


def leaf_names(draft: TaskDraft) -> set[str]:
    groups = [one for one in draft.nodes if isinstance(one, GroupEntry)]
    return {leaf.id for one in groups for leaf in one.leaf}


def check_structure(draft: TaskDraft) -> None:
    broken = [set(wrong.breaks) for wrong in draft.wrong.values()]
    assert len(draft.gold) == 2 and len(broken) >= 5 and draft.cheat
    assert set().union(*broken) == leaf_names(draft)
    works = [*draft.gold.values(), *(one.work for one in draft.wrong.values())]
    assert all(set(one.files) == set(draft.deliverables) for one in works)
    assert all(one in draft.request for one in (*draft.inputs, *draft.deliverables))
    assert {one.origin for one in draft.wrong.values()} <= set(draft.gold)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", PICTURES)
def test_a_task_has_two_golds_and_wrong_works_that_break_every_leaf(
    name: str, level: TaskLevel
) -> None:
    check_structure(draw(name, level))


@pytest.mark.parametrize("name", PICTURES)
def test_the_same_seed_gives_the_same_bytes_and_another_number_other_ones(name: str) -> None:
    first, again, other = (list(list_files(draw(name, 3, one), "a")) for one in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("level", LEVELS)
def test_bars_have_the_height_of_the_values_that_count(level: TaskLevel) -> None:
    """Measured on the picture: all bars have one scale."""
    draft = draw("chart", level, 3)
    (picture,) = draft.inputs.values()
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    bars = find_bars(image, set(BLUES))
    head, *rows = (
        line.split(",") for line in draft.gold["exact"].files[chart.FILE].decode().splitlines()
    )
    values = sorted(int(value) for _, value in rows)
    assert len(head) == 2 and len(bars) == len(values) == chart.SIZES[level]
    scale = [value / height for value, height in zip(values, sorted(bars), strict=True)]
    assert max(scale) / min(scale) == pytest.approx(1, abs=0.05)


def find_bars(image: Image.Image, colors: set[Any]) -> list[int]:
    """The heights of runs of columns that have one of the colors at the foot of the chart."""
    foot, heights, inside = 515, [], False
    for x in range(90, 931):
        is_bar = image.getpixel((x, foot)) in colors
        if is_bar and not inside:
            column = [image.getpixel((x + 2, y)) in colors for y in range(110, 520)]
            heights.append(sum(column))
        inside = is_bar
    return heights


@pytest.mark.parametrize("level", LEVELS)
def test_boxes_enclose_what_the_scene_shows(level: TaskLevel) -> None:
    draft = draw("annotate", level)
    scene = Image.open(io.BytesIO(draft.inputs[annotate.INPUT])).convert("RGB")
    entries = json.loads(draft.gold["exact"].files[annotate.BOXES])
    assert len(entries) == annotate.SIZES[level][3]
    for entry in entries:
        left, top, right, bottom = entry["box"]
        color = scene.getpixel(((left + right) // 2, (top + bottom) // 2))
        assert color in annotate.COLORS.values() and entry["label"] in SHAPES
        around = scene.crop((left - 6, top - 6, right + 6, bottom + 6))
        pixels = [
            (x, y)
            for x in range(around.width)
            for y in range(around.height)
            if is_near(around.getpixel((x, y)), color)
        ]
        found = [min(x for x, _ in pixels), min(y for _, y in pixels)]
        found += [max(x for x, _ in pixels) + 1, max(y for _, y in pixels) + 1]
        wanted = [6, 6, right - left + 6, bottom - top + 6]
        # The tip of a star or triangle is thinner than a pixel.
        assert found == pytest.approx(wanted, abs=3)


def is_near(one: Any, other: Any) -> bool:
    return all(abs(first - second) < 60 for first, second in zip(one, other, strict=True))


def test_red_is_found_in_pictures_of_every_form() -> None:
    image = Image.new("RGB", (40, 30), (10, 200, 90))
    image.paste((230, 10, 20), (5, 6, 20, 9))
    for form in ("RGB", "RGBA", "P"):
        data = io.BytesIO()
        image.convert(form).save(data, "PNG")
        rows = boxes._find_red(data.getvalue())
        places = [(x, y) for y, row in enumerate(rows) for x, flag in enumerate(row) if flag]
        assert places == [(x, y) for y in range(6, 9) for x in range(5, 20)], form


@pytest.mark.parametrize("data", [b"", b"no picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"])
def test_a_picture_that_is_none_has_no_frames(data: bytes) -> None:
    class Given:
        def read(self, path: str) -> bytes:
            return data

    assert boxes.frame_all(Given())["score"] == 0


@pytest.mark.parametrize("level", LEVELS)
def test_chart_works_fail_exactly_the_leaves_that_they_break(
    level: TaskLevel, jail: Jail, tmp_path: Path
) -> None:
    assert find_exceptions(draw("chart", level), jail, None, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_annotate_works_fail_exactly_the_leaves_that_they_break(
    level: TaskLevel, jail: Jail, tmp_path: Path
) -> None:
    assert find_exceptions(draw("annotate", level), jail, None, tmp_path) == []


def find_exceptions(
    draft: TaskDraft, jail: Jail, recognition: Recognition | None, folder: Path
) -> list[str]:
    """Leaves that a gold fails, that nothing or a cheat passes, or that a wrong work gets wrong."""
    write_draft(draft, folder, "task")
    task = build_task(folder / "task", read_task_file(folder / "task"))
    every = tuple(leaf_names(draft))
    none: tuple[str, ...] = ()
    works = [(f"gold {name}", work, none) for name, work in draft.gold.items()]
    works += [(f"wrong {name}", one.work, one.breaks) for name, one in draft.wrong.items()]
    works += [(f"cheat {name}", work, every) for name, work in draft.cheat.items()]
    return [
        f"{name}: {leaf}"
        for name, work, breaks in [*works, ("nothing", Work({}), every)]
        for leaf, points in asyncio.run(decide_all(task, work, draft, jail, recognition))
        if (points == 10) != (leaf not in breaks)
    ]


async def decide_all(
    task: Any, work: Work, draft: TaskDraft, jail: Jail, recognition: Recognition | None
) -> list[tuple[str, float]]:
    checked = CheckedWork(
        work.answer,
        {path: data.__bytes__ for path, data in work.files.items()},
        jail,
        inputs=[sha256(one).hexdigest() for one in draft.inputs.values()],
        recognition=recognition,
    )
    found = []
    for leaf in task.leaves():
        verdict = await decide_leaf(leaf, checked)
        assert isinstance(verdict, Scored), verdict
        found.append((leaf.id, verdict.value))
    return found


@pytest.mark.slow
@needs("ffmpeg", "flite")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", SPOKEN)
def test_spoken_works_fail_exactly_the_leaves_that_they_break(
    name: str, level: TaskLevel, jail: Jail, tmp_path: Path
) -> None:
    draft = draw(name, level)
    check_structure(draft)
    equipment = Equipment(Settings(), jail=jail, weights=fetch_moonshine())
    assert find_exceptions(draft, jail, make_recognition(equipment), tmp_path) == []


@pytest.mark.slow
@needs("ffmpeg", "flite")
@pytest.mark.parametrize("name", SPOKEN)
def test_the_same_seed_speaks_the_same_bytes(name: str) -> None:
    assert list(list_files(draw(name, 1), "a")) == list(list_files(draw(name, 1), "a"))
