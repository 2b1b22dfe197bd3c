"""deck: a brief in Markdown becomes a PowerPoint deck with notes, a table and a chart."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from pydantic import JsonValue

from gta_bench.datasets.folders import GroupEntry
from gta_bench.forge.documents import (
    BLUE,
    GREEN,
    DeckChart,
    ForgedSlide,
    WordPicture,
    WordTable,
    draw_bars,
    write_deck,
)
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
from gta_bench.forge.words import PRODUCTS

FILE: Final = "deck.pptx"
# Sections, sections that are left out, internal points, products.
SIZES: Final = {1: (4, 0, 1, 4), 2: (6, 1, 2, 5), 3: (9, 2, 4, 6)}
TOPICS: Final = (
    ("Customers", "{} stores carry our products", "{} % of customers order again"),
    ("Team", "{} people work in five locations", "{} colleagues joined this year"),
    ("Delivery", "{} % of orders arrive on time", "{} hours from order to dispatch"),
    ("Quality", "{} returns per ten thousand items", "{} tests for every new product"),
    ("Warehouse", "{} pallets fit into the new hall", "{} trucks leave on a normal day"),
    ("Online shop", "{} visits an hour at noon", "{} % of baskets become orders"),
    ("Suppliers", "{} suppliers passed the audit", "{} offers for packaging compared"),
    ("Energy", "{} % of our power is solar", "{} lamps replaced in the hall"),
    ("Training", "{} courses are open to everyone", "{} days of training per person"),
    ("Safety", "{} days without an accident", "{} exits checked every month"),
    ("Marketing", "{} posters hang in the city", "{} readers opened the last letter"),
)
SALES: Final = ("Units by product", "What sold best", "Sales by product")
SECRETS: Final = (
    "The largest account pays {} days late",
    "A rival offers {} % less",
    "The landlord asks for {} % more rent",
    "The bank wants an answer within {} days",
)
SKIPPED: Final = ("Parking lot", "Open questions")
NOTES: Final = ("Thank {} for the data.", "Hand over to {} afterwards.", "{} answers questions.")
AXIS: Final = "Units sold"


class _Section(NamedTuple):
    """A section of the brief."""

    title: str
    points: tuple[str, ...]
    secrets: tuple[str, ...]
    note: str


@dataclass(frozen=True)
class _Plan:
    """What the deck shows; the last section has the table and the chart."""

    title: str
    cover: tuple[str, ...]
    sections: tuple[_Section, ...]
    chart_title: str
    units: tuple[tuple[str, int], ...]
    extra: tuple[ForgedSlide, ...] = ()
    chart: bool = True
    drawn: bool = False

    def build(self) -> Work:
        """Write the deck."""
        slides = [ForgedSlide(self.title, self.cover), *map(self._show, self.sections), *self.extra]
        color = GREEN if self.drawn else BLUE
        return Work({FILE: write_deck(slides, foot=self.cover[0], color=color)})

    def _show(self, section: _Section) -> ForgedSlide:
        slide = ForgedSlide(section.title, section.points, section.note)
        if section.title != self.chart_title:
            return slide
        slide = slide._replace(table=WordTable([("Product", "Units"), *self.units]))
        if not self.chart:
            return slide
        names, values = zip(*self.units, strict=True)
        if not self.drawn:
            return slide._replace(shown=DeckChart(AXIS, names, values))
        picture = draw_bars(AXIS, self.units, color=GREEN, size=(6.6, 4.9), text=13)
        return slide._replace(shown=WordPicture(picture, f"Bar chart: {AXIS.lower()}"))


def make(dice: TaskDice, level: TaskLevel) -> TaskDraft:
    """Make a task."""
    count, skipped, secrets, products = SIZES[level]
    company, speaker = dice.company(), dice.person()
    sections = _draw_sections(dice, count, secrets)
    values = dice.sample(range(120, 900), products)
    plan = _Plan(
        title=f"{company}: {dice.choice(('the year so far', 'where we stand', 'annual review'))}",
        cover=(company, f"Presented by {speaker}"),
        sections=sections,
        chart_title=next(one.title for one in sections if one.title in SALES),
        units=tuple(zip(map(str.capitalize, dice.sample(PRODUCTS, products)), values, strict=True)),
    )
    shown = dice.sample(sections, count) if level > 2 else sections
    cover = ForgedSlide(plan.title, plan.cover)
    return TaskDraft(
        request=_ask(dice, plan, level),
        category="Business & Marketing Strategy",
        tools=("Plot", "PptxFileGenerator"),
        inputs={"brief.md": _brief(plan, shown, SKIPPED[:skipped], speaker).encode()},
        deliverables={FILE: "pptx"},
        nodes=_score(plan),
        gold={"native-chart": plan.build(), "drawn-chart": replace(plan, drawn=True).build()},
        wrong=_break(plan),
        cheat={"one-slide": Work({FILE: write_deck([cover], foot=company)})},
    )


def _draw_sections(dice: TaskDice, count: int, secrets: int) -> tuple[_Section, ...]:
    topics = dice.sample(TOPICS, count - 1)
    numbers = dice.sample(range(11, 99), 2 * count)
    hidden = [one.format(dice.randint(3, 30)) for one in dice.sample(SECRETS, secrets)]
    notes = [dice.choice(NOTES).format(one) for one in dice.people(count)]
    titled = [*topics, (dice.choice(SALES), "{} shops took part", "{} % more than a year ago")]
    dice.shuffle(titled)
    return tuple(
        _Section(
            title,
            (first.format(numbers[2 * at]), second.format(numbers[2 * at + 1])),
            tuple(hidden[at : at + 1]),
            notes[at],
        )
        for at, (title, first, second) in enumerate(titled)
    )


def _brief(plan: _Plan, shown: Sequence[_Section], skipped: Sequence[str], speaker: str) -> str:
    lines = [f"# {plan.title}", "", f"Company: {plan.cover[0]}", f"Speaker: {speaker}", ""]
    if shown is not plan.sections:
        order = [f"{number}. {one.title}" for number, one in enumerate(plan.sections, 1)]
        lines += ["Running order:", "", *order, ""]
    for number, section in enumerate(shown):
        lines += [f"## {section.title}", "", *(f"- {one}" for one in section.points)]
        lines += [*(f"- (internal) {one}" for one in section.secrets), ""]
        if section.title == plan.chart_title:
            rows = [f"| {name} | {value} |" for name, value in plan.units]
            lines += ["| Product | Units |", "|---|---|", *rows, ""]
        lines += [f"Note: {section.note}", ""]
        if number < len(skipped):
            lines += [f"## {skipped[number]} (not for the deck)", "", "- Who orders lunch?", ""]
    return "\n".join(lines)


def _ask(dice: TaskDice, plan: _Plan, level: TaskLevel) -> str:
    opening = dice.choice(
        (
            f"Turn inputs/brief.md into a deck, {FILE}.",
            f"We present next week. Make {FILE} from our brief, inputs/brief.md.",
        )
    )
    left_out = ' Sections marked "not for the deck" are left out.' if level > 1 else ""
    order = "in the running order that the brief lists" if level > 2 else "in the brief's order"
    return (
        f"{opening} The first slide is the cover with the title of the brief. Then comes one "
        f"slide for each section, {order}, with the section's title as its title, and no other "
        f"slide: {len(plan.sections) + 1} slides in all.{left_out} Each slide has the points of "
        "its section word for word. Points marked (internal) must not appear anywhere, not even "
        'in the notes. What follows "Note:" in a section becomes the speaker notes of its slide, '
        f'word for word. The slide "{plan.chart_title}" also has the brief\'s table with the '
        "columns Product and Units, and a column chart of it, either native or as a picture."
    )


def _score(plan: _Plan) -> tuple[GroupEntry, ...]:
    file = {"file": FILE}
    count = len(plan.sections) + 1
    points: list[JsonValue] = [point for one in plan.sections for point in one.points]
    secrets: list[JsonValue] = [secret for one in plan.sections for secret in one.secrets]
    names: list[JsonValue] = [name for name, _ in plan.units]
    notes: list[JsonValue] = [one.note for one in plan.sections]
    titles: list[JsonValue] = [plan.title, *(one.title for one in plan.sections)]
    units: Iterator[CheckTable] = (
        {"is": "table.value", **file, "row": name, "column": "Units", "equals": float(value)}
        for name, value in plan.units
    )
    on_slide = rf"^## Slide \d+: {re.escape(plan.chart_title)}\n(?:(?!## Slide )[^\n]*\n)*?"
    return (
        group(
            "outline",
            leaf("slides", f"The deck has {count} slides.",
                 {"is": "doc.size", **file, "pages": {"min": count, "max": count}}),
            leaf("titles", f"The {count} titles of the slides are those of the brief, in the "
                 "order that the request wants.",
                 {"is": "doc.heading", **file, "texts": titles}),
        ),
        group(
            "content",
            leaf("points", f"All {len(points)} points that are not internal are on the slides, "
                 "word for word.", {"is": "text.contains", **file, "all": points}),
            leaf("internal", f"The deck lists the {len(plan.units)} products of the brief, and "
                 f"has no point that is marked internal ({len(secrets)} in the brief).",
                 {"is": "text.contains", **file, "all": names,
                  "none": secrets}),
            leaf("notes", f"Each of the {count - 1} sections has its note in the speaker notes.",
                 {"is": "doc.parts", **file, "notes": count - 1},
                 {"is": "text.contains", **file, "all": notes}),
            weight=1.5,
        ),
        group(
            "sales",
            leaf("figures", f"A table has the units of each of the {len(plan.units)} products.",
                 *units),
            leaf("chart", f'The slide "{plan.chart_title}" has a chart, native or as a picture.',
                 {"is": "text.regex", **file,
                  "pattern": rf"{on_slide}\[(?:picture: |\w+ chart\b)"}),
        ),
    )  # fmt: skip


def _break(plan: _Plan) -> dict[str, Wrong]:
    at = next(n for n, one in enumerate(plan.sections) if one.title != plan.chart_title)
    one, secret = plan.sections[at], next(one.secrets[0] for one in plan.sections if one.secrets)
    (name, value), *others = plan.units

    def change(section: _Section) -> _Plan:
        return replace(plan, sections=(*plan.sections[:at], section, *plan.sections[at + 1 :]))

    first, *rest, last = plan.sections
    thanks = ForgedSlide("Thank you", ("Questions are welcome",))
    made = {
        "slide-added": (replace(plan, extra=(thanks,)), "slides"),
        "title-changed": (change(one._replace(title="More news")), "titles"),
        "slides-swapped": (replace(plan, sections=(last, *rest, first)), "titles"),
        "point-lost": (change(one._replace(points=one.points[:1])), "points"),
        "internal-shown": (change(one._replace(points=(*one.points, secret))), "internal"),
        "note-lost": (change(one._replace(note="")), "notes"),
        "value-off": (replace(plan, units=((name, value + 10), *others)), "figures"),
        "chart-left-out": (replace(plan, chart=False), "chart"),
    }
    return {
        name: Wrong(wrong.build(), (broken,), "native-chart")
        for name, (wrong, broken) in made.items()
    }


FAMILY: Final = TaskFamily(
    "deck",
    "a brief in Markdown becomes a deck with titles in order, notes, a table and a chart",
    (
        "5 slides, 1 internal point",
        "7 slides, 2 internal points, a section to leave out",
        "10 slides in another order, 4 internal points, 2 sections to leave out",
    ),
    make,
)
