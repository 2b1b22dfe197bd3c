"""Kinds of checks that installed packages add by the entry point group `gta_bench.checks`.

An entry point is named like its kind, `package.kind`, and leads to a pydantic model. The fields of
the model are the parameters of the check, its docstring says when it holds, and its method
`decide(work)` returns an `Outcome` (`gta_bench.checks.outcome`); it may be async.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Final

from pydantic import BaseModel, ValidationError

from gta_bench.errors import UsageError, suggest_name
from gta_bench.records.checks import CHECKS, PackageCheck

ENTRY_POINTS: Final = "gta_bench.checks"


def make_package_check(check: PackageCheck) -> BaseModel:
    """Return a check as the model of its package; raises UsageError if it is not a valid one."""
    point = _find_points().get(check.check)
    if point is None:
        raise UsageError(explain_unknown(check.check))
    try:
        kind = point.load()
    except (ImportError, AttributeError) as exc:
        raise UsageError(f"the check {check.check!r} cannot be loaded: {exc}.") from exc
    if not (isinstance(kind, type) and issubclass(kind, BaseModel) and hasattr(kind, "decide")):
        raise UsageError(
            f"the check {check.check!r} is {point.value}, which is not a pydantic model with the "
            "method `decide`."
        )
    try:
        return kind.model_validate(check.parameters)
    except ValidationError as exc:
        problem = exc.errors(include_url=False)[0]
        where = ".".join(map(str, problem["loc"]))
        known = ", ".join(sorted(kind.model_fields))
        raise UsageError(
            f"the check {check.check!r}{f', {where}' if where else ''}: {problem['msg']}. "
            f"Its parameters: {known}."
        ) from exc


def find_package(check: PackageCheck) -> str | None:
    """Return the package of a check with its version; None if it is not installed."""
    point = _find_points().get(check.check)
    if point is None or point.dist is None:
        return None
    return f"{point.dist.name}=={point.dist.version}"


def explain_unknown(kind: str) -> str:
    """Return a sentence about a kind that nothing installed has, with the nearest known one."""
    known = [*CHECKS, *sorted(_find_points())]
    return f"unknown check {kind!r}{suggest_name(kind, known)} Known checks: {', '.join(known)}."


def _find_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}
