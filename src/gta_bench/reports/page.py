"""A Workflow run as one HTML page that needs nothing else: no script, no other file, no network."""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO

from jinja2 import Environment, PackageLoader, StrictUndefined

from gta_bench.errors import EnvironmentProblem
from gta_bench.records.deliverables import Deliverable
from gta_bench.records.evidence import FileEvidence
from gta_bench.records.run import WorkflowUnit
from gta_bench.records.verdicts import VerdictKey, VerdictRow
from gta_bench.records.workflow_scores import CurvePoint
from gta_bench.reports.task_view import TaskView, score_text, view_task
from gta_bench.reports.workflow_summary import (
    WorkflowSummary,
    group_table,
    remarks,
    score_table,
)

THUMBNAIL = (260, 200)
PAGES_SHOWN = 3

# Pictures of the evidence by digest; they come from our own renderer, not from the system.
PictureSource = Callable[[str], bytes]


@dataclass(frozen=True)
class FileView:
    """A file with small pictures of it, and what a reader should know of it."""

    path: str
    size: str
    pictures: tuple[tuple[str, str], ...] = ()
    more: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class UnitView:
    """A unit with its files and, for each judge, its tree."""

    unit: WorkflowUnit
    anchor: str
    name: str
    files: tuple[FileView, ...]
    inputs: tuple[FileView, ...]
    views: tuple[TaskView, ...]


def run_page(
    summary: WorkflowSummary,
    units: Sequence[WorkflowUnit],
    verdicts: Mapping[VerdictKey, VerdictRow],
    *,
    evidence: Mapping[str, FileEvidence],
    picture: PictureSource,
) -> str:
    """The page. `evidence` is what was shown of each file, by its digest."""
    environment = Environment(
        loader=PackageLoader("gta_bench.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["score"] = score_text

    def files(found: Sequence[Deliverable]) -> tuple[FileView, ...]:
        return tuple(_file_view(file, evidence.get(file.digest), picture) for file in found)

    scores = summary.scores
    return environment.get_template("workflow.html").render(
        summary=summary,
        scores=score_table([summary]),
        groups=[(judge.judge, group_table(judge)) for judge in scores.judges],
        curves=[(judge.judge, _curve(judge.curve)) for judge in scores.judges],
        remarks=remarks(summary),
        units=[
            UnitView(
                unit=unit,
                anchor=f"task-{unit.task.id}-{unit.epoch}",
                name=unit.task.id if unit.epoch == 1 else f"{unit.task.id}, epoch {unit.epoch}",
                files=files(unit.deliverables),
                inputs=files(unit.inputs),
                views=tuple(
                    view_task(
                        unit,
                        judge,
                        verdicts,
                        leaf_threshold=scores.leaf_threshold,
                        root_threshold=scores.root_threshold,
                    )
                    for judge in scores.judges
                ),
            )
            for unit in units
        ],
    )


def thumbnail(data: bytes) -> str:
    """A small picture as a data URI."""
    try:
        from PIL import Image
    except ImportError as exc:
        raise EnvironmentProblem(
            "Thumbnails need Pillow: pip install 'gta-bench[documents]'."
        ) from exc
    with Image.open(BytesIO(data)) as opened:
        opened.thumbnail(THUMBNAIL)
        shades = opened.convert("RGBA")
    flat = Image.new("RGB", shades.size, "white")
    flat.paste(shades, mask=shades)
    kept = BytesIO()
    flat.save(kept, "JPEG", quality=72)
    return f"data:image/jpeg;base64,{b64encode(kept.getvalue()).decode()}"


def _file_view(file: Deliverable, shown: FileEvidence | None, picture: PictureSource) -> FileView:
    size = _size(file.size)
    if shown is None:
        return FileView(file.path, size, notes=("no judge has been shown it",))
    chosen = shown.pictures[:PAGES_SHOWN]
    return FileView(
        path=file.path,
        size=f"{shown.kind}, {size}",
        pictures=tuple((thumbnail(picture(one.digest)), one.label) for one in chosen),
        more=len(shown.pictures) - len(chosen),
        notes=(*shown.findings, *shown.cut, *shown.unshown),
    )


def _size(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def _curve(points: Sequence[CurvePoint]) -> list[tuple[str, str]]:
    """The two rates as points of a picture that is 100 wide and 50 high."""
    lines = []
    for name in ("leaf_sr", "root_sr"):
        rates = [(point.threshold, getattr(point, name)) for point in points]
        places = [
            f"{threshold * 10:g},{50 - rate / 2:.1f}"
            for threshold, rate in rates
            if rate is not None
        ]
        lines.append((name.removesuffix("_sr"), " ".join(places)))
    return lines
