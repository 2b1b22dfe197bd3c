"""`gta run`: a system on a dataset, from the first call to the scores."""

import click

from gta_bench.cli.lazy import LazyGroup

# A run of one dataset imports nothing that only the other one needs.
COMMANDS = {
    "atomic": ("gta_bench.cli.run_atomic:atomic_command", "GTA-Atomic with a model and an agent."),
    "workflow": (
        "gta_bench.cli.run_workflow:workflow_command",
        "GTA-Workflow with a model and an agent, judged.",
    ),
}


@click.group(cls=LazyGroup, commands_table=COMMANDS)
def run() -> None:
    """Measure a system on a dataset."""
