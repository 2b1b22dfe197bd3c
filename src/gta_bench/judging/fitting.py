"""Evidence cut to what a judge's context takes, with every cut told."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from gta_bench.judging.options import JudgeOptions
from gta_bench.records.evidence import Evidence, FileEvidence, Picture

# Tokenizers differ; this guess is high for most, so that what is cut to fit does fit. Words of
# English take 4 to 5 characters a token, small models spend a token on every digit and sign, and
# more than one on a character outside ASCII.
_LETTERS_PER_TOKEN = 3.5
_TOKENS_PER_FOREIGN = 1.5
_LETTERS = re.compile(r"[A-Za-z]")
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_BLANKS = re.compile(r"\s+")
# Providers charge about one token for 750 pixels.
_PIXELS_PER_TOKEN = 750


def text_tokens(text: str) -> int:
    """A high guess of a text's tokens."""
    if not text:
        return 0
    squeezed = _BLANKS.sub("", text)
    letters = len(_LETTERS.findall(squeezed))
    foreign = len(_FOREIGN.findall(squeezed))
    marks = len(squeezed) - letters - foreign
    breaks = text.count("\n")
    return math.ceil(letters / _LETTERS_PER_TOKEN + marks + foreign * _TOKENS_PER_FOREIGN + breaks)


def picture_tokens(picture: Picture) -> int:
    """About what a picture costs."""
    return math.ceil(picture.width * picture.height / _PIXELS_PER_TOKEN)


def shares(wanted: Sequence[int], room: int) -> list[int]:
    """Room for each: what it wants if that is less than an equal share of what is left."""
    given = [0] * len(wanted)
    left = max(0, room)
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    for done, place in enumerate(order):
        given[place] = min(wanted[place], left // (len(order) - done))
        left -= given[place]
    return given


def cut_text(text: str, room: int) -> str:
    """The beginning of a text that fits into so many tokens, ending with a whole line or word."""
    if text_tokens(text) <= room:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if text_tokens(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    kept = text[:low]
    for edge in ("\n", " "):
        if kept.rfind(edge) > low * 0.8:
            return kept[: kept.rfind(edge)]
    return kept


# Providers take at most 100 pictures in a call.
MOST_PICTURES = 90
# What a file's frame and its labels take, and words about cuts.
_FRAME_TOKENS = 60
_LABEL_TOKENS = 12
# Deliverables are judged, inputs only help: they get more than this part where there is room.
_INPUTS_SHARE = 0.25


@dataclass(frozen=True)
class ShownFile:
    """A file with the part of its evidence that has room."""

    file: FileEvidence
    text: str
    pictures: tuple[Picture, ...]

    def cuts(self, options: JudgeOptions) -> Iterator[str]:
        """What is shown in part: by whoever made the evidence, and here."""
        yield from self.file.cut
        whole = self.file.text
        if len(self.text) < len(whole):
            yield f"only the first {len(self.text):,} of {len(whole):,} characters of its text"
        missing = len(self.file.pictures) - len(self.pictures)
        if missing and options.pictures:
            yield f"only {len(self.pictures)} of {len(self.file.pictures)} pictures"
        elif missing:
            yield f"none of {missing} pictures, because you read text only"


@dataclass(frozen=True)
class ShownEvidence:
    """What goes to the judge; `unlisted` files have not even room for their names."""

    answer: str
    answer_length: int
    deliverables: tuple[ShownFile, ...]
    inputs: tuple[ShownFile, ...]
    unlisted: int = 0


def fit(evidence: Evidence, options: JudgeOptions, *, taken: int) -> ShownEvidence:
    """The evidence, with `taken` tokens of the context needed for other things."""
    room = max(0, options.context_tokens - taken)
    deliverables, room_left = _listable(evidence.deliverables, room // 2, room)
    inputs, room_left = _listable(evidence.inputs, room_left // 4, room_left)
    files = [ShownFile(file, "", ()) for file in chain(deliverables, inputs)]
    room_for_text = _room_for_text(evidence.answer, files, options, room_left)
    answer, *texts = _texts(evidence.answer, files, len(deliverables), room_for_text)
    used = sum(text_tokens(text) for text in (answer, *texts))
    pictures = _pictures(files, room_left - used) if options.pictures else [()] * len(files)
    shown = tuple(
        replace(one, text=text, pictures=seen)
        for one, text, seen in zip(files, texts, pictures, strict=True)
    )
    every = len(evidence.deliverables) + len(evidence.inputs)
    return ShownEvidence(
        answer=answer,
        answer_length=len(evidence.answer),
        deliverables=shown[: len(deliverables)],
        inputs=shown[len(deliverables) :],
        unlisted=every - len(shown),
    )


def _listable(
    files: Sequence[FileEvidence], room: int, left: int
) -> tuple[list[FileEvidence], int]:
    """The files whose entries in the list have room, and the tokens left after them."""
    listed: list[FileEvidence] = []
    for file in files:
        entry = _FRAME_TOKENS + text_tokens(
            " ".join((file.path, *map(str, file.probes), *file.cut, *file.unshown, *file.findings))
        )
        if entry > room:
            break
        listed.append(file)
        room -= entry
        left -= entry
    return listed, left


def _room_for_text(
    answer: str, files: Sequence[ShownFile], options: JudgeOptions, room: int
) -> int:
    """All of it, or at least half where pictures want the rest."""
    if not options.pictures:
        return room
    wanted = sum(_cost(picture) for one in files for picture in one.file.pictures)
    return max(room // 2, room - wanted)


def _texts(answer: str, files: Sequence[ShownFile], own: int, room: int) -> list[str]:
    """The answer, then each file's text; the first `own` files are deliverables."""
    texts = [answer, *(one.file.text for one in files)]
    wanted = [text_tokens(text) for text in texts]
    judged, given = wanted[: own + 1], wanted[own + 1 :]
    kept = shares(judged, max(int(room * (1 - _INPUTS_SHARE)), room - sum(given)))
    kept += shares(given, room - sum(kept))
    return [cut_text(text, tokens) for text, tokens in zip(texts, kept, strict=True)]


def _pictures(files: Sequence[ShownFile], room: int) -> list[tuple[Picture, ...]]:
    """The first picture of every file, then the second of every file, while there is room."""
    chosen: list[list[Picture]] = [[] for _ in files]
    turns = max((len(one.file.pictures) for one in files), default=0)
    taken = 0
    for turn in range(turns):
        for place, one in enumerate(files):
            if turn >= len(one.file.pictures):
                continue
            cost = _cost(one.file.pictures[turn])
            if cost > room or taken == MOST_PICTURES:
                return [tuple(pictures) for pictures in chosen]
            chosen[place].append(one.file.pictures[turn])
            room -= cost
            taken += 1
    return [tuple(pictures) for pictures in chosen]


def _cost(picture: Picture) -> int:
    return picture_tokens(picture) + _LABEL_TOKENS
