"""GTA-Atomic and GTA-Workflow in AgentCompass; importing this package registers both.

AgentCompass finds no benchmarks of other packages by itself, so `gta-agentcompass` is its command
line after this import. In Python, import this package before `agentcompass.launch`.
"""

from gta_bench_agentcompass.benchmarks import GTAAtomic, GTAWorkflow

__all__ = ["GTAAtomic", "GTAWorkflow", "main"]


def main() -> int | None:
    """Run AgentCompass's own command line, which now knows both benchmarks."""
    from agentcompass.cli import main as run

    return run()
