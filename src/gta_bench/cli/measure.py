"""`gta measure`: metrics of the user's own over a stored run."""

import click

from gta_bench import api
from gta_bench.cli.options import json_option
from gta_bench.cli.output import write_json, write_table
from gta_bench.reports.summary import measured_table


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@click.argument("metrics", nargs=-1, required=True)
@json_option
def measure(run: str, metrics: tuple[str, ...], as_json: bool) -> None:
    """Measure RUN by METRICS: names that other packages bring, or pkg.mod:function.

    A metric is a function of one unit (what the system did in one task) that gives a number, or
    None where it says nothing. The table has its mean, and over how many units of all.
    """
    found = [api.measure(run, name) for name in metrics]
    if as_json:
        write_json([one.model_dump(mode="json") for one in found])
    else:
        write_table(measured_table(found), (0,))
