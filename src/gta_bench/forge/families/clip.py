"""clip: scenes of a narrated film are cut out, and their title is read."""

import math
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from PIL import Image, ImageDraw

from gta_bench.datasets.folders import GroupEntry
from gta_bench.forge.draft import (
    TaskDice,
    TaskDraft,
    TaskFamily,
    TaskLevel,
    Work,
    Wrong,
    group,
    leaf,
)
from gta_bench.forge.drawing import WHITE, Color, encode_png, find_font, resize_png
from gta_bench.forge.inside import write_check
from gta_bench.forge.media import (
    Card,
    Notice,
    Sound,
    cut_film,
    draw_notices,
    encode_film,
    join_sounds,
    keep_silent,
)

FILE: Final = "clip.mp4"
INPUT: Final = "film.mp4"
SIZES: Final = {1: 3, 2: 4, 3: 6}
SLACK: Final = 0.5  # seconds by which a clip may be longer or shorter
GROUNDS: Final[tuple[Color, ...]] = (
    (30, 58, 110), (20, 90, 84), (110, 44, 60), (84, 56, 120), (70, 74, 84), (120, 78, 24),
)  # fmt: skip
FRAMES: Final = ((480, 270), (512, 288), (640, 360))
SMALL: Final = (320, 180)


class Scene(NamedTuple):
    """A card with a title, and the voice that is heard with it, filled up with silence."""

    title: str
    notice: Notice
    card: Card
    sound: Sound


@dataclass(frozen=True)
class _Plan:
    """What a clip shows and lets hear, and what the answer names."""

    cards: tuple[Card, ...]
    sound: Sound
    title: str

    def build(self) -> Work:
        """Write the clip and the answer."""
        return Work({FILE: encode_film(self.cards, self.sound)}, f'The title is "{self.title}".')

    def resize(self, size: tuple[int, int]) -> "_Plan":
        """Return a plan with the same cards in another size."""
        cards = (Card(resize_png(card.picture, size), card.seconds) for card in self.cards)
        return replace(self, cards=tuple(cards))


def draw_card(size: tuple[int, int], title: str, ground: Color) -> bytes:
    """Return a title card as PNG."""
    image = Image.new("RGB", size, ground)
    canvas = ImageDraw.Draw(image)
    width, height = size
    canvas.rectangle((width // 4, height * 5 // 8, width * 3 // 4, height * 5 // 8 + 2), WHITE)
    canvas.text((width // 2, height // 2), title, WHITE, find_font(height // 7), anchor="ms")
    return encode_png(image)


def make(dice: TaskDice, level: TaskLevel) -> TaskDraft:
    """Make a task."""
    size = dice.choice(FRAMES)
    count = SIZES[level]
    titles, grounds = dice.places(count), dice.sample(GROUNDS, count)
    scenes = [
        _stage(notice, title, draw_card(size, title, ground))
        for notice, title, ground in zip(draw_notices(dice, count), titles, grounds, strict=True)
    ]
    # The scene before is another one, and at level 3 the clip has two scenes.
    first = dice.randrange(1, count - 1)
    wanted = scenes[first : first + (2 if level == 3 else 1)]
    start = sum(one.card.seconds for one in scenes[:first])
    plan = _Plan(
        tuple(one.card for one in wanted),
        join_sounds([one.sound for one in wanted]),
        wanted[0].title,
    )
    film = encode_film([one.card for one in scenes], join_sounds([one.sound for one in scenes]))
    cut = Work(
        {FILE: cut_film(film, start, plan.sound.seconds)},
        f"{plan.title} stands on the card at the beginning of the clip.",
    )
    return TaskDraft(
        request=_ask(dice, level, scenes, first, start),
        category="Creative Design & Expressive Generation",
        tools=("SpeechToText", "VideoOCR", "VideoClip"),
        inputs={INPUT: film},
        deliverables={FILE: "mp4"},
        nodes=_score(wanted, plan.sound.seconds, size),
        gold={"rebuilt": plan.build(), "cut": cut},
        wrong=_break(plan, scenes[first - 1]),
        cheat={"still": Work({FILE: _show_still(wanted[0].notice)})},
        checks={"film.py": write_check("film", SIZE=size)},
    )


def _stage(notice: Notice, title: str, picture: bytes) -> Scene:
    """Return a scene of half or whole seconds, whose voice begins and ends within it."""
    seconds = math.ceil(2 * (notice.sound.seconds + 0.7)) / 2
    rest = keep_silent(seconds - 0.3 - notice.sound.seconds)
    sound = join_sounds([keep_silent(0.3), notice.sound, rest])
    return Scene(title, notice, Card(picture, seconds), sound)


def _show_still(notice: Notice) -> bytes:
    """Return a film of one second without sound, in a small size."""
    return encode_film([Card(draw_card((160, 90), notice.topic, WHITE), 1)], None)


def _ask(dice: TaskDice, level: TaskLevel, scenes: list[Scene], first: int, start: float) -> str:
    scene = scenes[first]
    end = start + scene.card.seconds
    which = {
        1: f"the part from second {start:g} to second {end:g}, which is one scene",
        2: f"the scene whose voice tells people to take {scene.notice.thing} along",
        3: "two scenes in one piece: the one whose voice tells people to take "
        f"{scene.notice.thing} along, and the one that follows it",
    }[level]
    opening = dice.choice(
        (
            f"inputs/{INPUT} has {len(scenes)} scenes, each with a title card and a voice. We need "
            f"{which}.",
            f"From the film inputs/{INPUT}, please cut {which}. The film has {len(scenes)} scenes, "
            "and each has a title card and a voice.",
        )
    )
    return (
        f"{opening} Deliver it as {FILE}, complete and without parts of other scenes (up to "
        f"{SLACK:g} s more or less is fine), in the size of the film and with its sound. In your "
        "answer, give the title on the card with which the clip begins."
    )


def _score(wanted: list[Scene], seconds: float, size: tuple[int, int]) -> tuple[GroupEntry, ...]:
    clip = {"file": FILE}
    words = [word for one in wanted for word in one.notice.words]
    return (
        group(
            "clip",
            leaf("seconds", f"{FILE} has a length of {seconds:g} s, give or take {SLACK:g} s.",
                 {"is": "media.facts", **clip, "video": True,
                  "seconds": {"min": seconds - SLACK, "max": seconds + SLACK}}),
            leaf("size", f"The picture of {FILE} has {size[0]} x {size[1]} pixels.",
                 {"is": "python", "run": "checks/film.py:has_size"}),
            leaf("sound", f"{FILE} has sound, and most of it is not silent.",
                 {"is": "media.facts", **clip, "audio": True, "silence": 0.5}),
            leaf("part", f"The voice in {FILE} is that of the scene that was asked for.",
                 {"is": "media.says", **clip, "all": [*words], "least": len(words) - 1}, weight=2,
                 needs=("sound",)),
            weight=4,
        ),
        group("answer", leaf("title", "The answer gives the title on the card with which the clip "
              "begins.", {"is": "answer.contains", "all": [wanted[0].title]})),
    )  # fmt: skip


def _break(plan: _Plan, other: Scene) -> dict[str, Wrong]:
    seconds = plan.sound.seconds
    *cards, last = plan.cards
    longer = replace(
        plan,
        cards=(*cards, Card(last.picture, last.seconds + 2)),
        sound=join_sounds([plan.sound, keep_silent(2)]),
    )
    filled = join_sounds([other.sound, keep_silent(max(0.0, seconds - other.sound.seconds))])
    made = {
        "too-long": (longer, ("seconds",)),
        "too-small": (plan.resize(SMALL), ("size",)),
        "muted": (replace(plan, sound=keep_silent(seconds)), ("sound", "part")),
        "other-scene": (
            replace(plan, cards=(Card(other.card.picture, seconds),), sound=filled.cut(0, seconds)),
            ("part",),
        ),
        "other-title": (replace(plan, title=other.title), ("title",)),
    }
    return {name: Wrong(one.build(), breaks, "rebuilt") for name, (one, breaks) in made.items()}


FAMILY: Final = TaskFamily(
    "clip",
    "scenes of a narrated film are cut out, and their title is read",
    (
        "3 scenes, of which one is cut by given times",
        "4 scenes, of which one is found by what the voice says",
        "6 scenes, of which two in a row are found by what the voice says",
    ),
    make,
    needs=("ffmpeg", "flite"),
)
