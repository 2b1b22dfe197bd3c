"""Files of a run that cannot be read: what is damaged, and what another version wrote."""

import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from zipfile import BadZipFile

from pydantic import ValidationError
from zstandard import ZstdError

from gta_bench.errors import RunError
from gta_bench.runs.store import StorePath, store_path

# The packages whose versions decide how the files of a run look.
WRITERS = ("gta-bench", "inspect_ai")
_MANIFEST = "run.json"
# A log lies at most so deep below its run: `logs/<name>.shards/<number>/`.
_DEPTH = 6

# What the formats themselves call damage: the archive, its compression, JSON.
_DAMAGE = (
    BadZipFile,
    EOFError,
    NotImplementedError,
    UnicodeDecodeError,
    ZstdError,
    json.JSONDecodeError,
    zlib.error,
)
# What reading a whole archive or text raises where its content is not as expected.
_OTHER_FORM = (KeyError, ValueError)


@contextmanager
def explain_unreadable(log: str) -> Iterator[None]:
    """Raise RunError where a log is damaged, or whole but written by another version.

    Only a damaged log may be removed: one that is whole can be read by the versions that wrote it.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except _DAMAGE as exc:
        raise _damaged(log, exc) from exc
    except _OTHER_FORM as exc:
        if is_broken_json(exc):
            raise _damaged(log, exc) from exc
        raise RunError(
            f"The log {log} is not in the form that is read here ({_words(exc)}). "
            f"{explain_versions(store_path(log))}"
        ) from exc


def is_broken_json(exc: Exception) -> bool:
    """Whether a record could not be read because the text is no JSON."""
    return isinstance(exc, ValidationError) and exc.errors()[0]["type"] == "json_invalid"


def explain_versions(file: StorePath) -> str:
    """Sentences that say which versions wrote a file of a run, which are here, and what to do."""
    here = {name: version(name) for name in WRITERS}
    wrote = _list_versions(_find_writers(file))
    return (
        f"It is not damaged: do not remove it. It was written by {wrote or 'unknown versions'}; "
        f"here are {_list_versions(here)}. Use the versions that wrote it, or newer ones."
    )


def _damaged(log: str, exc: Exception) -> RunError:
    return RunError(
        f"The log {log} is damaged ({_words(exc)}). "
        "All other logs of the run are untouched. Put a copy of it in its place, or remove it "
        "and give the same command again: only the units that it held are run again."
    )


def _words(exc: Exception) -> str:
    if isinstance(exc, ValidationError) and not is_broken_json(exc):
        first = exc.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"{exc.title}: {place}: {first['msg']}"
    said = (str(exc).splitlines() or [""])[0][:120]
    return f"{type(exc).__name__}: {said}"


def _list_versions(packages: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {packages[name]}" for name in WRITERS if name in packages)


def _find_writers(file: StorePath) -> Mapping[str, str]:
    """What the nearest `run.json` says, of whatever version it is itself."""
    folder = file.parent
    for _ in range(_DEPTH):
        if (folder / _MANIFEST).is_file():
            return _read_packages((folder / _MANIFEST).read_bytes())
        folder = folder.parent
    return {}


def _read_packages(data: bytes) -> Mapping[str, str]:
    try:
        found = json.loads(data)["packages"]
    except (KeyError, TypeError, ValueError):
        return {}
    return {str(name): str(one) for name, one in found.items()} if isinstance(found, dict) else {}
