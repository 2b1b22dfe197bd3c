"""The page on which people label leaves: task, requirement and evidence, and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qs

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from gta_bench.judging.run_evidence import MadeEvidence
from gta_bench.metrics.labels import disputed_leaves, group_labels
from gta_bench.metrics.panel import LeafPlace
from gta_bench.records.agreement import Agreement
from gta_bench.records.evidence import Evidence
from gta_bench.records.labels import Label, Labels
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.workflow import Checkpoint
from gta_bench.runs.labels import (
    labels_csv,
    labels_of,
    read_adjudication,
    read_labels,
    write_adjudication,
    write_labels,
)
from gta_bench.runs.store import StorePath
from gta_bench.statistics.agreement import agreement
from gta_bench.web.pages import asset, render

HOSTS = ["127.0.0.1", "localhost", "[::1]"]
MOST_BODY = 100_000
ADJUDICATOR = "adjudicator"
# Nothing of a page may come from elsewhere, whatever a deliverable says.
POLICY = (
    "default-src 'none'; img-src 'self' data:; style-src 'self'; script-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True)
class Item:
    """A leaf with what is shown for it, and the probability with which its unit was drawn."""

    unit: WorkflowUnit
    leaf: Checkpoint
    evidence: Evidence
    chance: float

    @property
    def place(self) -> LeafPlace:
        """The leaf's key."""
        return self.unit.task.id, self.unit.epoch, self.leaf.id


class _Said(NamedTuple):
    """What was typed, to be shown again; a problem where it cannot be kept."""

    value: str = ""
    reason: str = ""
    problem: str = ""


def label_items(
    units: Sequence[WorkflowUnit], evidence: MadeEvidence, *, chance: float
) -> list[Item]:
    """Every leaf of the units; a unit whose evidence cannot be made is left out."""
    made = [(unit, evidence.made(unit)) for unit in units]
    return [
        Item(unit, leaf, shown, chance)
        for unit, shown in made
        if shown is not None
        for leaf in unit.task.leaves()
    ]


def people_agreement(raters: Sequence[Labels], *, threshold: float) -> Agreement:
    """How far people agree with each other."""
    places = list(group_labels(raters))
    table = [
        [None if (one := rater.of(place)) is None else one.value for rater in raters]
        for place in places
    ]
    return agreement(table, [task for task, _, _ in places], threshold=threshold)


def make_label_app(
    run: StorePath, items: Sequence[Item], evidence: MadeEvidence, *, threshold: float
) -> Starlette:
    """The pages; labels are kept in the run as soon as they are given."""
    board = _Board(run, items, evidence, threshold)
    return Starlette(
        routes=[
            Route("/", board.start, methods=["GET", "POST"]),
            Route("/label/{rater}", board.resume),
            Route("/label/{rater}/{number:int}", board.label, methods=["GET", "POST"]),
            Route("/settle", board.settle_next),
            Route("/settle/{number:int}", board.settle, methods=["GET", "POST"]),
            Route("/labels.csv", board.export),
            Route("/picture/{digest}", board.picture),
            Route("/{name:str}", board.asset),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS)],
    )


class _Board:
    """One run's leaves before people."""

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

    async def start(self, request: Request) -> Response:
        """Who is there, how far they are, and what there is to do."""
        problem = ""
        if request.method == "POST":
            form = await _form(request)
            if form is None:
                return _refused()
            rater = form.get("rater", "").strip()
            try:
                return _go(f"/label/{Labels(rater=rater).rater}")
            except ValidationError:
                problem = "A name has letters, digits, dots, dashes or underscores, at most 40."
        raters = read_labels(self.run)
        places = {item.place for item in self.items}
        return _page(
            "label_start.html",
            problem=problem,
            leaves=len(self.items),
            raters=[
                (one.rater, sum(label.place in places for label in one.labels)) for one in raters
            ],
            agreement=people_agreement(raters, threshold=self.threshold),
            disputed=len(self._disputed()),
            open=len(self._open_disputes()),
        )

    async def resume(self, request: Request) -> Response:
        """Go to the first leaf without a label of this person; to the start where all have one."""
        labels = self._labels(request)
        if labels is None:
            return _go("/")
        return self._next(labels, 0)

    async def label(self, request: Request) -> Response:
        """One leaf; a label that is sent leads to the next open one."""
        labels, number = self._labels(request), int(request.path_params["number"])
        if labels is None or not 1 <= number <= len(self.items):
            return _go("/")
        item = self.items[number - 1]
        said = await _said(request, item, labels)
        if said is None:
            return _refused()
        if isinstance(said, Label):
            # Read again: another form of the same person may have come while this one was read.
            labels = (self._labels(request) or labels).with_label(said)
            write_labels(self.run, labels)
            return self._next(labels, number)
        done = sum(labels.of(one.place) is not None for one in self.items)
        about = f"{labels.rater}: {done} of {len(self.items)} labelled"
        base = f"/label/{labels.rater}"
        return self._leaf_page(item, number, base, said, about, of=len(self.items))

    async def settle_next(self, request: Request) -> Response:
        """Go to the first disputed leaf without a last word."""
        open_ = self._open_disputes()
        return _go(f"/settle/{self._disputed().index(open_[0]) + 1}" if open_ else "/")

    async def settle(self, request: Request) -> Response:
        """A disputed leaf with what people said of it, without their names."""
        disputed, number = self._disputed(), int(request.path_params["number"])
        if not 1 <= number <= len(disputed):
            return _go("/")
        item = disputed[number - 1]
        words = self._last_words()
        said = await _said(request, item, words)
        if said is None:
            return _refused()
        if isinstance(said, Label):
            write_adjudication(self.run, self._last_words().with_label(said))
            return _go("/settle")
        given = [label for one in read_labels(self.run) if (label := one.of(item.place))]
        left = len(self._open_disputes())
        about = f"Adjudication: {len(disputed) - left} of {len(disputed)} settled"
        return self._leaf_page(item, number, "/settle", said, about, of=len(disputed), given=given)

    async def export(self, request: Request) -> Response:
        """Everybody's labels and the last words as CSV."""
        text = labels_csv(read_labels(self.run), read_adjudication(self.run))
        headers = {"Content-Disposition": 'attachment; filename="labels.csv"'}
        return Response(text, media_type="text/csv", headers=headers)

    async def picture(self, request: Request) -> Response:
        """A picture of the evidence; only those that a leaf shows."""
        digest = str(request.path_params["digest"])
        media_type = self.pictures.get(digest)
        if media_type is None:
            return PlainTextResponse("There is no such picture.", status_code=404)
        return Response(self.evidence.picture(digest), media_type=media_type)

    async def asset(self, request: Request) -> Response:
        """The style sheets and the script."""
        name = str(request.path_params["name"])
        kinds = {"style.css": "text/css", "label.css": "text/css", "label.js": "text/javascript"}
        if name not in kinds:
            return PlainTextResponse("There is no such page.", status_code=404)
        return Response(asset(name), media_type=kinds[name])

    def _last_words(self) -> Labels:
        return read_adjudication(self.run) or Labels(rater=ADJUDICATOR)

    def _labels(self, request: Request) -> Labels | None:
        try:
            rater = Labels(rater=str(request.path_params["rater"])).rater
        except ValidationError:
            return None
        return labels_of(self.run, rater)

    def _next(self, labels: Labels, after: int) -> Response:
        numbers = [*range(after, len(self.items)), *range(after)]
        for place in numbers:
            if labels.of(self.items[place].place) is None:
                return _go(f"/label/{labels.rater}/{place + 1}")
        return _go("/?done=1")

    def _disputed(self) -> list[Item]:
        disputed = set(disputed_leaves(read_labels(self.run), self.threshold))
        return [item for item in self.items if item.place in disputed]

    def _open_disputes(self) -> list[Item]:
        words = read_adjudication(self.run)
        return [item for item in self._disputed() if words is None or not words.of(item.place)]

    def _leaf_page(
        self,
        item: Item,
        number: int,
        base: str,
        said: _Said,
        about: str,
        *,
        of: int,
        given: Sequence[Label] = (),
    ) -> Response:
        return _page(
            "label.html",
            item=item,
            place=_place_name(item),
            number=number,
            base=base,
            of=of,
            said=said,
            about=about,
            given=given,
            letters="ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        )


async def _said(request: Request, item: Item, labels: Labels) -> Label | _Said | None:
    """The label that is sent, or what the form shows: what was sent wrong, or was said before.

    None where a form comes from elsewhere or is another leaf's.
    """
    if request.method == "POST":
        form = await _form(request)
        # A disputed leaf's number may be another's by now, so the form says which leaf it is of.
        if form is None or form.get("place") != _place_name(item):
            return None
        return _read_label(item, form)
    known = labels.of(item.place)
    return _Said() if known is None else _Said(f"{known.value:g}", known.reason)


def _place_name(item: Item) -> str:
    return " ".join(map(str, item.place))


def _read_label(item: Item, form: Mapping[str, str]) -> Label | _Said:
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
        return _Said(value, reason, "Choose a score from 0 to 10.")


async def _form(request: Request) -> dict[str, str] | None:
    """The fields of a form of these pages; None where it comes from elsewhere or is too long."""
    origin = request.headers.get("origin")
    if origin is not None and origin != f"http://{request.headers['host']}":
        return None
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY:
            return None
    return {name: values[-1] for name, values in parse_qs(body.decode(errors="replace")).items()}


def _page(template: str, **values: object) -> Response:
    headers = {"Content-Security-Policy": POLICY, "Referrer-Policy": "same-origin"}
    return Response(render(template, **values), media_type="text/html", headers=headers)


def _refused() -> Response:
    told = "This form did not come from the label page, or is of another leaf by now: go back."
    return PlainTextResponse(told, status_code=403)


def _go(place: str) -> Response:
    return RedirectResponse(place, status_code=303)
