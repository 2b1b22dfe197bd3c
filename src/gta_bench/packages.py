"""Optional packages: find missing ones, and the command that installs them."""

from importlib.util import find_spec

from gta_bench.errors import EnvironmentProblem


def install_command(extra: str) -> str:
    """Return the command that installs an extra.

    >>> install_command("tools")
    "pip install 'gta-bench[tools]'"
    """
    return f"pip install 'gta-bench[{extra}]'"


def missing_packages(*modules: str) -> list[str]:
    """Return the top-level modules that are not installed, without importing any."""
    return [module for module in modules if find_spec(module) is None]


def require_packages(user: str, *modules: str, extra: str) -> None:
    """Raise EnvironmentProblem if a module is missing; `user` names the command that needs it.

    Call this before anything is written or paid for.
    """
    missing = missing_packages(*modules)
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise EnvironmentProblem(
            f"{user} needs {', '.join(missing)}, which {verb} not installed: "
            f"{install_command(extra)}"
        )
