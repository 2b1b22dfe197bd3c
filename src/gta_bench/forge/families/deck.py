"""deck: a brief in Markdown becomes a PowerPoint deck with notes, a table and a chart."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from PIL import Image
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
from gta_bench.forge.drawing import encode_png
from gta_bench.forge.inside import write_check
from gta_bench.forge.words import PRODUCTS

FILE: Final = "deck.pptx"
CHECK: Final = "checks/deck.py"
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
LUNCH: Final = "Who orders lunch?"
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
    tiny: bool = False
    lying: bool = False
    table_on: str = ""

    def build(self) -> Work:
        """Write the deck."""
        slides = [ForgedSlide(self.title, self.cover), *map(self._show, self.sections), *self.extra]
        color = GREEN if self.drawn else BLUE
        return Work({FILE: write_deck(slides, foot=self.cover[0], color=color)})

    def _show(self, section: _Section) -> ForgedSlide:
        slide = ForgedSlide(section.title, section.points, section.note)
        if section.title == (self.table_on or self.chart_title):
            slide = slide._replace(table=WordTable([("Product", "Units"), *self.units]))
        if section.title != self.chart_title or not self.chart:
            return slide
        names, values = zip(*self.units, strict=True)
        if not self.drawn:
            return slide._replace(shown=DeckChart(AXIS, names, values, self.lying))
        if self.tiny:
            picture = encode_png(Image.new("RGB", (1, 1), "white"))
        else:
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
        nodes=_score(plan, SKIPPED[:skipped]),
        gold={"native-chart": plan.build(), "drawn-chart": replace(plan, drawn=True).build()},
        wrong=_break(plan, skipped=skipped > 0),
        cheat={"one-slide": Work({FILE: write_deck([cover], foot=company)})},
        checks={
            "deck.py": write_check(
                "deck",
                SECTIONS=[(one.title, [*one.points], one.note) for one in sections],
                SALES=plan.chart_title,
                UNITS=[*plan.units],
            )
        },
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
            lines += [f"## {skipped[number]} (not for the deck)", "", f"- {LUNCH}", ""]
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
        f"slide for each section, {order}, with the section's title in the slide's title "
        f"placeholder, and no other slide: {len(plan.sections) + 1} slides in all.{left_out} "
        "Each slide has the points of its section word for word, each as a paragraph or in a box "
        "of its own, and no point of another section. Points marked (internal) must "
        'not appear on a slide or in the notes. What follows "Note:" in a section becomes the '
        f'speaker notes of its slide, word for word. The slide "{plan.chart_title}" also has the '
        "brief's table with the columns Product and Units, and a column chart of it, either native "
        "or as a picture of at least 300 pixels of width."
    )


def _score(plan: _Plan, skipped: Sequence[str]) -> tuple[GroupEntry, ...]:
    file = {"file": FILE}
    count = len(plan.sections) + 1
    points = [point for one in plan.sections for point in one.points]
    secrets = [secret for one in plan.sections for secret in one.secrets]
    # Without the article, so that a sentence that begins otherwise is found, too.
    kept = [one.partition(" ")[2] for one in secrets]
    refused: list[JsonValue] = [*kept, *(one.replace(" %", "%") for one in kept if " %" in one)]
    refused += ["(internal)", *skipped, *([LUNCH] if skipped else [])]
    names: list[JsonValue] = [name for name, _ in plan.units]
    titles: list[JsonValue] = [plan.title, *(one.title for one in plan.sections)]
    units: Iterator[CheckTable] = (
        {"is": "table.value", **file, "row": name, "column": "Units", "equals": float(value)}
        for name, value in plan.units
    )
    left_out = " and nothing of a section that is left out" if skipped else ""
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
            leaf("points", f"All {len(points)} points that are not internal are on the slides of "
                 "their sections, word for word, and on no other.",
                 {"is": "python", "run": f"{CHECK}:show_points"}),
            leaf("internal", f"The deck lists the {len(plan.units)} products of the brief, and "
                 f"has no point that is marked internal ({len(secrets)} in the brief){left_out}.",
                 {"is": "text.contains", **file, "all": names, "none": refused}),
            leaf("notes", f"Each of the {count - 1} sections has its note in the speaker notes of "
                 "its slide.",
                 {"is": "doc.parts", **file, "notes": count - 1},
                 {"is": "python", "run": f"{CHECK}:say_notes"}),
            weight=1.5,
        ),
        group(
            "sales",
            leaf("figures", f'A table on the slide "{plan.chart_title}" has the units of each of '
                 f"the {len(plan.units)} products.",
                 *units, {"is": "python", "run": f"{CHECK}:place_table"}),
            leaf("chart", f'The slide "{plan.chart_title}" has a native column chart of the units, '
                 "or a picture with at least 300 pixels of width.",
                 {"is": "python", "run": f"{CHECK}:draw_chart"}),
        ),
    )  # fmt: skip


def _break(plan: _Plan, *, skipped: bool) -> dict[str, Wrong]:
    at = next(n for n, one in enumerate(plan.sections) if one.title != plan.chart_title)
    one, secret = plan.sections[at], next(one.secrets[0] for one in plan.sections if one.secrets)
    (name, value), *others = plan.units

    def change(section: _Section) -> _Plan:
        return replace(plan, sections=(*plan.sections[:at], section, *plan.sections[at + 1 :]))

    first, *rest, last = plan.sections
    strange = next(other for other in plan.sections if other is not one)
    thanks = ForgedSlide("Thank you", ("Questions are welcome",))
    swapped = (first._replace(note=last.note), *rest, last._replace(note=first.note))
    whispered = one._replace(points=one.points[:1], note=f"{one.note}\n{one.points[1]}")
    made: dict[str, tuple[_Plan, tuple[str, ...]]] = {
        "slide-added": (replace(plan, extra=(thanks,)), ("slides",)),
        # A section is found by the title of its slide.
        "title-changed": (
            change(one._replace(title="More news")),
            ("titles", "points", "notes"),
        ),
        "slides-swapped": (replace(plan, sections=(last, *rest, first)), ("titles",)),
        "point-lost": (change(one._replace(points=one.points[:1])), ("points",)),
        "points-denied": (
            change(one._replace(points=tuple(f"It is not true that {x}" for x in one.points))),
            ("points",),
        ),
        "points-of-others-added": (
            change(one._replace(points=(*one.points, *strange.points))),
            ("points",),
        ),
        "chart-lying": (replace(plan, lying=True), ("chart",)),
        "point-in-notes": (change(whispered), ("points",)),
        "internal-shown": (change(one._replace(points=(*one.points, secret))), ("internal",)),
        "note-lost": (change(one._replace(note="")), ("notes",)),
        "notes-swapped": (replace(plan, sections=swapped), ("notes",)),
        "value-off": (
            replace(plan, units=((name, value + 10), *others)),
            ("figures", "chart"),
        ),
        "table-elsewhere": (replace(plan, table_on=one.title), ("figures",)),
        "chart-left-out": (replace(plan, chart=False), ("chart",)),
        "chart-tiny": (replace(plan, drawn=True, tiny=True), ("chart",)),
    }
    if skipped:
        made["section-kept"] = change(one._replace(points=(*one.points, LUNCH))), ("internal",)
    return {
        name: Wrong(wrong.build(), broken, "native-chart") for name, (wrong, broken) in made.items()
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
