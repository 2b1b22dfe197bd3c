"""What of this machine a measured system sees: listed in the manifest, refused where it is gold."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NoReturn

import gta_bench
from gta_bench.confine.bubblewrap import SYSTEM_FILES, SYSTEM_LINKS
from gta_bench.confine.walls import Python
from gta_bench.errors import UsageError
from gta_bench.harnesses.cell_plan import CERTIFICATES
from gta_bench.harnesses.choice import Harness, parse_command, shown_files
from gta_bench.settings import CONFIG_FILE, Settings

ALL: Final = "everything: the agent ran unconfined"
KEYS: Final = (
    *(".ssh", ".netrc", ".aws", ".config", ".git-credentials", ".gnupg", ".kube", ".pypirc"),
    *(".cache/huggingface/token", ".docker/config.json", ".npmrc"),
)


def check_exposure(
    harness: Harness | None, settings: Settings, data: Path, *, out: Path | None = None
) -> None:
    """Refuse a run whose jail or harness could read the datasets, `out`, settings or keys."""
    hidden = {
        "the dataset": data,
        "GTA-Atomic": Path(settings.data.atomic),
        "GTA-Workflow": Path(settings.data.workflow),
        "the settings": Path(CONFIG_FILE),
        "the keys": Path(".env"),
    }
    hidden = {what: path for what, path in hidden.items() if path.exists()}
    require_hidden(harness, hidden if out is None else hidden | {"the run": out})


def require_hidden(harness: Harness | None, hidden: Mapping[str, Path]) -> None:
    """Refuse a run whose jail or harness could read `hidden` (what it is → where it lies), or keys.

    What this package brings with it, as the demo's tasks, is no secret.
    """
    if harness is not None and harness.kind == "bridged":
        return
    package = Path(gta_bench.__file__).resolve().parent
    secrets = {what: path.resolve() for what, path in hidden.items()}
    secrets = {what: at for what, at in secrets.items() if not at.is_relative_to(package)}
    for path in () if harness is None else _named(harness):
        for what, secret in secrets.items():
            if path.resolve().is_relative_to(secret):
                _refuse(path, what, secret)
    home = Path.home()
    secrets |= {f"keys (~/{name})": home / name for name in KEYS if (home / name).exists()}
    for path in _paths(harness):
        for what, secret in secrets.items():
            if secret.is_relative_to(path.resolve()):
                _refuse(path, what, secret)


def _refuse(path: Path, what: str, secret: Path) -> NoReturn:
    raise UsageError(
        f"{path} would be readable to the measured system, and with it {what}: {secret}. Show less "
        "(--harness-readable takes single files), or move one of them."
    )


def _paths(harness: Harness | None) -> list[Path]:
    """What is shown besides the system's own."""
    named = [] if harness is None else [*_named(harness)]
    return [*map(Path, Python.current().roots), *named]


def shown_paths(harness: Harness) -> tuple[str, ...]:
    """What it sees besides its task: paths from here and from home are written as such."""
    if harness.kind == "bridged":
        return (ALL,)
    outside = CERTIFICATES if harness.network == "open" else ()
    system = ("/usr", *SYSTEM_LINKS, *SYSTEM_FILES, *outside)
    there = [*(Path(name) for name in system if Path(name).exists())]
    return tuple(dict.fromkeys(map(_portable, [*there, *_paths(harness)])))


def _named(harness: Harness) -> Iterator[Path]:
    """What the options of the harness show of this machine."""
    yield from harness.readable
    if harness.kind == "command":
        yield from shown_files(parse_command(harness.target))
    elif harness.kind == "named":
        from gta_bench.harnesses.named import installation, installed

        yield from installation(installed(harness.target))


def _portable(path: Path) -> str:
    for top, name in ((Path.cwd(), "."), (Path.home(), "~")):
        if path == top:
            return name
        if path.is_relative_to(top):
            return f"{name}/{path.relative_to(top)}"
    return str(path)
