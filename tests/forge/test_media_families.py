"""Families with pictures, film and speech: structure, truth, bytes, and what checks decide."""

import array
import asyncio
import io
import json
import wave
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageStat

from gta_bench.authoring.lint import lint
from gta_bench.checks.decide import decide_leaf
from gta_bench.checks.delivery import CheckedWork, Recognition
from gta_bench.confine.jail import Jail
from gta_bench.confine.probe import find_jail
from gta_bench.content.media import probe_media, read_frame
from gta_bench.datasets.folders import GroupEntry, LeafEntry, build_task, read_task_file
from gta_bench.errors import EnvironmentProblem
from gta_bench.forge import media
from gta_bench.forge.draft import LEVELS, TaskDice, TaskDraft, TaskLevel, Work
from gta_bench.forge.drawing import BLUES, SHAPES, encode_png
from gta_bench.forge.families import annotate, chart, clip, cut
from gta_bench.forge.inside import boxes
from gta_bench.forge.scenery import SKIES, draw_clouds, draw_place
from gta_bench.forge.writing import Order, make_task, write_draft
from gta_bench.records.checks import AnswerContains, MediaShows
from gta_bench.records.verdicts import Scored
from tests.needs import needs

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


def test_colors_are_read_from_pictures_of_every_form() -> None:
    image = Image.new("RGB", (40, 30), (10, 200, 90))
    image.paste((230, 10, 20), (5, 6, 20, 9))
    for form in ("RGB", "RGBA", "P"):
        data = io.BytesIO()
        image.convert(form).save(data, "PNG")
        rows = boxes._read_png(data.getvalue())
        assert {len(row) for row in rows} == {40} and len(rows) == 30
        places = [(x, y) for y, row in enumerate(rows) for x, one in enumerate(row) if one[0] > 180]
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
@pytest.mark.parametrize("level", LEVELS[:1])
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


@pytest.fixture
def no_programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A stand-in for flite that hums, and one for ffmpeg whose file is a digest of its inputs."""

    def run(argv: tuple[str, ...], inputs: tuple[tuple[str, bytes], ...]) -> dict[str, bytes]:
        if argv[0] == "flite":
            loud = 1000 + int.from_bytes(sha256(argv[4].encode()).digest()[:2]) // 4
            hum = media.ForgedSound(array.array("h", [loud]) * (len(argv[4]) * 1000))
            return {argv[-1]: hum.encode()}
        return {argv[-1]: sha256(repr((argv, inputs)).encode()).digest()}

    monkeypatch.setattr(media, "_run_once", run)
    media.speak.cache_clear()
    yield
    media.speak.cache_clear()


@pytest.mark.usefixtures("no_programs")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", SPOKEN)
def test_a_spoken_task_breaks_every_leaf_and_is_without_findings(
    name: str, level: TaskLevel, tmp_path: Path
) -> None:
    draft = draw(name, level)
    check_structure(draft)
    works = [*draft.gold.values(), *(one.work for one in draft.wrong.values())]
    assert len({repr(work) for work in works}) == len(works), "two works are the same"
    assert draft.request == draw(name, level).request
    write_draft(draft, tmp_path, "task")
    found = lint([tmp_path / "task"]).findings
    # T04 says that the input is no film: it is the stand-in for one.
    assert [one for one in found if one.severity != "note" and one.check != "T04"] == []


@pytest.mark.usefixtures("no_programs")
@pytest.mark.parametrize("name", SPOKEN)
def test_another_number_gives_another_film_and_other_words(name: str) -> None:
    drafts = [draw(name, 1, number) for number in range(1, 6)]
    assert len({repr(one.inputs) for one in drafts}) == 5
    assert len({one.request[:9] for one in drafts}) > 1


@pytest.mark.usefixtures("no_programs")
def test_level_3_joins_two_scenes_against_their_order() -> None:
    for number in range(1, 4):
        draft = draw("clip", 3, number)
        (leaf,) = (one for one in find_leaves(draft) if one.id == "picture")
        first, second = leaf.checks
        assert isinstance(first, MediaShows) and isinstance(second, MediaShows)
        (title,) = (one.checks[0] for one in find_leaves(draft) if one.id == "title")
        assert isinstance(title, AnswerContains)
        assert first.at < second.at and first.all == title.all != second.all
        assert draft.wrong["order-swapped"].breaks == ("picture",)


def find_leaves(draft: TaskDraft) -> list[LeafEntry]:
    groups = [one for one in draft.nodes if isinstance(one, GroupEntry)]
    return [leaf for one in groups for leaf in one.leaf]


def test_sounds_are_cut_and_joined_by_the_sample() -> None:
    hum = media.ForgedSound(array.array("h", range(16_000)))
    part = hum.cut(0.25, 0.5)
    assert (part.seconds, part.samples[0], part.samples[-1]) == (0.25, 4000, 7999)
    joined = media.join_sounds([part, media.keep_silent(0.1)])
    assert joined.seconds == 0.35 and not any(joined.samples[4000:])
    with wave.open(io.BytesIO(joined.encode())) as file:
        assert (file.getframerate(), file.getnframes()) == (media.RATE, 5600)


def test_a_place_is_drawn_in_its_size_and_the_same_for_the_same_dice() -> None:
    first, again, other = (
        draw_place(TaskDice(key), (384, 216), "Harbor Museum", SKIES[0]) for key in ("a", "a", "b")
    )
    assert first == again != other
    assert Image.open(io.BytesIO(first)).size == (384, 216)
    clouds = Image.open(io.BytesIO(draw_clouds(TaskDice("a"), (384, 216))))
    assert clouds.mode == "RGBA" and clouds.width > 384 > clouds.height


@needs("ffmpeg")
def test_a_film_is_made_and_its_parts_are_joined(jail: Jail) -> None:
    """Red for one second, then blue for two: their parts change places."""
    clear = encode_png(Image.new("RGBA", (96, 20), (255, 255, 255, 0)))
    cards = [
        media.Card(encode_png(Image.new("RGB", (64, 48), color)), clear, seconds)
        for color, seconds in (((200, 0, 0), 1.0), ((0, 0, 200), 2.0))
    ]
    film = media.encode_film(cards, media.keep_silent(3))
    media._run_once.cache_clear()
    assert media.encode_film(cards, media.keep_silent(3)) == film
    parts = media.cut_film(film, [(1.5, 3.0), (0.5, 1.0)])
    found = asyncio.run(probe_media(parts, jail))
    assert found.seconds == pytest.approx(2, abs=0.1) and found.audio and found.video
    assert (found.video.width, found.video.height) == (64, 48)
    assert [find_color(parts, jail, at) for at in (0.5, 1.4, 1.8)] == ["blue", "blue", "red"]
    enlarged = asyncio.run(read_frame(parts, jail, 1, least=320))
    assert Image.open(io.BytesIO(enlarged)).size == (320, 240)
    small = asyncio.run(probe_media(media.encode_film(cards, None, (32, 24)), jail))
    assert small.audio is None and small.video and small.video.width == 32


def find_color(film: bytes, jail: Jail, seconds: float) -> str:
    frame = Image.open(io.BytesIO(asyncio.run(read_frame(film, jail, seconds))))
    red, _, blue = ImageStat.Stat(frame.convert("RGB")).mean
    return "red" if red > blue else "blue"


@needs("ffmpeg")
def test_a_program_that_is_missing_or_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentProblem, match=r"ffmpeg failed: .*no-such-file"):
        media.run_ffmpeg(("-i", "no-such-file"), {}, "made.mp4")
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(EnvironmentProblem, match=r"needs flite: apt install flite$"):
        media.run_program(["flite", "-t", "nobody said this"])


@needs("ffmpeg", "flite")
def test_the_same_words_give_the_same_bytes() -> None:
    made = []
    for _ in range(2):
        media.speak.cache_clear()
        media._run_once.cache_clear()
        said = media.speak("The library is open.", "slt")
        made.append((said, media.encode_mp3(said)))
    assert made[0] == made[1]
    assert 0.8 < made[0][0].seconds < 3 and media.speak("The library is open.", "rms") != made[0][0]
