"""What commands that make pages need beside the core."""

from importlib.util import find_spec

from gta_bench.errors import EnvironmentProblem


def needs_report_extra(*packages: str) -> None:
    """Say how to install what is missing, before anything is done."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise EnvironmentProblem(
            f"Not installed: {', '.join(missing)}. pip install 'gta-bench[report]'"
        )
