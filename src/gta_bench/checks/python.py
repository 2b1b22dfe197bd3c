"""Python checks of a task's author: run in the jail, without network, on copies of the files.

The function gets one argument: `answer` is the final answer, `files` the paths of the deliverables,
`read(path)` gives the bytes of one, `text(path)` and `tables(path)` what our readers found in it.
It returns points from 0 to 10, a truth value, or `{"score": …, "found": …, "wanted": …}`. Asking
for a file that was not delivered, or for what a file does not have, gives 0 points.
"""

import json
from typing import Annotated, Final

from pydantic import Field, JsonValue, ValidationError

from gta_bench.checks.delivery import CheckedWork
from gta_bench.checks.outcome import CheckBroken, Outcome, is_at_fault, shorten
from gta_bench.confine.limits import MIB, JailLimits
from gta_bench.errors import ConfinedError, ToolError, ToolUnavailable
from gta_bench.records.base import Record
from gta_bench.records.checks import PythonCheck

LIMITS: Final = JailLimits(wall_seconds=30.0, cpu_seconds=30, reply_bytes=MIB,
                           file_bytes=256 * MIB, disk_bytes=256 * MIB)  # fmt: skip
MOST_BYTES: Final = 64 * MIB
MOST_FACTS: Final = 4 * MIB  # characters of texts and tables
DRIVER: Final = '''
import json
from pathlib import Path

class NotDelivered(LookupError, ValueError):
    """A file that the system did not deliver, or that cannot be read as what the check asks for."""

class Work:
    """What a system delivered."""

    def __init__(self, facts):
        self.answer = facts["answer"]
        self.files = list(facts["files"])
        self._facts = facts["files"]

    def read(self, path):
        return Path("files", self._find(path)["name"]).read_bytes()

    def text(self, path):
        return self._give(path, "text")

    def tables(self, path):
        return self._give(path, "tables")

    def _give(self, path, what):
        found = self._find(path)
        if found.get(what) is None:
            about = f"{path} has no {what}: {found['problem']}"
            raise NotDelivered(about) if found["at_fault"] else RuntimeError(about)
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
    """Return what our readers found in every file, and the files under plain names."""
    facts: dict[str, JsonValue] = {}
    files: dict[str, bytes] = {}
    for number, path in enumerate(work.paths):
        file = work.open(path)
        if sum(map(len, files.values())) + len(file.data) > MOST_BYTES:
            raise CheckBroken(f"The files have more than {MOST_BYTES} bytes in all.")
        files[f"files/{number}"] = file.data
        found: dict[str, JsonValue] = {"name": str(number)}
        facts[path] = found
        try:
            found["text"] = (await work.text(file))[:MOST_FACTS]
            tables = await work.tables(file)
            found["tables"] = [[list(row) for row in table.rows] for table in tables]
        except (ToolError, ToolUnavailable) as exc:
            found["problem"], found["at_fault"] = str(exc), is_at_fault(exc)
    return facts, files
