"""clip: scenes of a narrated film are cut out and joined, and a title is read."""

import math
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from gta_bench.datasets.folders import GroupEntry
from gta_bench.forge.draft import (
    CheckTable,
    TaskDice,
    TaskDraft,
    TaskFamily,
    TaskLevel,
    Work,
    Wrong,
    group,
    leaf,
)
from gta_bench.forge.media import (
    Card,
    ForgedSound,
    Notice,
    cut_film,
    draw_notices,
    encode_film,
    join_sounds,
    keep_silent,
)
from gta_bench.forge.scenery import SKIES, draw_clouds, draw_place

FILE: Final = "clip.mp4"
INPUT: Final = "film.mp4"
SIZES: Final = {1: 3, 2: 4, 3: 6}
SLACK: Final = 0.5  # seconds by which a clip may be longer or shorter
FRAMES: Final = ((384, 216), (448, 252), (480, 270))
SMALL: Final = (320, 180)


class Scene(NamedTuple):
    """A picture with a title, and the voice that is heard with it, filled up with silence."""

    title: str
    notice: Notice
    card: Card
    sound: ForgedSound
    start: float

    @property
    def seconds(self) -> float:
        """The length."""
        return self.card.seconds

    @property
    def end(self) -> float:
        """When the next scene begins."""
        return self.start + self.seconds


@dataclass(frozen=True)
class _Plan:
    """What a clip shows and lets hear, and what the answer names."""

    cards: tuple[Card, ...]
    sound: ForgedSound
    title: str
    size: tuple[int, int] | None = None

    def build(self) -> Work:
        """Write the clip and the answer."""
        film = encode_film(self.cards, self.sound, self.size)
        return Work({FILE: film}, f'The clip begins with "{self.title}".')


def make(dice: TaskDice, level: TaskLevel) -> TaskDraft:
    """Make a task."""
    size = dice.choice(FRAMES)
    scenes = _stage(dice, size, draw_notices(dice, SIZES[level]))
    # Never the first scene: the one before it is another one. At level 3, a later scene comes
    # first, and there is one between the two.
    first = dice.randrange(1, len(scenes) - 1)
    wanted = [scenes[first]]
    if level == 3:
        first = dice.randrange(3, len(scenes))
        wanted = [scenes[first], scenes[dice.randrange(1, first - 1)]]
    plan = _join(wanted, [one.card.seconds for one in wanted])
    film = encode_film([one.card for one in scenes], join_sounds([one.sound for one in scenes]))
    cut = Work(
        {FILE: cut_film(film, [(one.start, one.end) for one in wanted])},
        f"{plan.title} is the title at the beginning of the clip.",
    )
    return TaskDraft(
        request=_ask(dice, level, len(scenes), wanted),
        category="Creative Design & Expressive Generation",
        tools=("SpeechToText", "VideoOCR", "VideoClip"),
        inputs={INPUT: film},
        deliverables={FILE: "mp4"},
        nodes=_score(wanted, size),
        gold={"rebuilt": plan.build(), "cut": cut},
        wrong=_break(plan, wanted, scenes[0]),
        cheat={"still": Work({FILE: _show_still(dice)})},
    )


def _stage(dice: TaskDice, size: tuple[int, int], notices: list[Notice]) -> list[Scene]:
    """Return scenes of half or whole seconds, whose voices begin and end within them."""
    skies = dice.sample(SKIES, len(notices))
    scenes: list[Scene] = []
    start = 0.0
    for notice, place, sky in zip(notices, dice.places(len(notices)), skies, strict=True):
        title = f"{place} {notice.topic.capitalize()}"
        seconds = math.ceil(2 * (notice.sound.seconds + 0.7)) / 2
        rest = keep_silent(seconds - 0.3 - notice.sound.seconds)
        sound = join_sounds([keep_silent(0.3), notice.sound, rest])
        card = Card(draw_place(dice, size, title, sky), draw_clouds(dice, size), seconds)
        scenes.append(Scene(title, notice, card, sound, start))
        start += seconds
    return scenes


def _join(scenes: list[Scene], lengths: list[float]) -> _Plan:
    """Return a plan of scenes that have these lengths."""
    cards = [one.card._replace(seconds=each) for one, each in zip(scenes, lengths, strict=True)]
    sounds = [
        join_sounds([one.sound, keep_silent(max(0.0, each - one.seconds))]).cut(0, each)
        for one, each in zip(scenes, lengths, strict=True)
    ]
    return _Plan(tuple(cards), join_sounds(sounds), scenes[0].title)


def _show_still(dice: TaskDice) -> bytes:
    """Return a film of one second without title and sound, in a small size."""
    small = (160, 90)
    picture = draw_place(dice, small, "", SKIES[0])
    return encode_film([Card(picture, draw_clouds(dice, small), 1)], None)


def _ask(dice: TaskDice, level: TaskLevel, count: int, wanted: list[Scene]) -> str:
    first, last = wanted[0], wanted[-1]
    which = {
        1: f"the part from second {first.start:g} to second {first.end:g}, which is one scene",
        2: f"the scene whose voice mentions {first.notice.thing}",
        3: "two scenes joined into one clip: first the one whose voice mentions "
        f"{first.notice.thing}, then the one whose voice mentions {last.notice.thing}",
    }[level]
    opening = dice.choice(
        (
            f"inputs/{INPUT} has {count} scenes, each with a title and a voice. We need {which}.",
            f"From the film inputs/{INPUT}, please cut {which}. The film has {count} scenes, and "
            "each has a title and a voice.",
            f"For our website, we want {which}, taken from inputs/{INPUT}. That film has {count} "
            "scenes, each with a title and a voice.",
        )
    )
    whole = "both scenes complete" if level == 3 else "complete"
    return (
        f"{opening} Deliver it as {FILE}, {whole} and without parts of other scenes (up to "
        f"{SLACK:g} s more or less is fine), in the size of the film and with its sound. In your "
        "answer, give the title that is shown where the clip begins."
    )


def _score(wanted: list[Scene], size: tuple[int, int]) -> tuple[GroupEntry, ...]:
    clip = {"file": FILE}
    seconds = sum(one.seconds for one in wanted)
    words = [word for one in wanted for word in one.notice.words]
    shows: list[CheckTable] = []
    start = 0.0
    for one in wanted:
        at = start + one.seconds / 2
        shows.append({"is": "media.shows", **clip, "at": at, "all": [one.title]})
        start += one.seconds
    scenes = "scene that was" if len(wanted) == 1 else "two scenes that were"
    return (
        group(
            "clip",
            leaf("seconds", f"{FILE} has a length of {seconds:g} s, give or take {SLACK:g} s.",
                 {"is": "media.facts", **clip, "video": True,
                  "seconds": {"min": seconds - SLACK, "max": seconds + SLACK}}),
            leaf("size", f"The picture of {FILE} has {size[0]} x {size[1]} pixels.",
                 {"is": "media.facts", **clip, "width": {"min": size[0], "max": size[0]},
                  "height": {"min": size[1], "max": size[1]}}),
            leaf("sound", f"{FILE} has sound, and most of it is not silent.",
                 {"is": "media.facts", **clip, "audio": True, "silence": 0.5}),
            leaf("picture", f"{FILE} shows the {scenes} asked for"
                 f"{', in that order' if len(wanted) > 1 else ''}.", *shows, weight=2),
            leaf("voice", f"The voice in {FILE} is that of the {scenes} asked for.",
                 {"is": "media.says", **clip, "all": [*words], "least": 2 * len(wanted)}, weight=2,
                 needs=("sound",)),
            weight=4,
        ),
        group("answer", leaf("title", "The answer gives the title that is shown where the clip "
              "begins.", {"is": "answer.contains", "all": [wanted[0].title]})),
    )  # fmt: skip


def _break(plan: _Plan, wanted: list[Scene], other: Scene) -> dict[str, Wrong]:
    lengths = [one.seconds for one in wanted]
    # Another scene in the length of the first one, so that only what it shows and says is wrong.
    strange = replace(_join([other, *wanted[1:]], lengths), title=plan.title)
    made = {
        "too-long": (
            replace(_join(wanted, [*lengths[:-1], lengths[-1] + 2]), title=plan.title),
            ("seconds",),
        ),
        "too-small": (replace(plan, size=SMALL), ("size",)),
        "muted": (replace(plan, sound=keep_silent(sum(lengths))), ("sound", "voice")),
        "other-scene": (strange, ("picture", "voice")),
        "other-picture": (replace(plan, cards=strange.cards), ("picture",)),
        "other-title": (replace(plan, title=other.title), ("title",)),
    }
    if len(wanted) > 1:
        swapped = _join(wanted[::-1], lengths[::-1])
        made["order-swapped"] = (replace(swapped, title=plan.title), ("picture",))
    return {name: Wrong(one.build(), breaks, "rebuilt") for name, (one, breaks) in made.items()}


FAMILY: Final = TaskFamily(
    "clip",
    "scenes of a narrated film are cut out and joined, and a title is read",
    (
        "3 scenes, of which one is cut by given times",
        "4 scenes, of which one is found by what the voice says",
        "6 scenes, of which two are found by what the voice says and joined in another order",
    ),
    make,
    needs=("ffmpeg", "flite"),
)
