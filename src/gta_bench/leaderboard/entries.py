"""Entries from JSON files: the published rows that ship with the package, and anybody's own."""

from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from zipfile import is_zipfile

from pydantic import TypeAdapter, ValidationError

from gta_bench.errors import UsageError
from gta_bench.records.leaderboard import Entry

PUBLISHED = ("atomic", "workflow", "workflow-30")
_ENTRIES: TypeAdapter[tuple[Entry, ...]] = TypeAdapter(tuple[Entry, ...])
_ENTRY = TypeAdapter(Entry)


def published() -> tuple[Entry, ...]:
    """Every row that the authors of GTA have published."""
    folder = files("gta_bench.leaderboard") / "published"
    return tuple(
        entry
        for name in PUBLISHED
        for entry in _ENTRIES.validate_json((folder / f"{name}.json").read_bytes())
    )


def read_entries(paths: Iterable[Path]) -> tuple[Entry, ...]:
    """The entries of files that each hold one entry or a list of them."""
    return tuple(entry for path in paths for entry in _read(path))


def without_doubles(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The same entries, or an error that names the id that two of them have."""
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen:
            raise UsageError(f"Two entries have the id {entry.id!r}. Give one of them another id.")
        seen.add(entry.id)
    return tuple(entries)


def _read(path: Path) -> tuple[Entry, ...]:
    if is_zipfile(path):
        raise UsageError(
            f"{path} is a bundle. Check it by `gta leaderboard check {path}`, then name the entry "
            f"in it: unzip {path} entry.json"
        )
    raw = path.read_bytes()
    try:
        if raw.lstrip().startswith(b"["):
            return _ENTRIES.validate_json(raw)
        return (_ENTRY.validate_json(raw),)
    except ValidationError as exc:
        first = exc.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise UsageError(
            f"{path} is no leaderboard entry: {place}: {first['msg']}. "
            "The schema is docs/reference/schemas/Entry.schema.json."
        ) from exc
