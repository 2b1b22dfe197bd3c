"""`gta doctor` checks the installation; `gta --version --verbose` describes it for bug reports."""

import asyncio
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import click

from gta_bench.cli.options import json_option, load_dataset
from gta_bench.cli.output import write_json, write_rows
from gta_bench.cli.tools import check_tools
from gta_bench.confine.network import require_network
from gta_bench.confine.probe import probe
from gta_bench.confine.systems import ROADS
from gta_bench.content.browser import INSTALL as INSTALL_BROWSER
from gta_bench.content.browser import find_browser
from gta_bench.content.kinds import ContentKind
from gta_bench.content.libreoffice import INSTALL as INSTALL_OFFICE
from gta_bench.content.libreoffice import find_libreoffice
from gta_bench.content.needs import INSTALL_FFMPEG, read_program_version
from gta_bench.datasets.installed import dataset_root
from gta_bench.errors import EnvironmentProblem, GtaError, NotInstalled, format_count
from gta_bench.records.run import DatasetName
from gta_bench.settings import CONFIG_FILE, Settings, list_key_variables, read_key, read_settings
from gta_bench.similarity.catalog import PUBLISHED, choose_similarity
from gta_bench.tools.contract import Available
from gta_bench.tools.equipment import use_equipment

if TYPE_CHECKING:
    from gta_bench.judging.showing.draft import ShowFailure

State = Literal["ok", "missing", "broken"]
NEEDS_JAIL = "not without a jail"
COLORS: dict[State, str] = {"ok": "green", "missing": "yellow", "broken": "red"}
# In lines such as `scipy>=1.11; extra == "report"`.
PACKAGE = re.compile(r"[A-Za-z0-9_.-]+")
EXTRA = re.compile(r"extra\s*==\s*['\"]([\w-]+)['\"]")


class Diagnosis(NamedTuple):
    """The result of one check; `fix` says how to fix what is not ok."""

    name: str
    state: State
    detail: str
    fix: str = ""


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Check what works on this machine, and say how to fix what does not.

    Exits with 3 if something is broken; optional parts that are missing are fine.
    """
    results = list(_examine())
    if as_json:
        write_json([result._asdict() for result in results])
    else:
        width = max(len(result.name) for result in results)
        for result in results:
            state = click.style(result.state.ljust(8), fg=COLORS[result.state])
            click.echo(f"{state} {result.name.ljust(width)}  {result.detail}")
            if result.fix:
                click.echo(f"{' ' * (width + 11)}{result.fix}")
    raise click.exceptions.Exit(3 if any(one.state == "broken" for one in results) else 0)


def _examine() -> Iterator[Diagnosis]:
    """Check everything that a run may need."""
    own, python = version("gta-bench"), platform.python_version()
    yield Diagnosis("gta-bench", "ok", f"{own} on Python {python}")
    try:
        found = read_settings(click.get_current_context().obj)
    except GtaError as exc:
        yield Diagnosis("settings", "broken", str(exc), "Fix the file, then run `gta doctor` again")
        return
    settings = found.settings
    where = f"no {CONFIG_FILE}: using defaults" if found.file is None else f"{found.file} is valid"
    yield Diagnosis("settings", "ok", where)
    yield from _check_keys(settings)
    yield from _check_jails()
    yield _check_open_network()
    yield from _check_programs()
    yield from _check_evidence(settings)
    yield from _check_tools(settings)
    yield _check_similarity(settings)
    for name in get_args(DatasetName):
        yield _check_dataset(name, settings)


def _check_keys(settings: Settings) -> Iterator[Diagnosis]:
    for variable, user in list_key_variables(settings).items():
        if read_key(variable):
            yield Diagnosis(variable, "ok", f"set, for {user}")
        else:
            fix = f"export {variable}=… in the shell that runs gta"
            yield Diagnosis(variable, "missing", f"not set, but {user} needs it", fix)


def _check_jails() -> Iterator[Diagnosis]:
    """Check every jail. Code of a model runs in the first one that works, or not at all."""
    found = asyncio.run(probe())
    if all(jail.fix == ROADS for jail in found):
        yield Diagnosis("jail", "missing", " ".join(jail.reason for jail in found), ROADS)
        return
    works = any(jail.works for jail in found)
    for jail in found:
        if jail.works:
            yield Diagnosis(f"jail {jail.kind}", "ok", "works")
        else:
            fix = "" if works else jail.fix
            yield Diagnosis(f"jail {jail.kind}", "missing", jail.reason, fix)


def _check_open_network() -> Diagnosis:
    """Check the program that `--network open` of a harness needs."""
    try:
        asyncio.run(require_network())
    except EnvironmentProblem as exc:
        return Diagnosis("pasta", "missing", str(exc))
    return Diagnosis("pasta", "ok", "works, for harnesses with --network open")


def _check_programs() -> Iterator[Diagnosis]:
    """Check the programs that render deliverables for a judge, or work on audio and video."""
    programs = {
        "LibreOffice": (find_libreoffice(), INSTALL_OFFICE),
        "Chromium": (find_browser(), INSTALL_BROWSER),
        "ffmpeg": (shutil.which("ffmpeg"), INSTALL_FFMPEG),
    }
    for name, (program, fix) in programs.items():
        if program is None:
            yield Diagnosis(f"program {name}", "missing", "not installed", fix)
        else:
            yield Diagnosis(f"program {name}", "ok", f"{read_program_version(program)}, {program}")


def _check_evidence(settings: Settings) -> Iterator[Diagnosis]:
    """Read and render one bundled file of each kind in the jail."""
    # Needs packages of an extra, which the rest of this command does not.
    from gta_bench.judging.known_good import check_kinds

    async def check() -> Mapping[ContentKind, Sequence["ShowFailure"]]:
        async with use_equipment(settings) as equipment:
            return await check_kinds(equipment)

    found = asyncio.run(check())
    good = [kind for kind, failures in found.items() if not failures]
    if good:
        yield Diagnosis("evidence", "ok", f"rendered, one file each: {', '.join(good)}")
    jailed: list[str] = []
    alike: dict[tuple[str, str, State], list[str]] = {}
    for kind, failures in found.items():
        for what, problem in failures[:1]:
            if problem.fix == ROADS:
                jailed.append(kind)
                continue
            state: State = "missing" if isinstance(problem, NotInstalled) else "broken"
            alike.setdefault((f"{what}: {problem.reason}", problem.fix, state), []).append(kind)
    for (reason, fix, state), kinds in alike.items():
        yield Diagnosis(f"evidence {', '.join(kinds)}", state, reason, fix)
    if jailed:
        yield Diagnosis("evidence", "missing", f"{NEEDS_JAIL}: {', '.join(jailed)}")


def _check_tools(settings: Settings) -> Iterator[Diagnosis]:
    jailed: list[str] = []
    for name, state in check_tools(settings).items():
        if isinstance(state, Available):
            yield Diagnosis(f"tool {name}", "ok", state.backend)
        elif state.fix == ROADS:
            jailed.append(name)
        else:
            yield Diagnosis(f"tool {name}", "missing", state.reason, state.fix)
    if jailed:
        yield Diagnosis("tools", "missing", f"{NEEDS_JAIL}: {', '.join(jailed)}")


def _check_similarity(settings: Settings) -> Diagnosis:
    """Name the model that compares free text; only the published one gives comparable scores."""
    name = choose_similarity(settings.scoring)
    fix = "" if name == PUBLISHED else f"gta tools fetch {PUBLISHED}   (to match published scores)"
    return Diagnosis("similarity", "ok", name, fix)


def _check_dataset(name: DatasetName, settings: Settings) -> Diagnosis:
    root = dataset_root(getattr(settings.data, name), settings.datasets)
    if not root.exists():
        fix = f"gta data fetch {name}   (or set data.{name} in gta.toml)"
        return Diagnosis(f"data {name}", "missing", f"{root} does not exist", fix)
    try:
        tasks = format_count(len(load_dataset(name, None).tasks), "task")
    except GtaError as exc:
        fix = f"Remove {root} and run: gta data fetch {name}"
        return Diagnosis(f"data {name}", "broken", str(exc), fix)
    return Diagnosis(f"data {name}", "ok", f"{tasks} in {root}")


def write_versions() -> None:
    """Print everything that a bug report needs, and nothing secret."""
    file = Path(CONFIG_FILE)
    rows = [
        ("gta-bench", f"{version('gta-bench')} in {Path(__file__).parents[1]}"),
        ("python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("executable", sys.executable),
        ("system", f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} cores"),
        ("settings", str(file.resolve()) if file.is_file() else "none"),
    ]
    for program in ("bwrap", "ffmpeg", "npm", "git"):
        rows.append((program, read_program_version(shutil.which(program))))
    rows.append(("libreoffice", read_program_version(find_libreoffice())))
    rows.append(("chromium", read_program_version(find_browser())))
    packages: dict[str, list[str]] = {}
    for line in requires("gta-bench") or ():
        name, extra = PACKAGE.match(line), EXTRA.search(line)
        if name and name[0] != "gta-bench":
            found = f"{name[0]} {_find_package_version(name[0])}"
            packages.setdefault(extra[1] if extra else "core", []).append(found)
    rows += [(f"[{extra}]", ", ".join(found)) for extra, found in sorted(packages.items())]
    write_rows(rows)


def _find_package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"
