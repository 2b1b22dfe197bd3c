"""`gta forge`: write generated tasks whose truth is known."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gta_bench.cli.options import NEW_FOLDER
from gta_bench.cli.output import say, say_if_slow, write_table
from gta_bench.errors import UsageError, format_count
from gta_bench.packages import require_packages
from gta_bench.reports.tables import Table

if TYPE_CHECKING:
    from gta_bench.forge.draft import Namespace, TaskLevel

HEADING = ("family", "asks for", "level 1", "level 2", "level 3")


@click.command()
@click.argument("families", nargs=-1, metavar="FAMILY...")
@click.option("--list", "only_list", is_flag=True, help="Only list the families and their levels.")
@click.option("--seed", help="Letters and digits; the same seed gives the same bytes.")
@click.option("--count", type=click.IntRange(1), default=1, help="Tasks in all, families in turn.")
@click.option("--level", type=click.IntRange(1, 3), default=1, help="How hard: see --list.")
@click.option(
    "--namespace",
    type=click.Choice(["public", "train", "private"]),
    default="public",
    help="Tasks of one namespace are not those of another.",
)
@click.option(
    "--key-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="For private: a file with a secret, without which nobody can make the tasks.",
)
@click.option("--out", type=NEW_FOLDER, help="Folder for the tasks; run again to continue.")
def forge(
    families: tuple[str, ...],
    only_list: bool,
    seed: str | None,
    count: int,
    level: "TaskLevel",
    namespace: "Namespace",
    key_file: Path | None,
    out: Path | None,
) -> None:
    """Write tasks of FAMILIES (or all) as task folders: request, inputs, checks, gold, wrong work.

    Atomic families (or all-atomic) are written in the layout of GTA-Atomic: questions about
    pictures, each solved on the real tools before it is written.

    Next: `gta task pilot OUT --no-judge`, or `gta run workflow --data OUT`; for atomic families
    `gta run atomic --data OUT`.
    """
    require_packages("gta forge", "xlsxwriter", "docx", "pptx", "typst", extra="forge")
    from gta_bench.forge.atomic import forge_questions
    from gta_bench.forge.catalog import (
        ATOMIC_FAMILIES,
        FAMILIES,
        find_atomic_families,
        find_families,
    )
    from gta_bench.forge.writing import Order, forge_tasks

    if only_list:
        rows = [(one.name, one.about, *one.levels) for one in FAMILIES.values()]
        rows += [(one.name, one.about, *one.levels) for one in ATOMIC_FAMILIES.values()]
        write_table(Table(HEADING, tuple(rows)), words=(0, 1, 2, 3, 4))
        return
    if not families or seed is None or out is None:
        raise UsageError("Name families (or all), --seed and --out; --list shows the families.")
    secret = b"" if key_file is None else key_file.read_bytes().strip()
    order = Order(namespace, seed, level, secret)
    tasks = format_count(count, "task")
    atomic = find_atomic_families(families)
    with say_if_slow(f"Forging {tasks}; run the same command to continue."):
        if atomic:
            made = forge_questions(atomic, order, count, out)
        else:
            new = forge_tasks(find_families(families), order, count, out)
    if atomic:
        again = f", {format_count(made.redrawn, 'picture')} drawn again" if made.redrawn else ""
        say(f"{made.new} new of {tasks} in {out}{again}. Next: gta run atomic --data {out}")
    else:
        say(f"{new} new of {tasks} in {out}. Next: gta task pilot {out} --no-judge")
