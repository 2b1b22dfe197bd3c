"""`gta doctor`: what works on this machine, what is missing, how to mend each."""

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from gta_bench.cli.options import config_path, json_option
from gta_bench.cli.output import write_json
from gta_bench.confine.network import require_way
from gta_bench.confine.probe import probe
from gta_bench.content.browser import INSTALL as INSTALL_BROWSER
from gta_bench.content.browser import browser_program
from gta_bench.content.kinds import ContentKind
from gta_bench.content.libreoffice import INSTALL as INSTALL_OFFICE
from gta_bench.content.libreoffice import office_program
from gta_bench.content.needs import INSTALL_FFMPEG, program_version
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.installed import dataset_root
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import EnvironmentProblem, GtaError, NotInstalled, counted
from gta_bench.settings import Settings, key_variables, read_key, read_settings
from gta_bench.similarity.catalog import PUBLISHED, chosen_similarity
from gta_bench.tools.catalog import tool_names
from gta_bench.tools.contract import Availability, Available
from gta_bench.tools.equipment import equipped
from gta_bench.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from gta_bench.judging.showing.draft import ShowFailure

State = Literal["ok", "missing", "broken"]
COLORS: dict[State, str] = {"ok": "green", "missing": "yellow", "broken": "red"}


class Diagnosis(NamedTuple):
    """One thing looked at; `mend` is the line that helps where it is not ok."""

    name: str
    state: State
    detail: str
    mend: str = ""


@click.command()
@json_option
@click.pass_obj
@click.pass_context
def doctor(context: click.Context, config_file: str | None, as_json: bool) -> None:
    """Say what works here and how to mend what does not.

    Exit code 3 if something is broken.
    """
    results = list(examine(config_path(config_file)))
    if as_json:
        write_json([result._asdict() for result in results])
    else:
        width = max(len(result.name) for result in results)
        for result in results:
            state = click.style(result.state.ljust(8), fg=COLORS[result.state])
            click.echo(f"{state} {result.name.ljust(width)}  {result.detail}")
            if result.mend:
                click.echo(f"{' ' * (width + 11)}{result.mend}")
    context.exit(3 if any(result.state == "broken" for result in results) else 0)


def examine(config_file: Path | None) -> Iterator[Diagnosis]:
    """Look at everything that a run may need."""
    yield _python()
    try:
        found = read_settings(config_file)
    except GtaError as exc:
        yield Diagnosis("settings", "broken", str(exc), "Mend the file, then run this again.")
        return
    settings = found.settings
    where = "there is no gta.toml: defaults" if found.file is None else f"{found.file} can be used"
    yield Diagnosis("settings", "ok", where)
    yield from _keys(settings)
    yield from _jails()
    yield _open_network()
    yield from _programs()
    yield from _evidence(settings)
    yield from _tools(settings)
    yield _similarity(settings)
    yield _dataset("atomic", dataset_root(settings.data.atomic), _count_atomic)
    yield _dataset("workflow", dataset_root(settings.data.workflow), _count_workflow)


def _python() -> Diagnosis:
    running = ".".join(str(part) for part in sys.version_info[:3])
    return Diagnosis("gta-bench", "ok", f"{version('gta-bench')} on Python {running}")


def _keys(settings: Settings) -> Iterator[Diagnosis]:
    for variable, user in key_variables(settings).items():
        if read_key(variable):
            yield Diagnosis(variable, "ok", f"set, for {user}")
        else:
            mend = f"export {variable}=… in the shell that runs gta"
            yield Diagnosis(variable, "missing", f"not set, {user} needs it", mend)


def _jails() -> Iterator[Diagnosis]:
    """Code of a model runs in the first jail that works; without one those tools are refused."""
    found = asyncio.run(probe())
    works = any(jail.works for jail in found)
    for jail in found:
        if jail.works:
            yield Diagnosis(f"jail {jail.kind}", "ok", "works")
        else:
            mend = "" if works else jail.fix
            yield Diagnosis(f"jail {jail.kind}", "missing", jail.reason, mend)


def _open_network() -> Diagnosis:
    """The way out of a harness's cell; nothing else needs it."""
    try:
        asyncio.run(require_way())
    except EnvironmentProblem as exc:
        return Diagnosis("pasta", "missing", str(exc))
    return Diagnosis("pasta", "ok", "works, for harnesses with --network open")


def _programs() -> Iterator[Diagnosis]:
    """Programs that show deliverables to a judge, and work on sound and film."""
    programs = {
        "LibreOffice": (office_program(), INSTALL_OFFICE),
        "Chromium": (browser_program(), INSTALL_BROWSER),
        "ffmpeg": (shutil.which("ffmpeg"), INSTALL_FFMPEG),
    }
    for name, (program, mend) in programs.items():
        if program is None:
            yield Diagnosis(f"program {name}", "missing", "is not installed", mend)
        else:
            found = f"{program_version(program)}, {program}"
            yield Diagnosis(f"program {name}", "ok", found)


def _evidence(settings: Settings) -> Iterator[Diagnosis]:
    """Every reader and renderer at work in the jail, on a bundled file of each kind."""
    # The judge's side needs packages of an extra; the rest of this command does not.
    from gta_bench.judging.known_good import check_kinds

    async def check() -> Mapping[ContentKind, Sequence["ShowFailure"]]:
        async with equipped(settings) as equipment:
            return await check_kinds(equipment)

    found = asyncio.run(check())
    good = [kind for kind, failures in found.items() if not failures]
    if good:
        yield Diagnosis("evidence", "ok", f"shown in the jail, one file each: {', '.join(good)}")
    alike: dict[tuple[str, str, State], list[str]] = {}
    for kind, failures in found.items():
        for what, problem in failures[:1]:
            state: State = "missing" if isinstance(problem, NotInstalled) else "broken"
            alike.setdefault((f"{what}: {problem.reason}", problem.mend, state), []).append(kind)
    for (reason, mend, state), kinds in alike.items():
        yield Diagnosis(f"evidence {', '.join(kinds)}", state, reason, mend)


def _tools(settings: Settings) -> Iterator[Diagnosis]:
    for name, state in asyncio.run(_states(settings)).items():
        if isinstance(state, Available):
            yield Diagnosis(f"tool {name}", "ok", state.backend)
        else:
            yield Diagnosis(f"tool {name}", "missing", state.reason, state.mend)


async def _states(settings: Settings) -> dict[str, Availability]:
    async with equipped(settings) as equipment:
        toolbox = Toolbox(equipment)
        return {name: toolbox.availability(name) for name in tool_names()}


def _similarity(settings: Settings) -> Diagnosis:
    """How free text is compared; without the published model scores cannot stand beside others."""
    name = chosen_similarity(settings.scoring)
    mend = "" if name == PUBLISHED else f"gta tools fetch {PUBLISHED}   (for published scores)"
    return Diagnosis("similarity", "ok", name, mend)


def _dataset(name: str, root: Path, count: Callable[[Path], int]) -> Diagnosis:
    if not root.exists():
        mend = f"gta data fetch {name}   (or set data.{name} in gta.toml)"
        return Diagnosis(f"data {name}", "missing", f"there is no {root}", mend)
    try:
        return Diagnosis(f"data {name}", "ok", f"{counted(count(root), 'task')} in {root}")
    except GtaError as exc:
        mend = f"Remove {root} and run: gta data fetch {name}"
        return Diagnosis(f"data {name}", "broken", str(exc), mend)


def _count_atomic(root: Path) -> int:
    return len(load_atomic(root).tasks)


def _count_workflow(root: Path) -> int:
    return len(load_workflow(root).tasks)
