"""Checks whose kinds installed packages add; they run in this process, like tools of packages."""

import logging

from gta_bench.checks.delivery import CheckedWork
from gta_bench.checks.outcome import CheckBroken, Outcome
from gta_bench.datasets.package_checks import make_package_check
from gta_bench.errors import ToolError, ToolUnavailable, UsageError, describe_fault
from gta_bench.own_code import call_function
from gta_bench.records.checks import PackageCheck

logger = logging.getLogger(__name__)


async def check_package(check: PackageCheck, work: CheckedWork) -> Outcome:
    """Call the check of a package; what it raises, other than about a file, is its own fault."""
    try:
        decide = getattr(make_package_check(check), "decide")  # noqa: B009 - it was looked up
        found = await call_function(decide, work)
    except UsageError as exc:
        raise CheckBroken(str(exc)) from exc
    except (ToolError, ToolUnavailable):
        raise
    except Exception as exc:
        logger.debug("a check of a package failed", exc_info=True)
        raise CheckBroken(f"The check raised {describe_fault(exc)}.") from exc
    if not isinstance(found, Outcome):
        raise CheckBroken(f"The check returned {found!r:.200} instead of an Outcome.")
    return found
