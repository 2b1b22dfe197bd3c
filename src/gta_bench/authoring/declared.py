"""What an author declares: the leaves that wrong work breaks (`wrong.toml`), and waived rules."""

import json
import re
import tomllib
from collections.abc import Collection
from typing import Final, NamedTuple

from pydantic import Field, ValidationError

from gta_bench.datasets.files import Location
from gta_bench.datasets.folders import TaskTable
from gta_bench.errors import DatasetError, suggest_name

WRONG_FILE: Final = "wrong.toml"
UNUSED_WAIVER: Final = "T40"
OPEN_DRAFT: Final = "T41"
NOT_WAIVED: Final = ("T01", UNUSED_WAIVER, OPEN_DRAFT)
_WAIVER: Final = re.compile(r"(T\d\d)\s*:\s*(\S.*)", re.DOTALL)


class WrongFile(TaskTable):
    """`wrong.toml`: what is wrong with a work."""

    breaks: tuple[str, ...] = Field(min_length=1, description="Ids of the leaves that must fail.")
    origin: str | None = Field(None, alias="from", description="The gold work that was changed.")


def try_wrong_file(
    data: bytes | None, name: str, *, leaves: Collection[str] | None, golds: Collection[str]
) -> WrongFile | list[DatasetError]:
    """Read `wrong.toml`, whose path is `name`; return every mistake in it.

    `data` is None if there is no such file, and `leaves` if the task's leaves are not known.
    """
    where = Location(name)
    if data is None:
        return [where.error("is missing; write the ids of the leaves that fail: breaks = […].")]
    try:
        raw = tomllib.loads(data.decode("utf-8-sig"))
        read = WrongFile.model_validate_json(json.dumps(raw, default=str))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        return [where.error(f"is not valid TOML: {exc}.")]
    except ValidationError as exc:
        return [
            where.error(
                "name at least one leaf."
                if one["type"] == "too_short"
                else f"{one['msg']}. Known keys: breaks, from.",
                ".".join(map(str, one["loc"])) or None,
            )
            for one in exc.errors(include_url=False)
        ]
    problems = [
        where.error(f"there is no leaf {leaf!r}{suggest_name(leaf, [*leaves])}", "breaks")
        for leaf in read.breaks
        if leaves is not None and leaf not in leaves
    ]
    if read.origin is not None and read.origin not in golds:
        known = suggest_name(read.origin, [*golds])
        problems.append(where.error(f"there is no folder gold/{read.origin}{known}", "from"))
    return problems or read


class Waiver(NamedTuple):
    """A rule that a task breaks on purpose, and why."""

    rule: str
    reason: str


def read_waiver(written: str) -> Waiver | str:
    """Read an entry of `allow`; return what is wrong with it if it is none."""
    match = _WAIVER.fullmatch(written.strip())
    if match is None:
        return 'write a rule and a reason, as "T14: the parts belong together".'
    if match[1] in NOT_WAIVED:
        return f"{match[1]} cannot be waived."
    return Waiver(match[1], match[2])
