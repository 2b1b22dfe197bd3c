"""bundle: a messy zip archive becomes a tidy one with an index of its files."""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from PIL import Image, ImageDraw

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
from gta_bench.forge.files import pack, write_csv
from gta_bench.forge.inside import guard_check
from gta_bench.forge.words import PRODUCTS

ARCHIVE: Final = "bundle.zip"
INDEX: Final = "index.json"
INPUT: Final = "delivery.zip"
CHECK: Final = "bundle.py"
FUNCTIONS: Final = ("has_contents", "has_no_copies", "has_no_others")
# Files, files whose name has the ending of another kind, and files that are there twice.
SIZES: Final = {1: (6, 1, 1), 2: (12, 2, 2), 3: (24, 6, 4)}
# The ending and the folder of each kind.
KINDS: Final = {
    "csv": ("csv", "tables"),
    "json": ("json", "data"),
    "png": ("png", "pictures"),
    "text": ("txt", "notes"),
}
JUNK: Final = {
    ".DS_Store": b"\0\0\0\1Bud1\0\0",
    "Thumbs.db": b"\xd0\xcf\x11\xe0thumbs",
    "~$draft.docx": b"\5owner",
}
COLORS: Final = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b")
# The functions for the members; DIGESTS and JUNK stand before them.
RULES: Final = '''
import hashlib
import io
import zipfile
import zlib

MOST_BYTES = 64 * 2**20


def read_digests(work):
    """Return the digest of every member by its path; folders are left out."""
    with zipfile.ZipFile(io.BytesIO(work.read("bundle.zip"))) as archive:
        members = archive.infolist()
        # A few bytes can unpack to gigabytes.
        if sum(one.file_size for one in members) > MOST_BYTES:
            raise OSError(f"its files have more than {MOST_BYTES} bytes")
        found = [
            (one.filename.removeprefix("./"), hashlib.sha256(archive.read(one)).hexdigest())
            for one in members
            if not one.is_dir()
        ]
        # A folder without a file in it counts as something that was not given.
        folders = [one.filename.removeprefix("./") for one in members if one.is_dir()]
        empty = [one for one in folders if not any(path.startswith(one) for path, _ in found)]
        return found + [(one, "") for one in empty]


def decide(work, find, wanted):
    """Return whether half of the files are there, and `find` finds none that is wrong."""
    try:
        members = read_digests(work)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, OSError) as problem:
        return {"score": 0, "found": f"no archive that can be read: {problem}"}
    there = [path for path, _ in members if path in DIGESTS]
    if 2 * len(there) < len(DIGESTS):
        return {"score": 0, "found": f"{len(there)} of the files", "wanted": wanted}
    bad = [path for path, digest in members if find(members, path, digest)]
    return {"score": not bad, "found": bad[0] if bad else f"{len(members)} files", "wanted": wanted}


def has_contents(work):
    def find(members, path, digest):
        return path in DIGESTS and digest != DIGESTS[path]
    return decide(work, find, "the given bytes")


def has_no_copies(work):
    def find(members, path, digest):
        return digest != "" and sum(digest == other for _, other in members) > 1
    return decide(work, find, "no file twice")


def has_no_others(work):
    """Whether there is nothing else; other leaves are about junk, copies and other bytes."""
    def find(members, path, digest):
        known = path in DIGESTS or digest in DIGESTS.values()
        return not known and path.rpartition("/")[2] not in JUNK
    return decide(work, find, "only files that were given")
'''


class _Entry(NamedTuple):
    """A file of the bundle, its kind, and its path in the given archive."""

    path: str
    kind: str
    data: bytes
    given: str


@dataclass(frozen=True)
class _Plan:
    """What an archive and its index have.

    `listed` are entries of the index that differ, and `more` files that only the index has.
    """

    entries: tuple[_Entry, ...]
    members: Mapping[str, bytes]
    listed: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    more: Mapping[str, bytes] = field(default_factory=dict)
    missing: int = 0
    note: str = ""
    compact: bool = False

    def build(self) -> Work:
        """Write the archive and the index, in one of two layouts."""
        files = {
            one.path: {
                "sha256": hashlib.sha256(one.data).hexdigest(),
                "bytes": len(one.data),
                "kind": one.kind,
                **self.listed.get(one.path, {}),
            }
            for one in self.entries
        }
        for path, data in self.more.items():
            digest = hashlib.sha256(data).hexdigest()
            files[path] = {"sha256": digest, "bytes": len(data), "kind": "text"}
        total = sum(len(one.data) for one in self.entries) - self.missing
        index: dict[str, object] = {"files": files, "total_bytes": total}
        if self.note:
            index["note"] = self.note
        members = self.members
        if self.compact:
            index = {"total_bytes": total, "files": dict(reversed(files.items()))}
            members = dict(reversed([*members.items()]))
        text = json.dumps(index, indent=None if self.compact else 2)
        return Work({ARCHIVE: pack(members), INDEX: f"{text}\n".encode()})


def make(dice: TaskDice, level: TaskLevel) -> TaskDraft:
    """Make a task."""
    company = dice.company()
    entries = _draw(dice, level)
    twice = dice.sample(entries, SIZES[level][2])
    given = {one.given: one.data for one in entries}
    # A copy comes after its original in the alphabet.
    given |= {f"zz old/{_rename(one)}": one.data for one in twice}
    names = dice.sample([*JUNK], level)
    given |= {f"{dice.choice(('', 'work/'))}{name}": JUNK[name] for name in names}
    order = dice.sample([*given], len(given))
    archive = pack({path: given[path] for path in order})
    plan = _Plan(entries, {one.path: one.data for one in entries})
    index = json.dumps({"files": [*given]}).encode()
    return TaskDraft(
        request=_ask(dice, company),
        category="Information Retrieval & Knowledge QA",
        tools=(),
        inputs={INPUT: archive},
        deliverables={ARCHIVE: "zip", INDEX: "json"},
        nodes=_score(entries),
        gold={"indented": plan.build(), "compact": replace(plan, compact=True).build()},
        wrong=_break(plan, names[0], twice[0]),
        cheat={"as-given": Work({ARCHIVE: archive, INDEX: index})},
        checks={CHECK: _write_check(entries)},
    )


def _rename(one: _Entry) -> str:
    """Return the name of a copy, without its folder."""
    stem, _, ending = one.path.rpartition("/")[2].rpartition(".")
    return f"{stem} final.{ending}"


def _draw(dice: TaskDice, level: TaskLevel) -> tuple[_Entry, ...]:
    count, misnamed, _ = SIZES[level]
    kinds = [[*KINDS][number % len(KINDS)] for number in range(count)]
    things = [f"{one}-{number}" for number, one in enumerate((*PRODUCTS, *PRODUCTS), 1)]
    wrong = {*dice.sample(range(count), misnamed)}
    found = []
    for number, (kind, name) in enumerate(zip(kinds, dice.sample(things, count), strict=True)):
        ending, folder = KINDS[kind]
        if number in wrong:
            ending = dice.choice([one for one, _ in KINDS.values() if one != ending])
        data = _write(dice, kind, name)
        place = dice.choice(("", "from Ada/", "work/", "work/new/"))
        found.append(_Entry(f"{folder}/{name}.{ending}", kind, data, f"{place}{name}.{ending}"))
    return tuple(sorted(found))


def _write(dice: TaskDice, kind: str, name: str) -> bytes:
    """Return a small file of a kind; tables and notes have the line ends of Windows."""
    if kind == "csv":
        rows = [(dice.person(), dice.randint(1, 99), dice.amount(1, 90)) for _ in range(8)]
        table = write_csv([("Customer", "Units", "Price"), *rows])
        return table.replace(b"\n", b"\r\n")
    if kind == "json":
        stock = {"product": name, "stock": dice.randint(1, 500), "place": dice.places(1)[0]}
        return json.dumps(stock, indent=2).encode()
    if kind == "png":
        picture = Image.new("RGB", (96, 64), "white")
        pen = ImageDraw.Draw(picture)
        for number in range(5):
            box = (8 + 17 * number, dice.randint(8, 50), 20 + 17 * number, 56)
            pen.rectangle(box, dice.choice(COLORS))
        packed = io.BytesIO()
        picture.save(packed, "PNG")
        return packed.getvalue()
    note = f"Note about {name}\r\n\r\n{dice.person()} asked for {dice.randint(2, 40)} more.\r\n"
    return f"{note}Call back before {dice.day().isoformat()}.\r\n".encode()


def _ask(dice: TaskDice, company: str) -> str:
    opening = dice.choice(
        (
            f"inputs/{INPUT} is what several people of {company} sent in.",
            f"Tidy up inputs/{INPUT}, an archive with files of {company}.",
        )
    )
    kinds = [f"{kind} into the folder {folder}" for kind, (_, folder) in KINDS.items()]
    return (
        f"{opening} Deliver {ARCHIVE} with the same files in folders by kind: "
        f"{', '.join(kinds)}. What a file is, its bytes decide; the endings of some names "
        "are wrong. Names without their folders stay as they are, wrong endings included, and so "
        f"does every byte. Leave out {', '.join(JUNK)} wherever they are. If several files "
        "have the same bytes, keep the one whose full path in the given archive is first in the "
        f"alphabet. Nothing else belongs into your archive. Also deliver {INDEX}, an object with "
        "two members: files has one member for each file of your archive and no other, named by "
        "its path there, with sha256 (64 small hexadecimal digits), bytes (the size) and kind "
        "(csv, json, png or text); total_bytes is the sum of all sizes."
    )


def _score(entries: Sequence[_Entry]) -> tuple[GroupEntry, ...]:
    count = len(entries)
    paths = [one.path for one in entries]

    def listed(key: str, *values: str | float) -> list[CheckTable]:
        return [
            {"is": "json.path", "file": INDEX, "path": f"$.files['{path}'].{key}", "equals": value}
            for path, value in zip(paths, values, strict=True)
        ]

    there: list[CheckTable] = [
        {"is": "json.path", "file": INDEX, "path": f"$.files['{path}']", "type": "object"}
        for path in paths
    ]

    digests = [hashlib.sha256(one.data).hexdigest() for one in entries]

    def decided(function: str) -> CheckTable:
        return {"is": "python", "run": f"checks/{CHECK}:{function}"}

    return (
        group(
            "archive",
            leaf("members", f"The archive has the {count} files, each in the folder of its kind.",
                 {"is": "zip.members", "file": ARCHIVE, "all": [*paths]}, weight=2),
            leaf("contents", "The files in the archive have the bytes that were given.",
                 decided("has_contents")),
            leaf("junk", f"The archive has a folder tables and none of {', '.join(JUNK)}.",
                 {"is": "zip.members", "file": ARCHIVE,
                  "all": ["tables/*"],
                  "none": [one for name in JUNK for one in (name, f"*/{name}")]}),
            leaf("copies", "The archive has the files, none of them twice: no two have the same "
                 "bytes.", decided("has_no_copies")),
            leaf("others", "The archive has the files, no file that was not given, and no empty "
                 "folder.",
                 decided("has_no_others")),
        ),
        group(
            "index",
            leaf("listed", f"The index has two members, and lists the {count} files and no other.",
                 {"is": "json.path", "file": INDEX, "path": "$.*", "min": 2, "max": 2},
                 {"is": "json.path", "file": INDEX, "path": "$.files.*", "min": count,
                  "max": count}, *there),
            leaf("hashes", f"The index has the SHA-256 digest of each of the {count} files.",
                 *listed("sha256", *digests), weight=2),
            leaf("sizes", f"The index has the size of each of the {count} files.",
                 *listed("bytes", *(float(len(one.data)) for one in entries))),
            leaf("kinds", "The index has the kind of each file, as its bytes show it.",
                 *listed("kind", *(one.kind for one in entries)), weight=2),
            leaf("total", "The index has the sum of all sizes.",
                 {"is": "json.path", "file": INDEX, "path": "$.total_bytes",
                  "equals": float(sum(len(one.data) for one in entries))}),
        ),
    )  # fmt: skip


def _write_check(entries: Sequence[_Entry]) -> bytes:
    digests = {one.path: hashlib.sha256(one.data).hexdigest() for one in entries}
    junk = json.dumps([*JUNK])
    source = f"DIGESTS = {json.dumps(digests, indent=4)}\nJUNK = {junk}\n{RULES}"
    return guard_check(source, FUNCTIONS)


def _break(plan: _Plan, junk: str, copied: _Entry) -> dict[str, Wrong]:
    first, last = plan.entries[0], plan.entries[-1]
    table = next(one for one in plan.entries if one.kind == "csv")
    # Its name has the ending of another kind.
    hidden = next(one for one in plan.entries if not one.path.endswith(KINDS[one.kind][0]))
    believed = next(kind for kind, (end, _) in KINDS.items() if hidden.path.endswith(f".{end}"))
    name = hidden.path.rpartition("/")[2]
    moved = {(f"{KINDS[believed][1]}/{name}" if path == hidden.path else path): data
             for path, data in plan.members.items()}  # fmt: skip
    unix = {**plan.members, table.path: table.data.replace(b"\r\n", b"\n")}
    fewer = {path: data for path, data in plan.members.items() if path != last.path}
    extra = {**plan.members, "notes/readme.txt": b"Tidied up.\n"}
    ghost = replace(plan, more={f"notes/{_rename(copied)}": b"gone"})
    again = f"{copied.path.partition('/')[0]}/{_rename(copied)}"

    def put(members: Mapping[str, bytes]) -> _Plan:
        return replace(plan, members=members)

    def list_as(one: _Entry, key: str, value: object) -> _Plan:
        return replace(plan, listed={one.path: {key: value}})

    sha1 = hashlib.sha1(first.data, usedforsecurity=False).hexdigest()
    made = {
        "file-lost": (put(fewer), "members"),
        "sorted-by-ending": (put(moved), "members"),
        "line-ends-changed": (put(unix), "contents"),
        "junk-kept": (put({**plan.members, junk: JUNK[junk]}), "junk"),
        "copy-kept": (put({**plan.members, again: copied.data}), "copies"),
        "original-kept": (put({**plan.members, copied.given: copied.data}), "copies"),
        "readme-added": (put(extra), "others"),
        "empty-folder": (put({**plan.members, "old/": b""}), "others"),
        "ghost-listed": (ghost, "listed"),
        "member-added": (replace(plan, note="The sizes above are not right."), "listed"),
        "other-digest": (list_as(first, "sha256", sha1), "hashes"),
        "size-off": (list_as(last, "bytes", len(last.data) + 2), "sizes"),
        "kind-by-ending": (list_as(hidden, "kind", believed), "kinds"),
        "total-without-one": (replace(plan, missing=len(last.data)), "total"),
    }
    return {name: Wrong(one.build(), (broken,), "indented") for name, (one, broken) in made.items()}


FAMILY: Final = TaskFamily(
    "bundle",
    "a messy zip archive becomes a tidy one, with an index of digests, sizes and kinds",
    (
        "6 files, 1 with a wrong ending, 1 copy",
        "12 files, 2 with a wrong ending, 2 copies",
        "24 files, 6 with a wrong ending, 4 copies",
    ),
    make,
)
