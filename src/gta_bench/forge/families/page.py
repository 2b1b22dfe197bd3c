"""page: a program in CSV and a picture become a web page with a table."""

import base64
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Final, NamedTuple

from PIL import Image, ImageDraw
from pydantic import JsonValue

from gta_bench.datasets.folders import GroupEntry
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
from gta_bench.forge.files import write_csv
from gta_bench.forge.inside import write_check
from gta_bench.forge.pictures import load_font

FILE: Final = "index.html"
BESIDE: Final = "media/small.png"
HEAD: Final = ("Date", "Event", "Room", "Seats", "Status")
SHOWN: Final = ("Date", "Event", "Room", "Seats")
SIZES: Final = {1: 6, 2: 14, 3: 40}
KINDS: Final = ("Concert", "Reading", "Workshop", "Lecture", "Film night", "Market", "Quiz")
TOPICS: Final = ("of the sea", "for families", "under the stars", "with friends", "by the river")
ROOMS: Final = ("Great Hall", "Library", "Garden", "Studio")
HEADINGS: Final = (("Program", "What is on", "All events"), ("The house", "Where we are", "Venue"))
SKIES: Final = (((38, 70, 110), (246, 190, 140)), ((52, 100, 120), (250, 225, 170)))
CHECK: Final = "checks/page.py"
STYLE: Final = """
body { font-family: Arial, sans-serif; margin: 0; color: #222; background: #f6f5f1; }
header { background: #264653; color: #fff;
  padding: 2rem max(1rem, calc((100% - 56rem) / 2)); }
header h1 { margin: 0 0 .6rem; }
nav a { color: #fff; margin-right: 1.2rem; }
main { max-width: 56rem; margin: 1.5rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; background: #fff; }
th, td { padding: .5rem .8rem; border-bottom: 1px solid #ddd; text-align: left; }
th { background: #2a9d8f; color: #fff; cursor: pointer; }
th::after { content: " \\2195"; opacity: .6; }
td:nth-child(4), th:nth-child(4) { text-align: right; }
figure { margin: 1rem 0; } img { width: 100%; border-radius: 6px; }
figcaption { color: #555; font-size: .9rem; margin-top: .4rem; }
"""
SCRIPT: Final = """
for (const head of document.querySelectorAll("th")) {
  head.addEventListener("click", () => {
    const body = document.querySelector("tbody");
    const text = (row) => row.cells[head.cellIndex].textContent;
    const rows = [...body.rows].sort((a, b) => text(a).localeCompare(text(b), "en",
      { numeric: true }));
    body.append(...rows);
  });
}
"""
BROKEN: Final = "\ndocument.getElementById('filter').focus();\n"


class Event(NamedTuple):
    """A line of the program."""

    day: str
    name: str
    room: str
    seats: int
    status: str


@dataclass(frozen=True)
class _Plan:
    """What the page shows."""

    house: str
    headings: tuple[str, str]
    events: tuple[Event, ...]
    credit: str
    picture: bytes
    script: str = SCRIPT
    anchor: str = "program"
    alt: str | None = None
    beside: bool = False
    linked: bool = True
    named: bool = True
    late: bool = False
    style: str = STYLE
    more: str = ""

    def build(self) -> Work:
        """Write the page, and the picture beside it unless it is in the page."""
        if not self.beside:
            source = f"data:image/png;base64,{base64.b64encode(self.picture).decode()}"
            return Work({FILE: self._write(source).encode()})
        return Work({FILE: self._write(BESIDE).encode(), BESIDE: shrink(self.picture)})

    def _write(self, source: str) -> str:
        first, second = self.headings
        alt = f"The house of {self.house} by the hills" if self.alt is None else self.alt
        head = "".join(f"<th>{one}</th>" for one in SHOWN)
        rows = "\n".join(
            "<tr>" + "".join(f"<td>{cell}</td>" for cell in event[:4]) + "</tr>"
            for event in self.events
        )
        table = f"""
<table><thead><tr>{head}</tr></thead><tbody>
{rows}
</tbody></table>"""
        program = (
            f"""<section id="program"><h2>{first}</h2>{"" if self.late else table}</section>"""
        )
        venue = f"""<section id="venue"><h2>{second}</h2>{table if self.late else ""}
<figure><img src="{source}" alt="{alt}"><figcaption>Photo: {self.credit}</figcaption></figure>
{self.more}</section>"""
        links = (self.anchor, first), ("venue", second)
        menu = "".join(
            f'<a href="#{anchor}">{text if self.named else ""}</a>' for anchor, text in links
        )
        return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{self.house}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{self.style}</style></head>
<body><header><h1>{self.house}</h1>
{f"<nav>{menu}</nav>" if self.linked else ""}</header>
<main>
{program}
{venue}
</main>
<script>{self.script}</script>
</body></html>
"""


def make(dice: TaskDice, level: TaskLevel) -> TaskDraft:
    """Make a task."""
    house, credit = f"{dice.places(1)[0]} Arts House", dice.person()
    events = _draw_events(dice, SIZES[level], canceled=level > 1)
    valid = [one for one in events if one.status == "confirmed"]
    room = dice.choice(sorted({one.room for one in valid})) if level > 2 else None
    shown = sorted(one for one in valid if room in (None, one.room))
    headings = dice.choice(HEADINGS[0]), dice.choice(HEADINGS[1])
    picture = draw_house(dice, credit)
    plan = _Plan(house, headings, tuple(shown), credit, picture)
    place = house.partition(" ")[0]
    return TaskDraft(
        request=_ask(dice, plan, place, level, room),
        category="Creative Design & Expressive Generation",
        tools=("ReadCSV", "OCR", "HtmlFileGenerator"),
        inputs={"program.csv": write_csv([HEAD, *events]), "house.png": picture},
        deliverables={FILE: "html"},
        nodes=_score(plan, place),
        gold={"in-one-file": plan.build(), "picture-beside": replace(plan, beside=True).build()},
        wrong=_break(plan, [one for one in events if one not in shown]),
        cheat={"screenshot": Work({FILE: shrink(picture)})},
        checks={
            "page.py": write_check(
                "page", SECTIONS=[*headings], PLACE=place, CREDIT=credit, COLUMNS=[*SHOWN]
            )
        },
    )


def _draw_events(dice: TaskDice, count: int, *, canceled: bool) -> list[Event]:
    start: date = dice.day()
    days = dice.sample(range(150), count)
    names = [f"{kind} {topic}" for kind in KINDS for topic in TOPICS]
    dice.shuffle(names)
    # Names that occur once find their rows.
    names += [f"{one}, part two" for one in names]
    seats = dice.sample(range(20, 200), count)
    events = [
        Event(
            (start + timedelta(days=days[at])).isoformat(),
            names[at],
            # Every room has two events that count.
            dice.choice(ROOMS) if at >= 2 * len(ROOMS) else ROOMS[at % len(ROOMS)],
            seats[at],
            "canceled"
            if canceled and at >= 2 * len(ROOMS) and dice.random() < 0.4
            else "confirmed",
        )
        for at in range(count)
    ]
    dice.shuffle(events)
    return events


def draw_house(dice: TaskDice, credit: str) -> bytes:
    """Return a picture of a house before hills, with the photographer's name on it."""
    wide, high = 960, 540
    top, bottom = dice.choice(SKIES)
    image = Image.new("RGB", (wide, high))
    draw = ImageDraw.Draw(image)
    for y in range(high):
        mixed = [a + (b - a) * y // high for a, b in zip(top, bottom, strict=True)]
        draw.line((0, y, wide, y), fill=(mixed[0], mixed[1], mixed[2]))
    left = dice.randint(100, 760)
    draw.ellipse((left, 70, left + 90, 160), fill=(255, 240, 200))
    for shade in ((96, 120, 110), (70, 98, 84)):
        base = dice.randint(300, 360)
        points = [(x, base + dice.randint(-40, 40)) for x in range(0, wide + 121, 120)]
        draw.polygon([(0, high), *points, (wide, high)], fill=shade)
    draw.polygon([(330, 250), (480, 160), (630, 250)], fill=(120, 60, 50))
    draw.rectangle((350, 250, 610, 440), fill=(232, 222, 200))
    for x in (380, 460, 540):
        draw.rectangle((x, 280, x + 40, 330), fill=(90, 120, 150))
    draw.rectangle((455, 360, 505, 440), fill=(110, 75, 55))
    draw.rectangle((0, 440, wide, high), fill=(58, 84, 66))
    draw.rectangle((0, high - 56, wide, high), fill=(25, 25, 25))
    draw.text((24, high - 46), f"Photo: {credit}", font=load_font("sans", 28), fill=(255, 255, 255))
    return encode_png(image)


def shrink(picture: bytes) -> bytes:
    """Return a picture with two thirds of its width and height."""
    with Image.open(io.BytesIO(picture)) as image:
        size = image.width * 2 // 3, image.height * 2 // 3
        return encode_png(image.resize(size, Image.Resampling.BILINEAR))


def _ask(dice: TaskDice, plan: _Plan, place: str, level: TaskLevel, room: str | None) -> str:
    opening = dice.choice(
        (
            f"Make a web page for {plan.house}, {FILE}, from inputs/program.csv and the picture "
            "inputs/house.png.",
            f"{plan.house} needs a page for its visitors. Its program is in inputs/program.csv, "
            f"a picture of the house in inputs/house.png. Deliver {FILE}.",
        )
    )
    first, second = plan.headings
    chosen = "confirmed events" if level > 1 else "events"
    chosen += f" in the {room}" if room else ""
    return (
        f'{opening} It has the headings "{plan.house}", "{first}" and "{second}", in this order, '
        f'and links at the top, above these two sections, that lead to "{first}" and "{second}" '
        f'on the page. Below "{first}" is the only table with the columns Date, Event, Room, '
        "Seats, and it has one row for "
        f"each of the {len(plan.events)} {chosen}, with the dates as in the file, the earliest "
        "first. The rows are in the source of the page, so that the table does not depend on a "
        f'script. Below "{second}" is the picture, at least 300 pixels wide, in the page itself '
        "or as a file beside it (PNG, JPEG, GIF or WebP; converted or scaled: an unchanged copy "
        f"of an input does not count as delivered), with an alternative text that names {place}, "
        'and with a caption of the form "Photo: NAME" and nothing else. The name of the '
        "photographer is written on the picture. The page "
        "opens without a script error."
    )


def _score(plan: _Plan, place: str) -> tuple[GroupEntry, ...]:
    file = {"file": FILE}
    count = len(plan.events)
    titles: list[JsonValue] = [plan.house, *plan.headings]
    values: Iterator[CheckTable] = (
        {"is": "table.value", **file, "row": event.name, "column": column, "equals": value}
        for event in plan.events
        for column, value in (
            ("Date", event.day),
            ("Seats", float(event.seats)),
            ("Room", event.room),
        )
    )
    events: CheckTable = {"is": "html.shows", **file, "all": [one.name for one in plan.events]}
    return (
        group(
            "page",
            leaf("opens", "The page opens in a browser without a script error.",
                 {"is": "html.opens", **file}),
            leaf("links", "Links above the two sections lead to them, and every link to a section "
                 "or to a local file resolves.",
                 {"is": "html.links", **file}, {"is": "python", "run": f"{CHECK}:link_sections"}),
            leaf("headings", "The page has the 3 headings that the request lists, in its order.",
                 {"is": "doc.heading", **file, "texts": titles},
                 {"is": "html.shows", **file, "all": titles}),
        ),
        group(
            "program",
            leaf("values", f"The table has the right date, seats and room of each of the {count} "
                 "events, and shows them.", *values, events),
            leaf("rows", f'Below "{plan.headings[0]}" is the only table with these columns. It '
                 f"has {count} rows, one for each event that the request asks for.",
                 {"is": "table.shape", **file, "rows": {"min": count, "max": count},
                  "head": [*SHOWN]},
                 {"is": "python", "run": f"{CHECK}:place_table"}, events),
            leaf("order", "The events are sorted by date, the earliest first.",
                 {"is": "table.order", **file, "by": "Date"}),
            weight=1.5,
        ),
        group(
            "picture",
            leaf("alt", "The picture is shown with at least 300 pixels of width, and has an "
                 f"alternative text that names {place}.",
                 {"is": "python", "run": f"{CHECK}:show_picture"}),
            leaf("caption", "One caption names the photographer whose name is on the picture, and "
                 "nothing else.", {"is": "python", "run": f"{CHECK}:name_photographer"},
                 {"is": "html.shows", **file, "all": [f"Photo: {plan.credit}"]}),
        ),
    )  # fmt: skip


def _break(plan: _Plan, others: list[Event]) -> dict[str, Wrong]:
    first, *middle, last = plan.events
    # On the same day as the last event, so that only the number of rows is off.
    more = (others[0] if others else first._replace(name="Open day"))._replace(day=last.day)
    off = first._replace(seats=first.seats + 10)
    early = first._replace(day=str(date.fromisoformat(first.day) - timedelta(days=1)))
    table = "".join(f"<th>{one}</th>" for one in SHOWN)
    given, family = plan.credit.split(" ")
    made: dict[str, tuple[_Plan, tuple[str, ...]]] = {
        "script-error": (replace(plan, script=SCRIPT + BROKEN), ("opens",)),
        "anchor-lost": (replace(plan, anchor="events"), ("links",)),
        "links-left-out": (replace(plan, linked=False), ("links",)),
        # A link leads to a section by its heading.
        "heading-renamed": (
            replace(plan, headings=(plan.headings[0], "Miscellaneous")),
            ("links", "headings"),
        ),
        "seats-off": (replace(plan, events=(off, *middle, last)), ("values",)),
        "date-off": (replace(plan, events=(early, *middle, last)), ("values",)),
        "links-without-text": (replace(plan, named=False), ("links",)),
        "table-too-late": (replace(plan, late=True), ("rows",)),
        "second-table": (
            replace(plan, more=f"<table><tr>{table}</tr><tr><td>None</td></tr></table>"),
            ("rows",),
        ),
        "table-hidden": (
            replace(plan, style=f"{STYLE}table {{ display: none; }}\n"),
            ("values", "rows"),
        ),
        "too-small-to-read": (
            replace(plan, style=f"{STYLE}main * {{ font-size: 1px; }}\n"),
            ("values", "rows", "caption"),
        ),
        "two-captions": (replace(plan, more="<p>Photo: the house</p>"), ("caption",)),
        "row-too-many": (replace(plan, events=(*plan.events, more)), ("rows",)),
        "not-sorted": (replace(plan, events=(last, *middle, first)), ("order",)),
        "alt-empty": (replace(plan, alt=""), ("alt",)),
        "picture-tiny": (replace(plan, picture=_draw_dot()), ("alt",)),
        "name-misread": (replace(plan, credit=f"{given[:-1]} {family}"), ("caption",)),
    }
    return {name: Wrong(one.build(), broken, "in-one-file") for name, (one, broken) in made.items()}


def _draw_dot() -> bytes:
    return encode_png(Image.new("RGB", (1, 1), "white"))


FAMILY: Final = TaskFamily(
    "page",
    "a program in CSV and a picture become a web page with links, a table, alt text and caption",
    (
        "6 events",
        "14 events, only confirmed ones count",
        "40 events, only confirmed ones in one room count",
    ),
    make,
    needs=("chromium",),
)
