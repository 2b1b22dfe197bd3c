"""cut: one of several spoken notices is cut out of a recording."""

from dataclasses import dataclass, replace
from typing import Final

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
from gta_bench.forge.media import (
    ForgedSound,
    Notice,
    draw_notices,
    encode_mp3,
    join_sounds,
    keep_silent,
)

FILE: Final = "part.mp3"
INPUT: Final = "notices.mp3"
SIZES: Final = {1: 4, 2: 5, 3: 8}
QUIET: Final = 0.5  # seconds of silence that a part may have before and after
PAUSE: Final = 1.4
NUMBERS: Final = ("first", "second", "third")
OPENING: Final = ("news", "about")  # words with which a notice begins
START: Final = 0.7  # seconds by which the start may be off


@dataclass(frozen=True)
class _Plan:
    """What a part lets hear, and where the answer says that it begins."""

    sound: ForgedSound
    start: float
    packed: bool = True
    short: bool = False

    def build(self) -> Work:
        """Write the part and the answer."""
        data = encode_mp3(self.sound) if self.packed else self.sound.encode()
        said = f"{self.start:.1f} s" if self.short else f"It begins at second {self.start:.1f}."
        return Work({FILE: data}, said)


def make(dice: TaskDice, level: TaskLevel) -> TaskDraft:
    """Make a task."""
    notices = draw_notices(dice, SIZES[level])
    # Not the last one, so that a neighbor follows it, and not the first one, which begins at 0.
    at = dice.randrange(1, len(notices) - 1)
    pauses = [PAUSE + dice.random() for _ in notices]
    sounds, start = [keep_silent(0.4)], 0.0
    for number, (notice, pause) in enumerate(zip(notices, pauses, strict=True)):
        if number == at:
            start = sum(one.seconds for one in sounds)
        sounds += [notice.sound, keep_silent(pause)]
    recording, notice = join_sounds(sounds), notices[at]
    plan = _Plan(notice.sound, start)
    # The second gold keeps some of the silence around the notice.
    roomy = recording.cut(start - 0.4, start + notice.sound.seconds + 0.4)
    both = recording.cut(start, start + notice.sound.seconds + pauses[at])
    return TaskDraft(
        request=_ask(dice, level, notices, at),
        category="Information Retrieval & Knowledge QA",
        tools=("SpeechToText", "SoundCharacteristicExtraction", "AudioClipTool"),
        inputs={INPUT: encode_mp3(recording)},
        deliverables={FILE: "mp3"},
        nodes=_score(notices, at, start),
        gold={
            "tight": plan.build(),
            "roomy": _Plan(roomy, start, short=True).build(),
        },
        wrong=_break(plan, notices[at + 1], both),
        cheat={"silence": _Plan(keep_silent(1), 0.0, packed=False).build()._replace(answer="")},
    )


def _ask(dice: TaskDice, level: TaskLevel, notices: list[Notice], at: int) -> str:
    thing = notices[at].thing
    which = f"the {NUMBERS[at]} notice" if level == 1 else f"the notice that mentions {thing}"
    opening = dice.choice(
        (
            f"inputs/{INPUT} is a recording of {len(notices)} notices with pauses between them. "
            f"Cut out {which}.",
            f"Somebody read {len(notices)} notices into inputs/{INPUT}, with a pause after each. "
            f"We only need {which}.",
        )
    )
    return (
        f"{opening} Deliver it as {FILE}, an MP3 file: the whole notice with all of its sentences, "
        f"nothing of any other notice, and at most {QUIET:g} s of silence before and after. In "
        "your answer, give the second of the recording at which the notice begins (it may be off "
        f"by {START:g} s)."
    )


def _score(notices: list[Notice], at: int, start: float) -> tuple[GroupEntry, ...]:
    part, notice = {"file": FILE}, notices[at]
    seconds = notice.sound.seconds
    others = [word for one in notices if one is not notice for word in (one.topic, one.thing)]
    return (
        group(
            "part",
            leaf("kind", f"{FILE} is an MP3 file.", {"is": "file.kind", **part, "kind": "mp3"}),
            leaf("seconds", f"{FILE} is as long as the notice, with at most {QUIET:g} s of silence "
                 "before and after.",
                 {"is": "media.facts", **part, "audio": True,
                  "seconds": {"min": round(seconds - 0.3, 2),
                              "max": round(seconds + 2 * QUIET + 0.1, 2)}}),
            leaf("says", f"The voice in {FILE} says the notice that was asked for, to its end.",
                 {"is": "media.says", **part, "all": [*notice.words], "least": 2}, weight=2),
            leaf("only", f"{FILE} has words of that notice, and of no other one.",
                 {"is": "media.says", **part, "all": [*notice.words, *OPENING], "least": 1,
                  "none": [*others]}),
            weight=4,
        ),
        group("answer", leaf("start", "The answer gives the second of the recording at which the "
              "notice begins.",
              {"is": "answer.contains", "number": round(start, 2), "within": START})),
    )  # fmt: skip


def _break(plan: _Plan, other: Notice, both: ForgedSound) -> dict[str, Wrong]:
    seconds = plan.sound.seconds
    half = [plan.sound.cut(0, 0.35 * seconds), keep_silent(0.65 * seconds)]
    longer = join_sounds([plan.sound, keep_silent(3)])
    # The neighbor in the length of the notice, so that only the words are wrong.
    filled = join_sounds([other.sound, keep_silent(max(0.0, seconds - other.sound.seconds))])
    made = {
        "not-mp3": (replace(plan, packed=False), ("kind",)),
        "too-long": (replace(plan, sound=longer), ("seconds",)),
        "end-lost": (replace(plan, sound=join_sounds(half)), ("says",)),
        "neighbor-too": (
            replace(plan, sound=join_sounds([both, other.sound])),
            ("seconds", "only"),
        ),
        "other-notice": (replace(plan, sound=filled.cut(0, seconds)), ("says", "only")),
        "start-off": (replace(plan, start=plan.start + 4), ("start",)),
    }
    return {name: Wrong(one.build(), breaks, "tight") for name, (one, breaks) in made.items()}


FAMILY: Final = TaskFamily(
    "cut",
    "one of several spoken notices is cut out of a recording",
    (
        "4 notices, of which one is named by its number",
        "5 notices, of which one is found by a word",
        "8 notices, of which one is found by a word",
    ),
    make,
    needs=("ffmpeg", "flite"),
)
