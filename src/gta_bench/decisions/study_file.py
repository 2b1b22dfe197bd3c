"""The file of a study: read, checked against the file that the study began with, and as contrasts.

Changing the questions after data were seen must be visible. So the folder of a study has a copy of
every version of its file, and a changed file is refused unless the change is recorded.
"""

import tomllib
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from gta_bench.errors import ConfigError, RunError, suggest_name
from gta_bench.records.base import Record
from gta_bench.records.study import (
    AssumedSpread,
    OptionTable,
    OptionValue,
    StudyAssumptions,
    StudyBudget,
    StudyCell,
    StudyFile,
    StudyLog,
    StudyQuestion,
    StudySystem,
    StudyVersion,
)
from gta_bench.runs.directory import read_record, write_record
from gta_bench.runs.store import StorePath, write_bytes_atomically
from gta_bench.settings import iter_leaves
from gta_bench.statistics.contrasts import Contrast

LOG: Final = "study.json"
# The records of the file's tables, for the names of their keys.
_TABLES: Final[dict[str, type[Record]]] = {
    "assume": StudyAssumptions,
    "budget": StudyBudget,
    "questions": StudyQuestion,
    "sd": AssumedSpread,
}
# Options of `gta run` that the study itself sets, and where to say it instead.
SET_BY_STUDY: Final = {
    "out": "`out` of the study",
    "epochs": "`epochs` of the study",
    "estimate": "`gta study plan`",
    "max-hours": "`hours` in [budget]",
    "max-cost": "`cost_usd` in [budget]",
    "workers": "--workers of `gta study run`",
    "cluster": "--cluster of `gta study run`",
    "no-preflight": "--no-preflight of `gta study run`",
    "feedback-rounds": "runs of their own, as a study has no rounds",
}


class ReadStudy(NamedTuple):
    """A study with the file that describes it."""

    path: Path
    data: bytes
    file: StudyFile

    @property
    def digest(self) -> str:
        """The SHA-256 digest of the file, as `sha256sum` prints it."""
        return sha256(self.data).hexdigest()


def read_study(path: Path) -> ReadStudy:
    """Read the file of a study; raise ConfigError with one line if something in it is wrong."""
    try:
        data = path.read_bytes()
        found = tomllib.loads(data.decode("utf-8-sig"))
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror}. Check the path.") from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path}: is not valid TOML: {exc}.") from exc
    try:
        return ReadStudy(path, data, StudyFile.model_validate(found))
    except ValidationError as exc:
        raise ConfigError(f"{path}: {_describe(exc)}") from exc


def _describe(exc: ValidationError) -> str:
    """Return the first problem as the end of a sentence."""
    problem = exc.errors()[0]
    places = [str(part) for part in problem["loc"]]
    where = ".".join(places)
    if problem["type"] == "extra_forbidden":
        tables = [_TABLES[part] for part in places[:-1] if part in _TABLES]
        known = sorted((tables[-1] if tables else StudyFile).model_fields)
        hint = suggest_name(places[-1], known)
        return f"unknown key `{where}`{hint} Known keys here: {', '.join(known)}."
    if problem["type"] == "missing":
        return f"`{where}` is missing. docs/how-to/studies.md has a whole file."
    if problem["type"] == "value_error":
        return f"{problem['msg'].removeprefix('Value error, ')}."
    message = problem["msg"][0].lower() + problem["msg"][1:]
    return f"`{where}`: {message}, got {problem['input']!r}."


def list_options(study: StudyFile, cell: StudyCell) -> Iterator[tuple[str, str, OptionValue]]:
    """Yield the options of a cell: the table they are from, their names and values.

    An option that is in several tables counts from the last one: all runs, dataset, model, agent.
    """
    tables: dict[str, OptionTable] = {
        "options": study.options,
        f"datasets.{cell.dataset}": study.datasets[cell.dataset],
        f"models.{cell.system.model}": study.models[cell.system.model],
        f"agents.{cell.system.agent}": study.agents[cell.system.agent],
    }
    found: dict[str, tuple[str, OptionValue]] = {}
    for table, options in tables.items():
        for key, value in options.items():
            name = key.replace("_", "-")
            if name == "run" and table.startswith("datasets."):
                continue
            found[name] = (table, value)
    for name, (table, value) in found.items():
        yield table, name, value


def find_contrast(study: StudyFile, question: StudyQuestion) -> Contrast:
    """Return a question as a contrast of systems, which are counted as in the file."""
    models, agents = [*study.models], [*study.agents]
    if question.kind == "interaction":
        assert question.models is not None and question.agents is not None
        one, two = (models.index(name) for name in question.models)
        here, there = (agents.index(name) for name in question.agents)
        return Contrast(((one, here), (two, there)), ((two, here), (one, there)), factor=2.0)
    first, second = (
        tuple(
            (models.index(one.model), agents.index(one.agent))
            for one in study.systems
            if name == _pick(question, one)
        )
        for name in name_sides(question)
    )
    return Contrast(first, second)


def _pick(question: StudyQuestion, system: StudySystem) -> str:
    """Return the name of a system that a difference is about: its own, or of its model or agent."""
    if question.systems is not None:
        return system.name
    return system.agent if question.models is None else system.model


def name_sides(question: StudyQuestion) -> tuple[str, str]:
    """Return how the two sides of a question are named."""
    if question.kind == "interaction":
        assert question.models is not None and question.agents is not None
        gap = f"{question.models[0]} - {question.models[1]}"
        return f"{gap} with {question.agents[0]}", f"{gap} with {question.agents[1]}"
    sides = question.systems or question.models or question.agents
    assert sides is not None
    return sides


def read_log(out: StorePath) -> StudyLog | None:
    """Read what was recorded of a study; None if it has not begun."""
    file = out / LOG
    hint = "Restore it from a copy, or choose another `out`."
    return read_record(file, StudyLog, hint) if file.is_file() else None


def write_log(out: StorePath, log: StudyLog) -> None:
    """Write what is recorded of a study."""
    write_record(out / LOG, log)


def begin_study(out: StorePath, study: ReadStudy, when: datetime) -> StudyLog:
    """Write a copy of the file and the log of a study that begins now."""
    log = StudyLog(versions=(StudyVersion(when=when, digest=study.digest),))
    write_bytes_atomically(copy_of_version(out, 1), study.data)
    write_log(out, log)
    return log


def refuse_changed(out: StorePath, study: ReadStudy, log: StudyLog) -> None:
    """Raise if the file is not the one that the study began, or was last amended with."""
    if log.versions[-1].digest == study.digest:
        return
    kept = copy_of_version(out, len(log.versions))
    changed = ", ".join(list_changed(kept, study)) or "comments or spaces"
    raise RunError(
        f"{study.path} has changed since the study in {out} began ({changed}). Restore it from "
        f"{kept}, choose another `out`, or accept the change with `gta study run "
        f"{study.path} --amend`, which every report will say."
    )


def amend_study(
    out: StorePath, study: ReadStudy, log: StudyLog, *, when: datetime, scored: int
) -> StudyLog:
    """Record a changed file, with how many units had been scored by then."""
    if log.versions[-1].digest == study.digest:
        return log
    changed = list_changed(copy_of_version(out, len(log.versions)), study)
    version = StudyVersion(when=when, digest=study.digest, scored=scored, changed=tuple(changed))
    grown = log.model_copy(update={"versions": (*log.versions, version)})
    write_bytes_atomically(copy_of_version(out, len(grown.versions)), study.data)
    write_log(out, grown)
    return grown


def copy_of_version(out: StorePath, number: int) -> StorePath:
    """Return where the copy of a version of the file is."""
    return out / ("study.toml" if number == 1 else f"study-{number}.toml")


def list_changed(kept: StorePath, study: ReadStudy) -> list[str]:
    """Return the keys in which a file differs from the copy of an earlier one, with both values."""
    before, after = (
        dict(iter_leaves(tomllib.loads(data.decode("utf-8-sig"))))
        for data in (kept.read_bytes() if kept.is_file() else b"", study.data)
    )
    return [
        key + _show_change(before.get(key), after.get(key))
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    ]


def _show_change(before: Any, after: Any) -> str:
    shown = [one for one in (before, after) if isinstance(one, bool | int | float | str)]
    return f" ({shown[0]}, now {shown[1]})" if len(shown) == 2 else ""
