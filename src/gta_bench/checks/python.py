"""Python checks of a task's author: run in the jail, without network, on copies of the files.

The function gets one argument: `answer` is the final answer, `files` the paths of the deliverables,
`read(path)` gives the bytes of one, `text(path)` and `tables(path)` what our readers found in it.
It returns points from 0 to 10, a truth value, or `{"score": …, "found": …, "wanted": …}`. Asking
for a file that was not delivered, or for what a file does not have, gives 0 points.
"""

import json
from typing import Annotated, Final

from pydantic import Field, JsonValue, ValidationError

from gta_bench.checks.delivery import CheckedFile, CheckedWork
from gta_bench.checks.outcome import CheckBroken, Outcome, is_at_fault, shorten
from gta_bench.confine.limits import MIB, JailLimits
from gta_bench.errors import ConfinedError, ToolError, ToolUnavailable
from gta_bench.records.base import Record
from gta_bench.records.checks import PythonCheck

LIMITS: Final = JailLimits(wall_seconds=30.0, cpu_seconds=30, reply_bytes=MIB,
                           file_bytes=256 * MIB, disk_bytes=256 * MIB)  # fmt: skip
MOST_BYTES: Final = 64 * MIB
MOST_FACTS: Final = 4 * MIB  # characters of a text
MOST_SAID: Final = 48 * MIB  # of JSON, for the texts and tables of all files
DRIVER: Final = '''
import json
from pathlib import Path

class NotDelivered(LookupError, ValueError):
    """A file that the system did not deliver, or that cannot be read as what the check asks for."""

class NotReadable(RuntimeError):
    """A file that this machine cannot read, which is not the fault of the file."""

class Work:
    """What a system delivered."""

    def __init__(self, facts):
        self.answer = facts["answer"]
        self.files = list(facts["files"])
        self._facts = facts["files"]

    def read(self, path):
        found = self._find(path)
        if found["name"] is None:
            raise NotDelivered(f"{path} cannot be read: {found['problem']}")
        return Path("files", found["name"]).read_bytes()

    def text(self, path):
        return self._give(path, "text")

    def tables(self, path):
        return self._give(path, "tables")

    def _give(self, path, what):
        found = self._find(path)
        if found.get(what) is None:
            about = f"{path} has no {what}: {found['problem']}"
            raise NotDelivered(about) if found["at_fault"] else NotReadable(about)
        return found[what]

    def _find(self, path):
        if path not in self._facts:
            raise NotDelivered(f"{path} is not delivered")
        return self._facts[path]

def prepare():
    # Imported before the jail closes, so that checks can use them.
    import csv, datetime, decimal, fractions, io, itertools, math, re, statistics, zipfile
    return {}

def finish(names):
    asked = json.loads(Path("asked.json").read_text(encoding="utf-8"))
    try:
        given = names[asked["function"]](Work(asked))
    except NotDelivered as exc:
        given = {"score": 0, "found": str(exc)}
    if isinstance(given, (int, float)):
        given = {"score": given}
    if not isinstance(given, dict) or "score" not in given:
        raise TypeError("the check must return points, True or False, or a dictionary with `score`")
    score = given["score"]
    if isinstance(score, bool):
        score = 10 if score else 0
    kept = {key: clean(given[key]) for key in ("found", "wanted", "where") if key in given}
    return json.dumps({"score": float(score), **kept})

def clean(said):
    return str(said).encode("utf-8", "replace").decode().replace("\\0", " ")
'''


class _Given(Record):
    score: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
    found: str = ""
    wanted: str = ""
    where: str = ""


async def check_python(check: PythonCheck, work: CheckedWork) -> Outcome:
    """Call the author's function on the delivery. Raises CheckBroken if it gives no points."""
    facts, files = await _collect(work)
    function = check.run.partition(":")[2]
    asked = json.dumps({"function": function, "answer": work.answer, "files": facts})
    try:
        done = await work.jail.run_snippet(
            check.source or "",
            driver=DRIVER,
            files={"asked.json": asked.encode(), **files},
            limits=LIMITS,
            label=check.run,
        )
        given = _Given.model_validate_json(done.value)
    except ConfinedError as exc:
        raise CheckBroken(str(exc)) from exc
    except ValidationError as exc:
        problem = f"{check.run} gave {shorten(str(done.value))}, not points from 0 to 10."
        raise CheckBroken(problem) from exc
    return Outcome(
        given.score >= 10,
        shorten(given.where) or check.run,
        shorten(given.found) or f"{given.score:g} points",
        shorten(given.wanted),
        given.score,
    )


async def _collect(work: CheckedWork) -> tuple[dict[str, JsonValue], dict[str, bytes]]:
    """Return what our readers found in every file, and the files under plain names.

    Of too large a delivery the largest files are left out: a check that needs none of them decides,
    and one that reads them gives 0 points.
    """
    facts: dict[str, JsonValue] = dict.fromkeys(work.paths)
    files: dict[str, bytes] = {}
    size = said = 0
    for number, file in enumerate(
        sorted(map(work.open, work.paths), key=lambda one: len(one.data))
    ):
        size += len(file.data)
        if size > MOST_BYTES:
            problem = f"with the smaller files, it has more than {MOST_BYTES} bytes"
            facts[file.path] = {"name": None, "problem": problem, "at_fault": True}
            continue
        files[f"files/{number}"] = file.data
        found = await _read_file(work, file)
        said += len(json.dumps(found))
        if said > MOST_SAID:
            problem = "with the smaller files, it has too much text"
            found = {"problem": problem, "at_fault": True}
        facts[file.path] = {"name": str(number), **found}
    return facts, files


async def _read_file(work: CheckedWork, file: CheckedFile) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    try:
        found["text"] = (await work.text(file))[:MOST_FACTS]
        tables = await work.tables(file)
        found["tables"] = [[list(row) for row in table.rows] for table in tables]
    except (ToolError, ToolUnavailable) as exc:
        found["problem"], found["at_fault"] = str(exc), is_at_fault(exc)
    return found
