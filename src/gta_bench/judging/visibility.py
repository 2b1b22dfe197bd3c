"""What of the evidence a judge is shown: all, or what upstream's judge would have seen of it.

Upstream goes by a file's ending (gta_bench_v2.py:363-420, 716-808): it uploads PDF files and
pictures, prints web pages and text to PDF, takes 4 frames in 10 seconds of a film, says of a sound
only that it exists, and drops everything else without telling the judge. A task's own files are
not shown.
"""

from pathlib import PurePosixPath
from typing import Final

from gta_bench.judging.options import JudgeOptions
from gta_bench.judging.showing.texts import SOURCE
from gta_bench.records.evidence import Evidence, FileEvidence, Picture

PAGES: Final = (".pdf",)
PICTURES: Final = (".png", ".jpg", ".jpeg", ".webp")
SOUNDS: Final = (".mp3", ".wav", ".m4a")
FILMS: Final = (".mp4", ".mov", ".webm")
PRINTED: Final = (".html", ".txt", ".md", ".json")
FRAMES_A_SECOND: Final = 0.4
EXISTS: Final = "This audio file exists."


def visible(evidence: Evidence, options: JudgeOptions) -> Evidence:
    """The evidence under the judge's options."""
    if options.visibility == "upstream":
        return upstream_visibility(evidence)
    return evidence if options.inputs else evidence.model_copy(update={"inputs": ()})


def upstream_visibility(evidence: Evidence) -> Evidence:
    """Only what upstream shows; no facts, no list of what is missing, no files of the task."""
    shown = (_seen(file) for file in evidence.deliverables)
    return Evidence(
        answer=evidence.answer,
        deliverables=tuple(file for file in shown if file is not None),
        renderer=evidence.renderer,
    )


def _seen(file: FileEvidence) -> FileEvidence | None:
    suffix = PurePosixPath(file.path).suffix.lower()
    if suffix in PAGES:
        return _bare(file, text=file.text, pictures=file.pictures)
    if suffix in PICTURES:
        return _bare(file, pictures=file.pictures)
    if suffix in SOUNDS:
        return _bare(file, text=EXISTS)
    if suffix in FILMS:
        return _bare(file, pictures=_frames(file))
    if suffix in PRINTED:
        return _bare(file, text=file.text.partition(SOURCE)[0].strip(), pictures=file.pictures)
    return None


def _bare(
    file: FileEvidence, *, text: str = "", pictures: tuple[Picture, ...] = ()
) -> FileEvidence:
    return FileEvidence(
        path=file.path,
        digest=file.digest,
        size=file.size,
        claims=file.claims,
        kind=file.claims,
        text=text,
        pictures=pictures,
    )


def _frames(file: FileEvidence) -> tuple[Picture, ...]:
    """As many of our frames as upstream takes, if we have so many; of a short film none."""
    seconds = next((probe.value for probe in file.probes if probe.name == "seconds"), None)
    length = float(seconds) if isinstance(seconds, int | float) else 0.0
    frames = [picture for picture in file.pictures if picture.label.startswith("frame")]
    wanted = min(round(length * FRAMES_A_SECOND), len(frames))
    return tuple(frames[place * len(frames) // wanted] for place in range(wanted))
