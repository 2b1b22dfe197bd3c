"""schedule: rooms, people and sessions become a plan that meets every constraint.

Any plan that meets them is right. One exists, because the problem is drawn around a hidden plan.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from gta_bench.datasets.folders import GroupEntry
from gta_bench.forge.draft import (
    TaskDice,
    TaskDraft,
    TaskFamily,
    TaskLevel,
    Work,
    Wrong,
    group,
    leaf,
)
from gta_bench.forge.files import write_csv
from gta_bench.forge.inside import guard_check

FILE: Final = "plan.csv"
INPUT: Final = "sessions.json"
CHECK: Final = "plan.py"
HEAD: Final = ("Session", "Room", "Slot")
# Rooms, slots, the last slot that a plan may use, sessions, speakers.
SIZES: Final = {1: (2, 6, 4, 6, 4), 2: (3, 8, 6, 13, 7), 3: (4, 10, 8, 24, 12)}
SEATS: Final = (24, 40, 64, 100)
THINGS: Final = ("projector", "whiteboard", "microphone")
TOPICS: Final = (
    "Budget", "Onboarding", "Safety", "Pricing", "Hiring", "Design", "Support", "Research",
    "Logistics", "Quality", "Travel", "Training", "Security", "Planning", "Sales", "Energy",
    "Purchasing", "Archives", "Contracts", "Branding", "Data", "Health", "Events", "Ethics",
)  # fmt: skip
LEAVES: Final = {
    "complete": "Each of the {count} sessions has exactly one row, with a room and a slot that "
    "exist.",
    "rooms": "Every room has at most one session in a slot.",
    "speakers": "Every speaker has at most one session in a slot.",
    "seats": "Every session is in a room with at least as many seats as it needs.",
    "end": "Every session is in slot {latest} or earlier.",
    "equipment": "Every session is in a room that has what the session needs.",
    "away": "Every session is in a slot in which its speaker is not away.",
    "order": "Every session that comes after another one is in a later slot than that one.",
}
# The functions that decide; PROBLEM stands before them.
RULES: Final = '''

def read_plan(work):
    """Return session, room and slot of every row that can be read as such."""
    found = []
    for table in work.tables("plan.csv"):
        head = [cell.strip().lower() for cell in table[0]] if table else []
        if not all(one in head for one in ("session", "room", "slot")):
            continue
        places = [head.index(one) for one in ("session", "room", "slot")]
        for row in table[1:]:
            cells = [row[at].strip() if at < len(row) else "" for at in places]
            if cells[0] in PROBLEM["sessions"] and cells[1] in PROBLEM["rooms"]:
                # Some programs write whole numbers as 3.0.
                slot = cells[2].removesuffix(".0")
                if slot.isdecimal() and len(slot) < 9 and 1 <= int(slot) <= PROBLEM["slots"]:
                    found.append((cells[0], cells[1], int(slot)))
    return found


def decide(work, find, wanted):
    """Return whether a plan that lacks at most one session has nothing that `find` finds."""
    plan = read_plan(work)
    there = {name for name, _, _ in plan}
    if len(there) + 1 < len(PROBLEM["sessions"]):
        return {"score": 0, "found": f"{len(there)} sessions with a room and a slot"}
    bad = [one for one in plan if find(plan, *one)]
    found = f"{bad[0][0]} in {bad[0][1]} in slot {bad[0][2]}" if bad else f"{len(plan)} rows"
    return {"score": not bad, "found": found, "wanted": wanted}


def session(name):
    return PROBLEM["sessions"][name]


def complete(work):
    rows = [row for table in work.tables("plan.csv") for row in table[1:]
            if any(cell.strip() for cell in row)]
    names = sorted(name for name, _, _ in read_plan(work))
    right = names == sorted(PROBLEM["sessions"]) and len(rows) == len(names)
    return {"score": right, "found": f"{len(names)} rows", "wanted": "each session once"}


def rooms(work):
    def find(plan, name, room, slot):
        return sum((room, slot) == one[1:] for one in plan) > 1
    return decide(work, find, "one session in a room and slot")


def speakers(work):
    def find(plan, name, room, slot):
        speaker = session(name)["speaker"]
        return sum(session(one)["speaker"] == speaker and at == slot for one, _, at in plan) > 1
    return decide(work, find, "one session for a speaker and slot")


def seats(work):
    def find(plan, name, room, slot):
        return session(name)["seats"] > PROBLEM["rooms"][room]["seats"]
    return decide(work, find, "a room with enough seats")


def end(work):
    def find(plan, name, room, slot):
        return slot > PROBLEM["latest_slot"]
    return decide(work, find, f"slot {PROBLEM['latest_slot']} or earlier")


def equipment(work):
    def find(plan, name, room, slot):
        return not set(session(name)["needs"]) <= set(PROBLEM["rooms"][room]["has"])
    return decide(work, find, "a room that has what is needed")


def away(work):
    def find(plan, name, room, slot):
        return slot in PROBLEM["away"].get(session(name)["speaker"], [])
    return decide(work, find, "a slot in which the speaker is there")


def order(work):
    def find(plan, name, room, slot):
        first = session(name)["after"]
        return any(one == first and at >= slot for one, _, at in plan)
    return decide(work, find, "a later slot than the session before")
'''


class Room(NamedTuple):
    """A room."""

    name: str
    seats: int
    has: tuple[str, ...]


class Session(NamedTuple):
    """A session; `after` names another one that must be over."""

    name: str
    topic: str
    speaker: str
    seats: int
    needs: tuple[str, ...] = ()
    after: str = ""


class _Cell(NamedTuple):
    """Where and when a session is; `room` is a number."""

    room: int
    slot: int


# The cell of each session, in the order of the sessions.
_Plan = tuple[_Cell, ...]


@dataclass(frozen=True)
class Problem:
    """What a plan must meet; `away` has the slots of each speaker."""

    slots: int
    latest: int
    rooms: tuple[Room, ...]
    sessions: tuple[Session, ...]
    away: Mapping[str, tuple[int, ...]]
    leaves: tuple[str, ...]

    def find_broken(self, plan: _Plan) -> set[str]:
        """Return the leaves that a plan of all sessions does not meet."""
        pairs = [*zip(self.sessions, plan, strict=True)]
        slot_of = {one.name: cell.slot for one, cell in pairs}
        busy = Counter((one.speaker, cell.slot) for one, cell in pairs)
        met = {
            "rooms": len({*plan}) == len(plan),
            "speakers": max(busy.values()) == 1,
            "seats": all(one.seats <= self.rooms[cell.room].seats for one, cell in pairs),
            "end": max(slot_of.values()) <= self.latest,
            "equipment": all({*one.needs} <= {*self.rooms[cell.room].has} for one, cell in pairs),
            "away": not any(cell.slot in self.away.get(one.speaker, ()) for one, cell in pairs),
            "order": all(slot_of[one.after] < cell.slot for one, cell in pairs if one.after),
        }
        return {name for name, holds in met.items() if not holds}

    def export(self) -> dict[str, object]:
        """The problem as it is given, with names instead of numbers."""
        return {
            "slots": self.slots,
            "latest_slot": self.latest,
            "rooms": {one.name: {"seats": one.seats, "has": [*one.has]} for one in self.rooms},
            "away": {name: [*slots] for name, slots in self.away.items() if slots},
            "sessions": {
                one.name: {"topic": one.topic, "speaker": one.speaker, "seats": one.seats,
                           "needs": [*one.needs], "after": one.after or None}
                for one in self.sessions
            },
        }  # fmt: skip

    def build(self, plan: _Plan, *, by_slot: bool = True) -> Work:
        """Write a plan, sorted by slot or by session."""
        pairs = zip(self.sessions, plan, strict=False)
        rows = [(one.name, self.rooms[cell.room].name, cell.slot) for one, cell in pairs]
        if by_slot:
            rows.sort(key=lambda row: (row[2], row[1]))
        return Work({FILE: write_csv([HEAD, *rows])})


def make(dice: TaskDice, level: TaskLevel) -> TaskDraft:
    """Make a task: draw problems until every constraint can be broken alone."""
    while True:
        problem, plan = _draw(dice, level)
        spoiled = {name: _spoil(dice, problem, plan, name) for name in problem.leaves[1:]}
        other = _walk(dice, problem, plan)
        moved = sum(one != two for one, two in zip(plan, other, strict=True))
        if all(spoiled.values()) and 3 * moved >= len(plan):
            break
    given = json.dumps(problem.export(), indent=2)
    wrong = {
        f"{name}-broken": Wrong(problem.build(one), (name,), "by-slot")
        for name, one in spoiled.items()
        if one is not None
    }
    wrong["session-lost"] = Wrong(problem.build(plan[:-1]), ("complete",), "by-slot")
    wrong["half-planned"] = Wrong(problem.build(plan[: len(plan) // 2]), problem.leaves, "by-slot")
    return TaskDraft(
        request=_ask(dice, problem),
        category="Planning & Decision Support",
        tools=(),
        inputs={INPUT: f"{given}\n".encode()},
        deliverables={FILE: "csv"},
        nodes=_score(problem),
        gold={"by-slot": problem.build(plan), "other-plan": problem.build(other, by_slot=False)},
        wrong=wrong,
        cheat={"empty-plan": Work({FILE: write_csv([HEAD])})},
        checks={
            CHECK: guard_check(
                f"import json\n\nPROBLEM = json.loads(r'''{given}''')\n{RULES}", problem.leaves
            )
        },
    )


def _draw(dice: TaskDice, level: TaskLevel) -> tuple[Problem, _Plan]:
    """Return a problem, and the plan that it was drawn around."""
    rooms, slots, latest, count, speakers = SIZES[level]
    names, people = dice.places(rooms), dice.people(speakers)
    known = [
        Room(f"Room {name}", SEATS[number], tuple(dice.sample(THINGS, dice.randint(1, 2))))
        for number, name in enumerate(names)
    ]
    cells = [_Cell(room, slot) for room in range(rooms) for slot in range(1, latest + 1)]
    plan = tuple(dice.sample(cells, count))
    busy: dict[str, list[int]] = {one: [] for one in people}
    sessions: list[Session] = []
    for number, (cell, topic) in enumerate(zip(plan, dice.sample(TOPICS, count), strict=True), 1):
        speaker = dice.choice([one for one in people if cell.slot not in busy[one]])
        busy[speaker].append(cell.slot)
        room = known[cell.room]
        seats = room.seats - dice.randint(0, 15)
        needs = (dice.choice(room.has),) if level > 1 and dice.random() < 0.4 else ()
        sessions.append(Session(f"S{number:02}", topic, speaker, seats, needs))
    if level > 2:
        _chain(dice, sessions, plan, count // 4)
    away = {}
    for name, taken in busy.items():
        free = [slot for slot in range(1, latest + 1) if slot not in taken]
        away[name] = tuple(sorted(dice.sample(free, min(2, len(free))))) if level > 1 else ()
    leaves = [*LEAVES][: {1: 5, 2: 7, 3: 8}[level]]
    problem = Problem(slots, latest, tuple(known), tuple(sessions), away, tuple(leaves))
    return problem, plan


def _chain(dice: TaskDice, sessions: list[Session], plan: _Plan, count: int) -> None:
    """Let some sessions come after others, as they do in the plan."""
    for later in dice.sample(range(len(sessions)), count):
        before = [at for at, cell in enumerate(plan) if cell.slot < plan[later].slot]
        if before:
            first = sessions[dice.choice(before)].name
            sessions[later] = sessions[later]._replace(after=first)


def _moves(dice: TaskDice, problem: Problem, plan: _Plan) -> list[_Plan]:
    """Return plans with one session elsewhere, in random order."""
    cells = [
        _Cell(room, slot)
        for room in range(len(problem.rooms))
        for slot in range(1, problem.slots + 1)
    ]
    found = [
        (*plan[:at], cell, *plan[at + 1 :])
        for at, before in enumerate(plan)
        for cell in cells
        if cell != before
    ]
    dice.shuffle(found)
    return found


def _spoil(dice: TaskDice, problem: Problem, plan: _Plan, name: str) -> _Plan | None:
    """Return a plan that breaks one constraint and no other by moving one session."""
    moves = _moves(dice, problem, plan)
    return next((one for one in moves if problem.find_broken(one) == {name}), None)


def _walk(dice: TaskDice, problem: Problem, plan: _Plan) -> _Plan:
    """Return another plan that meets everything, by moving and swapping sessions."""
    for _ in range(40 * len(plan)):
        one, two = dice.sample(range(len(plan)), 2)
        cells = [*plan]
        if dice.random() < 0.5:
            cells[one], cells[two] = cells[two], cells[one]
        else:
            cells[one] = _Cell(
                dice.randrange(len(problem.rooms)), dice.randint(1, problem.latest)
            )  # fmt: skip
        if not problem.find_broken(tuple(cells)):
            plan = tuple(cells)
    return plan


def _ask(dice: TaskDice, problem: Problem) -> str:
    opening = dice.choice(
        (
            f"Plan the day of {dice.company()}: inputs/{INPUT} has its rooms, sessions and slots.",
            f"inputs/{INPUT} describes a meeting of {dice.company()} that needs a plan.",
        )
    )
    rules = {
        "seats": "A session needs a room with at least its number of seats.",
        "end": f"Slots are numbered from 1 to {problem.slots}, but no session may be later than "
        f"slot {problem.latest} (latest_slot).",
        "equipment": "The room must have everything that the session needs.",
        "away": "Speakers have no session in the slots in which they are away.",
        "order": "A session that comes after another one must be in a later slot than that one.",
    }
    stated = " ".join(rules[name] for name in problem.leaves if name in rules)
    return (
        f"{opening} Give each of the {len(problem.sessions)} sessions a room and a slot. A room "
        "has at most one session in a slot, and so has a speaker. "
        f"{stated} Deliver {FILE} with the columns {', '.join(HEAD)} and one row for each session, "
        "with the names and numbers of the given file. Any plan that meets all of this is fine; "
        "one that lacks more than one session counts as none."
    )


def _score(problem: Problem) -> tuple[GroupEntry, ...]:
    facts = {"count": len(problem.sessions), "latest": problem.latest}
    least = f" The plan has at least {len(problem.sessions) - 1} sessions."
    enough = {"plan": "", "constraints": least}
    parts: Sequence[tuple[str, Sequence[str]]] = (
        ("plan", problem.leaves[:1]), ("constraints", problem.leaves[1:]),
    )  # fmt: skip
    return tuple(
        group(
            part,
            *(leaf(name, LEAVES[name].format(**facts) + enough[part],
                   {"is": "python", "run": f"checks/{CHECK}:{name}"}) for name in names),
            weight=len(names),
        )
        for part, names in parts
    )  # fmt: skip


FAMILY: Final = TaskFamily(
    "schedule",
    "rooms, people and sessions in JSON become a plan in CSV; any plan that meets all rules is "
    "right",
    (
        "6 sessions, 2 rooms, 4 constraints",
        "13 sessions, 3 rooms, 6 constraints",
        "24 sessions, 4 rooms, 7 constraints",
    ),
    make,
)
