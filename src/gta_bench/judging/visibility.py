"""The part of the evidence that a judge is shown: by its visibility, and by its context.

Upstream's judge goes by a file's ending (gta_bench_v2.py:363-420, 716-808): it gets PDF files and
pictures, web pages and text printed to PDF, 4 frames in 10 seconds of a video, only the existence
of a sound, and nothing of any other file, without being informed of it. It is not shown the task's
own files. Evidence is then cut to fit the context, and the judge is informed of every cut.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePosixPath
from typing import Final

from gta_bench.judging.options import JudgeOptions
from gta_bench.judging.showing.texts import SOURCE
from gta_bench.records.evidence import Evidence, FileEvidence, Picture

PICTURES: Final = (".png", ".jpg", ".jpeg", ".webp")
SOUNDS: Final = (".mp3", ".wav", ".m4a")
VIDEOS: Final = (".mp4", ".mov", ".webm")
PRINTED: Final = (".html", ".txt", ".md", ".json")
FRAMES_A_SECOND: Final = 0.4
EXISTS: Final = "This audio file exists."


def select_visible(evidence: Evidence, options: JudgeOptions) -> Evidence:
    """Return the part of the evidence that the judge's options let it see."""
    if options.visibility == "upstream":
        shown = (_select_upstream(file) for file in evidence.deliverables)
        return Evidence(
            answer=evidence.answer,
            deliverables=tuple(file for file in shown if file is not None),
            renderer=evidence.renderer,
        )
    return evidence if options.inputs else evidence.model_copy(update={"inputs": ()})


def _select_upstream(file: FileEvidence) -> FileEvidence | None:
    """Return what upstream shows of a file, without facts and notes; None if nothing."""
    suffix = PurePosixPath(file.path).suffix.lower()
    if suffix == ".pdf":
        return _bare(file, text=file.text, pictures=file.pictures)
    if suffix in PICTURES:
        return _bare(file, pictures=file.pictures)
    if suffix in SOUNDS:
        return _bare(file, text=EXISTS)
    if suffix in VIDEOS:
        return _bare(file, pictures=_upstream_frames(file))
    if suffix in PRINTED:
        return _bare(file, text=file.text.partition(SOURCE)[0].strip(), pictures=file.pictures)
    return None


def _bare(
    file: FileEvidence, *, text: str = "", pictures: tuple[Picture, ...] = ()
) -> FileEvidence:
    shown = file.model_dump(include={"path", "digest", "size", "claims"})
    return FileEvidence(**shown, kind=file.claims, text=text, pictures=pictures)


def _upstream_frames(file: FileEvidence) -> tuple[Picture, ...]:
    """Return as many of our frames as upstream takes, if we have as many; none of a short video."""
    seconds = next((probe.value for probe in file.probes if probe.name == "seconds"), None)
    length = float(seconds) if isinstance(seconds, int | float) else 0.0
    frames = [picture for picture in file.pictures if picture.label.startswith("frame")]
    wanted = min(round(length * FRAMES_A_SECOND), len(frames))
    return tuple(frames[number * len(frames) // wanted] for number in range(wanted))


# Tokenizers differ; this estimate is high for most, so that what is cut to fit does fit. English
# text has 4 to 5 characters per token; small models use a token for every digit and sign, and more
# than one for a character outside ASCII.
_LETTERS_PER_TOKEN = 3.5
_TOKENS_PER_FOREIGN = 1.5
_LETTERS = re.compile(r"[A-Za-z]")
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_BLANKS = re.compile(r"\s+")
# Providers charge about one token for 750 pixels.
_PIXELS_PER_TOKEN = 750


def text_tokens(text: str) -> int:
    """Return a high estimate of a text's tokens."""
    if not text:
        return 0
    squeezed = _BLANKS.sub("", text)
    letters = len(_LETTERS.findall(squeezed))
    foreign = len(_FOREIGN.findall(squeezed))
    marks = len(squeezed) - letters - foreign
    breaks = text.count("\n")
    return math.ceil(letters / _LETTERS_PER_TOKEN + marks + foreign * _TOKENS_PER_FOREIGN + breaks)


def share_room(wanted: Sequence[int], room: int) -> list[int]:
    """Divide room: each gets what it wants, up to an equal share of what remains."""
    given = [0] * len(wanted)
    left = max(0, room)
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    for done, index in enumerate(order):
        given[index] = min(wanted[index], left // (len(order) - done))
        left -= given[index]
    return given


def cut_text(text: str, room: int) -> str:
    """Return the beginning of a text that fits into `room` tokens, cut after a line or word."""
    if text_tokens(text) <= room:
        return text
    lengths = range(len(text) + 1)
    most = bisect_right(lengths, room, key=lambda length: text_tokens(text[:length])) - 1
    kept = text[: max(0, most)]
    for edge in ("\n", " "):
        if kept.rfind(edge) > len(kept) * 0.8:
            return kept[: kept.rfind(edge)]
    return kept


# Providers take at most 100 pictures in a call.
MOST_PICTURES = 90
# Tokens of a file's frame with its notes, and of a picture's label.
_FRAME_TOKENS = 60
_LABEL_TOKENS = 12
# Deliverables are judged, inputs only help: they get more than this share only if there is room.
_INPUTS_SHARE = 0.25


@dataclass(frozen=True)
class ShownFile:
    """A file with the part of its evidence that fits."""

    file: FileEvidence
    text: str
    pictures: tuple[Picture, ...]

    def cuts(self, options: JudgeOptions) -> Iterator[str]:
        """Yield what is shown in part: cut when the evidence was made, or here."""
        yield from self.file.cut
        shown, total = len(self.text), len(self.file.text)
        if shown < total:
            yield f"only the first {shown:,} of {total:,} characters of its text"
        missing = len(self.file.pictures) - len(self.pictures)
        if missing and options.pictures:
            yield f"only {len(self.pictures)} of {len(self.file.pictures)} pictures"
        elif missing:
            yield f"none of {missing} pictures, because you read text only"


@dataclass(frozen=True)
class ShownEvidence:
    """The evidence in a prompt; there is no room even for the names of `unlisted` files."""

    answer: str
    answer_length: int
    deliverables: tuple[ShownFile, ...]
    inputs: tuple[ShownFile, ...]
    unlisted: int = 0


def fit_evidence(evidence: Evidence, options: JudgeOptions, *, taken: int) -> ShownEvidence:
    """Cut the evidence to fit; `taken` tokens of the context are needed for other things."""
    room = max(0, options.context_tokens - taken)
    deliverables, room_left = _listable(evidence.deliverables, room // 2, room)
    inputs, room_left = _listable(evidence.inputs, room_left // 4, room_left)
    files = [ShownFile(file, "", ()) for file in chain(deliverables, inputs)]
    room_for_text = room_left
    if options.pictures:
        wanted = sum(_picture_tokens(picture) for one in files for picture in one.file.pictures)
        room_for_text = max(room_left // 2, room_left - wanted)
    answer, *texts = _fit_texts(evidence.answer, files, len(deliverables), room_for_text)
    used = sum(text_tokens(text) for text in (answer, *texts))
    pictures = _fit_pictures(files, room_left - used) if options.pictures else [()] * len(files)
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
    """Return the files whose entries in the list fit, and the tokens left after them."""
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


def _fit_texts(answer: str, files: Sequence[ShownFile], own: int, room: int) -> list[str]:
    """Cut the answer and each file's text; the first `own` files are deliverables."""
    texts = [answer, *(one.file.text for one in files)]
    wanted = [text_tokens(text) for text in texts]
    judged, given = wanted[: own + 1], wanted[own + 1 :]
    kept = share_room(judged, max(int(room * (1 - _INPUTS_SHARE)), room - sum(given)))
    kept += share_room(given, room - sum(kept))
    return [cut_text(text, tokens) for text, tokens in zip(texts, kept, strict=True)]


def _fit_pictures(files: Sequence[ShownFile], room: int) -> list[tuple[Picture, ...]]:
    """Choose the first picture of every file, then the second of every file, while they fit."""
    chosen: list[list[Picture]] = [[] for _ in files]
    turns = max((len(one.file.pictures) for one in files), default=0)
    taken = 0
    for turn in range(turns):
        for one, own in zip(files, chosen, strict=True):
            if turn >= len(one.file.pictures):
                continue
            cost = _picture_tokens(one.file.pictures[turn])
            if cost > room or taken == MOST_PICTURES:
                return list(map(tuple, chosen))
            own.append(one.file.pictures[turn])
            room -= cost
            taken += 1
    return list(map(tuple, chosen))


def _picture_tokens(picture: Picture) -> int:
    """Return about what a picture and its label cost."""
    return math.ceil(picture.width * picture.height / _PIXELS_PER_TOKEN) + _LABEL_TOKENS
