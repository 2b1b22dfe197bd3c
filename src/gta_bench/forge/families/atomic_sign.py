"""sign: opening hours on a sign: when a shop closes, how long it is open, which ones are open."""

import re
from functools import partial
from typing import Final, NamedTuple

from gta_bench.forge.atomic import AtomicFamily, Desk, Question, Unsolved
from gta_bench.forge.draft import TaskDice, TaskLevel
from gta_bench.forge.goods import SHOPS
from gta_bench.forge.pictures import Canvas, DrawnPicture
from gta_bench.forge.reading import read_rows
from gta_bench.forge.words import COMPANIES
from gta_bench.records.atomic import WhitelistAnswer

DAYS: Final = (
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
)  # fmt: skip
# How a week is cut into lines: the first and the last day of each.
WEEKS: Final = (
    ((0, 3), (4, 4), (5, 5)),
    ((0, 2), (3, 4), (5, 5)),
    ((0, 1), (2, 3), (4, 4), (5, 6)),
)
LOOKS: Final = (("#14213d", "#ffffff"), ("#ffffff", "#7b1e1e"), ("#3a2618", "#fbeecb"))
_HOURS: Final = re.compile(r"(\D+?) (\d\d):(\d\d) - (\d\d):(\d\d)")


class Hours(NamedTuple):
    """From and until when, in minutes of the day."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"{_show(self.start)} - {_show(self.end)}"


def make(dice: TaskDice, level: TaskLevel) -> Question:
    """Make a question."""
    return {1: _ask_closing, 2: _ask_minutes, 3: _ask_open}[level](dice)


def _ask_closing(dice: TaskDice) -> Question:
    closing = [60 * hour + minute for hour in range(15, 22) for minute in (0, 15, 30, 45)]
    ends = dice.sample(closing, 6)
    rows = {day: Hours(_draw_start(dice), end) for day, end in zip(DAYS, ends, strict=False)}
    asked = dice.choice([*rows])
    end = rows[asked].end
    request = dice.choice(
        (
            f"Until what time is the shop with this sign open on {asked}?",
            f"When does this shop close on {asked}?",
        )
    )
    return Question(
        request=f"{request} Answer with the time only, such as 13:05.",
        pictures=(_draw(dice, {day: str(hours) for day, hours in rows.items()}),),
        solve=partial(_solve_closing, asked),
        answer=_show(end),
        accepted=WhitelistAnswer(
            whitelist=((_show(end), *_show_half_day(end)),),
            blacklist=tuple((_show(one),) for one in ends if one != end),
        ),
    )


def _ask_minutes(dice: TaskDice) -> Question:
    cuts = dice.choice(WEEKS)
    starts = [_draw_start(dice) for _ in cuts]
    hours = [Hours(one, one + 5 * dice.randint(60, 120)) for one in starts]
    rows = {
        DAYS[first] if first == last else f"{DAYS[first]} to {DAYS[last]}": one
        for (first, last), one in zip(cuts, hours, strict=True)
    }
    at = dice.randrange(len(cuts))
    day = dice.randint(*cuts[at])
    now = dice.randint(hours[at].start + 20, hours[at].end - 61)
    request = dice.choice(
        (
            f"It is {DAYS[day]}, {_show(now)}. For how many minutes is this shop still open?",
            f"I get to this shop on {DAYS[day]} at {_show(now)}. How many minutes do I have until "
            "it closes?",
        )
    )
    left = str(hours[at].end - now)
    return Question(
        request=request,
        pictures=(_draw(dice, {name: str(one) for name, one in rows.items()}),),
        solve=partial(_solve_minutes, day, now),
        answer=left,
        accepted=WhitelistAnswer(whitelist=((left,),)),
    )


def _ask_open(dice: TaskDice) -> Question:
    shops = [f"{one} {dice.choice(SHOPS)}" for one in dice.sample(COMPANIES, 8)]
    rows = {}
    for number, shop in enumerate(shops):
        # Early, late and long hours, so that some are open and others closed.
        start = 60 * (7, 13, 8, 12)[number % 4] + 15 * dice.randrange(8)
        rows[shop] = Hours(start, start + 60 * (6, 7, 12, 9)[number % 4] + 15 * dice.randrange(4))
    order = dice.sample(shops, len(shops))
    now = 60 * dice.choice((9, 10, 18, 19)) + dice.choice((7, 22, 38, 52))
    is_open = [shop for shop in order if rows[shop].start <= now < rows[shop].end]
    request = dice.choice(
        (
            f"Which of the shops on this board are open at {_show(now)}?",
            f"It is {_show(now)}. Which shops on the board can I visit now?",
        )
    )
    return Question(
        request=f"{request} Name only these.",
        pictures=(_draw(dice, {shop: str(rows[shop]) for shop in order}),),
        solve=partial(_solve_open, now),
        answer=", ".join(is_open),
        accepted=WhitelistAnswer(
            whitelist=tuple((shop,) for shop in is_open),
            blacklist=tuple((shop,) for shop in order if shop not in is_open),
        ),
    )


def _draw_start(dice: TaskDice) -> int:
    return 60 * dice.randint(7, 10) + 15 * dice.randrange(4)


def _show(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _show_half_day(minutes: int) -> tuple[str, ...]:
    clock = f"{(minutes // 60 - 1) % 12 + 1}:{minutes % 60:02}"
    half = "pm" if minutes >= 720 else "am"
    return f"{clock} {half}", f"{clock}{half}", f"{clock} {half[0]}.m"


def _draw(dice: TaskDice, rows: dict[str, str]) -> DrawnPicture:
    paper, ink = dice.choice(LOOKS)
    height = 170 + 60 * len(rows)
    canvas = Canvas(760, height, paper)
    canvas.fill((14, 14, 745, height - 15), paper, edge=ink)
    canvas.write((380, 70), "Opening hours", 40, face="bold", ink=ink, anchor="mm")
    canvas.rule(112, 60, 700, ink, 3)
    for number, (name, hours) in enumerate(rows.items()):
        y = 160 + 60 * number
        canvas.write((60, y), name, 28, ink=ink)
        canvas.write((700, y), hours, 28, ink=ink, anchor="rm")
    return canvas.finish()


async def _read(desk: Desk) -> dict[str, Hours]:
    reply = await desk.call("I read the opening hours on the sign.", "OCR", image=desk.pictures[0])
    rows = [one for one in map(_HOURS.fullmatch, read_rows(reply)) if one is not None]
    if not rows:
        raise Unsolved(f"no hours in {reply!r}")
    return {
        one[1]: Hours(60 * int(one[2]) + int(one[3]), 60 * int(one[4]) + int(one[5]))
        for one in rows
    }


async def _solve_closing(day: str, desk: Desk) -> str:
    rows = await _read(desk)
    if day not in rows:
        raise Unsolved(f"no {day} in {rows}")
    return _show(rows[day].end)


async def _solve_minutes(day: int, now: int, desk: Desk) -> str:
    rows = await _read(desk)
    for name, hours in rows.items():
        first, _, last = name.partition(" to ")
        if DAYS.index(first) <= day <= DAYS.index(last or first):
            return await desk.call(
                f"On {DAYS[day]} it closes at {_show(hours.end)}. I calculate the minutes from "
                f"{_show(now)} until then.",
                "Calculator",
                expression=f"{hours.end // 60} * 60 + {hours.end % 60} - "
                f"({now // 60} * 60 + {now % 60})",
            )
    raise Unsolved(f"no {DAYS[day]} in {rows}")


async def _solve_open(now: int, desk: Desk) -> str:
    rows = await _read(desk)
    return ", ".join(shop for shop, hours in rows.items() if hours.start <= now < hours.end)


FAMILY: Final = AtomicFamily(
    "sign",
    "opening hours on a sign: when a shop closes, for how long it is open, which ones are open",
    (
        "when the shop closes on one of 6 days",
        "minutes until it closes, days in groups, 1 tool too many",
        "which of 8 shops are open at a time, 2 tools too many",
    ),
    ("Calculator", "OCR"),
    make,
)
