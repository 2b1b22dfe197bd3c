"""The pages on which people label leaves, without seeing systems, judges or other labels."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qs

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route, Router

from gta_bench.errors import UsageError
from gta_bench.judging.run_evidence import MadeEvidence
from gta_bench.metrics.labels import find_disputed_leaves, group_labels, shuffle_units
from gta_bench.metrics.panel import LeafKey
from gta_bench.records.agreement import Agreement
from gta_bench.records.evidence import Evidence
from gta_bench.records.labels import Label, Labels
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.workflow import Checkpoint
from gta_bench.running.judge_run import prepare_evidence
from gta_bench.runs.labels import (
    dump_labels_csv,
    read_adjudication,
    read_labels,
    read_labels_of,
    write_adjudication,
    write_labels,
)
from gta_bench.runs.store import StorePath
from gta_bench.settings import Settings
from gta_bench.statistics.agreement import measure_agreement
from gta_bench.tasks.judging import find_judgeable_units
from gta_bench.web.pages import render

MAX_BODY = 100_000


@dataclass(frozen=True)
class Item:
    """A leaf with its evidence, and the probability with which its unit was drawn."""

    unit: WorkflowUnit
    leaf: Checkpoint
    evidence: Evidence
    chance: float

    @property
    def place(self) -> LeafKey:
        """The key of the leaf."""
        return self.unit.task.id, self.unit.epoch, self.leaf.id

    @property
    def name(self) -> str:
        """The key as text, by which a form names its leaf."""
        return " ".join(map(str, self.place))


class _Draft(NamedTuple):
    """The contents of a form, with an error message if it cannot be saved."""

    value: str = ""
    reason: str = ""
    problem: str = ""


def label_items(
    units: Sequence[WorkflowUnit], evidence: MadeEvidence, *, chance: float
) -> list[Item]:
    """Return every leaf of the units; units without evidence are left out."""
    return [
        Item(unit, leaf, shown, chance)
        for unit in units
        if (shown := evidence.made(unit)) is not None
        for leaf in unit.task.leaves()
    ]


def people_agreement(raters: Sequence[Labels], *, threshold: float) -> Agreement:
    """Measure how well people agree with each other."""
    leaves = list(group_labels(raters))
    labels = [[rater.of(leaf) for rater in raters] for leaf in leaves]
    table = [[None if one is None else one.value for one in row] for row in labels]
    return measure_agreement(table, [task for task, _, _ in leaves], threshold=threshold)


def open_queue(
    run: StorePath, settings: Settings, *, count: int | None = None, seed: int = 0
) -> "LabelQueue":
    """Return the queue of a run's leaves, after making the evidence that is missing.

    `count` tasks are drawn at random; labels of earlier draws are corrected for that.
    """
    every = shuffle_units(find_judgeable_units(run).values(), seed=seed)
    units = every[:count]
    evidence = asyncio.run(prepare_evidence(run, units, settings))
    chance = len(units) / max(1, len(every))
    items = label_items(units, evidence, chance=chance)
    if not items:
        raise UsageError(f"{run} has no leaf with evidence, so there is nothing to label.")
    drawn = {(unit.task.id, unit.epoch) for unit in units}
    for labels in read_labels(run):
        write_labels(run, labels.drawn_again(drawn, chance))
    return LabelQueue(run, items, evidence, settings.judge.leaf_threshold)


class LabelQueue:
    """The pages of one run's queue, below the path at which the app mounts `router`.

    Each label is saved in the run immediately.
    """

    def __init__(
        self, run: StorePath, items: Sequence[Item], evidence: MadeEvidence, threshold: float
    ) -> None:
        self.run = run
        self.items = items
        self.evidence = evidence
        self.threshold = threshold
        self.pictures = {
            picture.digest: picture.media_type
            for item in items
            for file in (*item.evidence.deliverables, *item.evidence.inputs)
            for picture in file.pictures
        }
        self.router = Router(
            [
                Route("/", self.start, methods=["GET", "POST"]),
                Route("/as/{rater}", self.resume),
                Route("/as/{rater}/{number:int}", self.label, methods=["GET", "POST"]),
                Route("/settle", self.settle_next),
                Route("/settle/{number:int}", self.settle, methods=["GET", "POST"]),
                Route("/labels.csv", self.export),
                Route("/picture/{digest}", self.picture),
            ]
        )

    async def start(self, request: Request) -> Response:
        """Show the people, their progress and what is left to do."""
        problem = ""
        if request.method == "POST":
            form = await _read_form(request)
            if form is None:
                return _reject()
            try:
                rater = Labels(rater=form.get("rater", "").strip()).rater
                return _redirect(request, f"/as/{rater}")
            except ValidationError:
                problem = "Use up to 40 letters, digits, dots, dashes or underscores."
        raters = read_labels(self.run)
        leaves = {item.place for item in self.items}
        return _page(
            request,
            "label_start.html",
            problem=problem,
            leaves=len(self.items),
            raters=[
                (one.rater, sum(label.place in leaves for label in one.labels)) for one in raters
            ],
            agreement=people_agreement(raters, threshold=self.threshold),
            disputed=len(self._disputed()),
            open=len(self._open_disputes()),
        )

    async def resume(self, request: Request) -> Response:
        """Go to the first leaf that this person has not labeled."""
        labels = self._labels(request)
        return _redirect(request, "/") if labels is None else self._go_on(request, labels, 0)

    async def label(self, request: Request) -> Response:
        """Show one leaf, or save its label and go to the next open leaf."""
        labels, number = self._labels(request), int(request.path_params["number"])
        if labels is None or not 1 <= number <= len(self.items):
            return _redirect(request, "/")
        item = self.items[number - 1]
        answer = await _read_answer(request, item, labels)
        if answer is None:
            return _reject()
        if isinstance(answer, Label):
            # Read again: another form of the same person may have been saved in the meantime.
            labels = (self._labels(request) or labels).with_label(answer)
            write_labels(self.run, labels)
            return self._go_on(request, labels, number)
        done = sum(labels.of(one.place) is not None for one in self.items)
        return _page(
            request,
            "label.html",
            item=item,
            number=number,
            leaf=f"/as/{labels.rater}",
            of=len(self.items),
            draft=answer,
            about=f"{labels.rater}: {done} of {len(self.items)} labeled",
            given=(),
        )

    async def settle_next(self, request: Request) -> Response:
        """Go to the first disputed leaf that is not adjudicated."""
        open_ = self._open_disputes()
        place = f"/settle/{self._disputed().index(open_[0]) + 1}" if open_ else "/"
        return _redirect(request, place)

    async def settle(self, request: Request) -> Response:
        """Show a disputed leaf with its labels but without names, or save the decision."""
        disputed, number = self._disputed(), int(request.path_params["number"])
        if not 1 <= number <= len(disputed):
            return _redirect(request, "/")
        item = disputed[number - 1]
        answer = await _read_answer(request, item, self._adjudication())
        if answer is None:
            return _reject()
        if isinstance(answer, Label):
            write_adjudication(self.run, self._adjudication().with_label(answer))
            return _redirect(request, "/settle")
        settled = len(disputed) - len(self._open_disputes())
        return _page(
            request,
            "label.html",
            item=item,
            number=number,
            leaf="/settle",
            of=len(disputed),
            draft=answer,
            about=f"Adjudication: {settled} of {len(disputed)} settled",
            given=[label for one in read_labels(self.run) if (label := one.of(item.place))],
        )

    async def export(self, request: Request) -> Response:
        """Return all labels and adjudications as CSV."""
        text = dump_labels_csv(read_labels(self.run), read_adjudication(self.run))
        headers = {"Content-Disposition": 'attachment; filename="labels.csv"'}
        return Response(text, media_type="text/csv", headers=headers)

    async def picture(self, request: Request) -> Response:
        """Return a picture of the evidence, if a leaf shows it."""
        digest = str(request.path_params["digest"])
        if digest not in self.pictures:
            return PlainTextResponse("There is no such picture.", status_code=404)
        return Response(self.evidence.picture(digest), media_type=self.pictures[digest])

    def _adjudication(self) -> Labels:
        return read_adjudication(self.run) or Labels(rater="adjudicator")

    def _labels(self, request: Request) -> Labels | None:
        try:
            rater = Labels(rater=str(request.path_params["rater"])).rater
        except ValidationError:
            return None
        return read_labels_of(self.run, rater)

    def _go_on(self, request: Request, labels: Labels, after: int) -> Response:
        for index in (*range(after, len(self.items)), *range(after)):
            if labels.of(self.items[index].place) is None:
                return _redirect(request, f"/as/{labels.rater}/{index + 1}")
        return _redirect(request, "/?done=1")

    def _disputed(self) -> list[Item]:
        disputed = set(find_disputed_leaves(read_labels(self.run), self.threshold))
        return [item for item in self.items if item.place in disputed]

    def _open_disputes(self) -> list[Item]:
        settled = self._adjudication()
        return [item for item in self._disputed() if not settled.of(item.place)]


async def _read_answer(request: Request, item: Item, labels: Labels) -> Label | _Draft | None:
    """Return the submitted label, or the contents of the form to show.

    None if the form is too long or belongs to another leaf.
    """
    if request.method != "POST":
        known = labels.of(item.place)
        return _Draft() if known is None else _Draft(f"{known.value:g}", known.reason)
    form = await _read_form(request)
    # The numbers of disputed leaves can change, so the form names its leaf.
    if form is None or form.get("place") != item.name:
        return None
    task, epoch, leaf = item.place
    value, reason = form.get("score", ""), form.get("reason", "").strip()
    try:
        return Label(
            task=task,
            epoch=epoch,
            leaf=leaf,
            value=float(value),
            reason=reason,
            evidence=item.evidence.digest,
            chance=item.chance,
        )
    except ValueError:
        return _Draft(value, reason, "Choose a score from 0 to 10.")


async def _read_form(request: Request) -> dict[str, str] | None:
    """Return the fields of a form; None if it is too long."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            return None
    return {name: values[-1] for name, values in parse_qs(body.decode(errors="replace")).items()}


def _page(request: Request, template: str, **values: object) -> Response:
    text = render(template, page="label", base=request.scope["root_path"], **values)
    return Response(text, media_type="text/html")


def _reject() -> Response:
    text = "This form is too long, or the leaf has changed. Go back and reload."
    return PlainTextResponse(text, status_code=403)


def _redirect(request: Request, path: str) -> Response:
    return RedirectResponse(request.scope["root_path"] + path, status_code=303)
