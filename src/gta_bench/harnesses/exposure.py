"""What of this machine belongs to a harness: what it can read, and a digest of its own files.

A run is refused if the measured system could read reference answers, settings or keys. Everything
else that it can read is listed in the manifest.

The digest covers what the command, `--harness-readable` or `--agent-bridge` names below the folder
in which `gta` runs: single files, and folders with all files below them, except hidden names,
caches and our own runs. Files elsewhere are installed software, which has a version.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn

import gta_bench
from gta_bench.confine.bubblewrap import SYSTEM_FILES, SYSTEM_LINKS
from gta_bench.confine.commands import find_command_files
from gta_bench.confine.network import CERTIFICATES
from gta_bench.confine.walls import Python
from gta_bench.datasets.files import sha256
from gta_bench.errors import UsageError
from gta_bench.harnesses.choice import Harness, parse_command
from gta_bench.runs.directory import MANIFEST
from gta_bench.settings import CONFIG_FILE, Settings

ALL: Final = "everything: the agent ran unconfined"
CACHES: Final = frozenset({"__pycache__", "node_modules"})
KEYS: Final = (
    *(".ssh", ".netrc", ".aws", ".config", ".git-credentials", ".gnupg", ".kube", ".pypirc"),
    *(".cache/huggingface/token", ".docker/config.json", ".npmrc"),
)


def check_exposure(
    harness: Harness | None,
    settings: Settings,
    data: Path,
    *,
    out: Path | None = None,
    served: Sequence[Path] = (),
) -> None:
    """Refuse a run whose jail or harness could read the datasets, `out`, settings or keys.

    `served` are paths that its tool servers can read.
    """
    hidden = {
        "the dataset": data,
        "GTA-Atomic": Path(settings.data.atomic),
        "GTA-Workflow": Path(settings.data.workflow),
        "the settings": Path(CONFIG_FILE),
        "the keys": Path(".env"),
    }
    hidden = {what: path for what, path in hidden.items() if path.exists()}
    require_hidden(harness, hidden if out is None else hidden | {"the run": out}, served)


def require_hidden(
    harness: Harness | None, hidden: Mapping[str, Path], served: Sequence[Path] = ()
) -> None:
    """Refuse a run whose jail or harness could read the paths in `hidden`, or keys.

    `hidden` maps descriptions to paths. Files of this package, such as the demo's tasks, are not
    secret.
    """
    bridged = harness is not None and harness.kind == "bridged"
    if bridged and not served:
        return
    named = [*served, *(() if harness is None or bridged else _find_named(harness))]
    package = Path(gta_bench.__file__).resolve().parent
    secrets = {what: path.resolve() for what, path in hidden.items()}
    secrets = {what: at for what, at in secrets.items() if not at.is_relative_to(package)}
    for path in named:
        for what, secret in secrets.items():
            if path.resolve().is_relative_to(secret):
                _refuse(path, what, secret)
    home = Path.home()
    secrets |= {f"keys (~/{name})": home / name for name in KEYS if (home / name).exists()}
    for path in (*map(Path, Python.current().roots), *named):
        for what, secret in secrets.items():
            if secret.is_relative_to(path.resolve()):
                _refuse(path, what, secret)


def _refuse(path: Path, what: str, secret: Path) -> NoReturn:
    raise UsageError(
        f"The measured system could read {path}, and with it {what}: {secret}. Show it less "
        "(--harness-readable, and `readable` of a tool server, accept single files), or move one "
        "of them."
    )


def list_shown_paths(harness: Harness) -> tuple[str, ...]:
    """Return what the harness can read besides its task, with paths relative to here or home."""
    if harness.kind == "bridged":
        return (ALL,)
    outside = CERTIFICATES if harness.network == "open" else ()
    system = ("/usr", *SYSTEM_LINKS, *SYSTEM_FILES, *outside)
    existing = [Path(name) for name in system if Path(name).exists()]
    shown = [*existing, *map(Path, Python.current().roots), *_find_named(harness)]
    return tuple(dict.fromkeys(map(_shorten, shown)))


def hash_harness_files(harness: Harness, folder: Path | None = None) -> str | None:
    """Return a sha256 of names and contents; None if no file of the harness is in the folder."""
    folder = folder or Path.cwd()
    paths = [*_find_named(harness)] if harness.kind != "named" else [*harness.readable]
    if harness.kind == "bridged":
        module = import_module(harness.target.partition(".")[0].partition(":")[0])
        found = getattr(module, "__path__", None) or filter(None, [module.__file__])
        paths += [Path(path).absolute() for path in found]
    files = {
        file.relative_to(folder).as_posix(): file
        for path in paths
        if path.is_relative_to(folder)
        for file in _walk(path)
        if not any(map(_is_ignored, file.relative_to(folder).parts))
    }
    if not files:
        return None
    digest = hashlib.sha256()
    for name, file in sorted(files.items()):
        digest.update(f"{name}\0{sha256(file)}\n".encode())
    return digest.hexdigest()


def _find_named(harness: Harness) -> Iterator[Path]:
    """Yield the paths of this machine that the options of the harness name."""
    yield from harness.readable
    if harness.kind == "command":
        yield from find_command_files(parse_command(harness.target))
    elif harness.kind == "named":
        from gta_bench.harnesses.named import find_installation, find_program

        yield from find_installation(find_program(harness.target))


def _walk(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for parent, folders, files in os.walk(path):
        if MANIFEST in files:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not _is_ignored(name)]
        yield from (file for name in files if (file := Path(parent, name)).is_file())


def _is_ignored(name: str) -> bool:
    return name.startswith(".") or name in CACHES


def _shorten(path: Path) -> str:
    for top, name in ((Path.cwd(), "."), (Path.home(), "~")):
        if path == top:
            return name
        if path.is_relative_to(top):
            return f"{name}/{path.relative_to(top)}"
    return str(path)
