"""What of the evidence a judge is shown: all of it, or what upstream's judge would have seen."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal

from gta_bench.judging.options import JudgeOptions
from gta_bench.records.evidence import Evidence, FileEvidence

Seen = Literal["document", "pictures", "name"]

# gta_bench_v2.py of upstream decides by the suffix; a suffix that is not here was dropped.
UPSTREAM: Mapping[str, Seen] = {
    **dict.fromkeys((".pdf", ".html", ".txt", ".md", ".json"), "document"),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".webp", ".mp4", ".mov", ".webm"), "pictures"),
    **dict.fromkeys((".mp3", ".wav", ".m4a"), "name"),
}


def visible(evidence: Evidence, options: JudgeOptions) -> Evidence:
    """The evidence under the judge's options."""
    if options.visibility == "upstream":
        seen = (_upstream_file(file) for file in evidence.deliverables)
        kept = tuple(file for file in seen if file is not None)
        return evidence.model_copy(update={"deliverables": kept, "inputs": ()})
    return evidence if options.inputs else evidence.model_copy(update={"inputs": ()})


def _upstream_file(file: FileEvidence) -> FileEvidence | None:
    """A file without what upstream did not show of it: facts, findings, transcripts, formulas."""
    seen = UPSTREAM.get(PurePosixPath(file.path).suffix.lower())
    if seen is None:
        return None
    bare = file.model_copy(update={"probes": (), "cut": (), "unshown": (), "findings": ()})
    if seen == "document":
        return bare
    return bare.model_copy(
        update={"text": "", "pictures": file.pictures if seen == "pictures" else ()}
    )
