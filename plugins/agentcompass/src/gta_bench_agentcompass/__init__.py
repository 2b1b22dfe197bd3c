"""GTA-Atomic and GTA-Workflow in AgentCompass; importing this package registers both.

AgentCompass loads no packages by entry points, so `gta-agentcompass` is its command line after this
import. Its command takes the recipe folder of this package as well: `--recipe-dir`.
"""

from gta_bench_agentcompass.benchmarks import GTAAtomic, GTAWorkflow

__all__ = ["GTAAtomic", "GTAWorkflow", "main"]


def main() -> int | None:
    """Run AgentCompass's own command line, which now knows both benchmarks."""
    from agentcompass.cli import main as run

    return run()
