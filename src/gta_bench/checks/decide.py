"""Decide a leaf by its checks: every check of its kind, and one score from all of them."""

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from gta_bench.checks import documents, recognition, states, tables
from gta_bench.checks.delivery import CheckedWork
from gta_bench.checks.language import check_language
from gta_bench.checks.outcome import Outcome, is_at_fault
from gta_bench.checks.packages import check_package
from gta_bench.checks.python import check_python
from gta_bench.datasets.package_checks import find_package
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.records.checks import AnyCheck, Credit, PackageCheck
from gta_bench.records.digests import digest_leaf
from gta_bench.records.verdicts import Scored, Unscored
from gta_bench.records.workflow import Checkpoint

# Increment it with every change of our own code that can change a score.
VERSION: Final = 5
FULL: Final = 10.0
# With a share of the checks, a leaf stays below the threshold at which it passes.
MOST_SHARE: Final = 6.0
DECIDERS: Final[Mapping[str, Callable[[Any, CheckedWork], Any]]] = {
    "file.exists": documents.check_exists,
    "file.kind": documents.check_kind,
    "file.opens": documents.check_opens,
    "file.not_input": documents.check_not_input,
    "text.contains": documents.check_contains,
    "text.regex": documents.check_regex,
    "text.no_placeholder": documents.check_placeholder,
    "text.language": check_language,
    "doc.heading": documents.check_heading,
    "doc.size": documents.check_size,
    "doc.parts": documents.check_parts,
    "table.shape": tables.check_shape,
    "table.value": tables.check_value,
    "table.sum": tables.check_sum,
    "table.order": tables.check_order,
    "table.keys": tables.check_keys,
    "table.same": tables.check_same,
    "xlsx.cell": tables.check_cell,
    "xlsx.no_errors": tables.check_no_errors,
    "json.path": tables.check_json,
    "image.facts": documents.check_image,
    "image.text": recognition.check_image_text,
    "media.facts": documents.check_media,
    "media.shows": recognition.check_shows,
    "media.says": recognition.check_says,
    "html.opens": documents.check_page,
    "html.shows": documents.check_sight,
    "html.links": documents.check_links,
    "zip.members": documents.check_members,
    "answer.contains": documents.check_answer,
    "answer.line": documents.check_answer_line,
    "state.file": states.check_state_file,
    "sqlite.query": states.check_query,
    "python": check_python,
}


async def decide_leaf(leaf: Checkpoint, work: CheckedWork) -> Scored | Unscored:
    """Return the score of a leaf by its checks.

    It is unscored if the score depends on a check that could not decide.
    """
    outcomes: list[Outcome] = []
    broken = ""
    for number, check in enumerate(leaf.checks, 1):
        try:
            outcomes.append(await run_check(check, work))
        except (ToolError, ToolUnavailable) as exc:
            broken = broken or f"check {number} ({check.label}): {exc}"
    failed = [one for one in outcomes if not one.holds]
    if broken and not (leaf.credit == "all" and failed):
        return Unscored(cause="check_failed", detail=broken)
    shown = failed or outcomes
    return Scored(
        value=0.0 if broken else give_credit(outcomes, leaf.credit),
        reason="; ".join(map(str, shown)),
        used=tuple(dict.fromkeys(one.where for one in shown)),
    )


async def run_check(check: AnyCheck, work: CheckedWork) -> Outcome:
    """Return the outcome of a check. A file that cannot be read does not meet it.

    Raises ToolUnavailable or ToolError if that is not the fault of the file.
    """
    try:
        found = DECIDERS.get(check.label, check_package)(check, work)
        outcome: Outcome = await found if inspect.isawaitable(found) else found
        return outcome
    except ToolError as exc:
        if not is_at_fault(exc):
            raise
        return _fail(check, exc)


def _fail(check: AnyCheck, problem: ToolError) -> Outcome:
    where = getattr(check, "file", getattr(check, "path", check.label))
    return Outcome(False, where, str(problem).removesuffix("."), points=0.0)


def give_credit(outcomes: Sequence[Outcome], credit: Credit) -> float:
    """Return the points of a leaf: all or nothing, by the share that hold, or by distance.

    Points that a check gives itself, such as a Python check, count as they are; of several, the
    lowest.
    """
    if all(one.holds for one in outcomes):
        return FULL
    if credit == "share":
        share = sum(one.holds for one in outcomes) / len(outcomes)
        return min(MOST_SHARE, FULL * share)
    points = [FULL if one.holds else one.points or 0.0 for one in outcomes]
    own = [one.points for one in outcomes if not one.holds]
    if credit == "linear" or (len(outcomes) == 1 and own[0] is not None):
        return min(points)
    return 0.0


def checks_digest(leaf: Checkpoint) -> str:
    """Return the digest of what decides a leaf: its checks, and the versions of their code."""
    packages = {find_package(one) for one in leaf.checks if isinstance(one, PackageCheck)}
    versions = " ".join([str(VERSION), *sorted(filter(None, packages))])
    return hashlib.sha256(f"{versions}\0{digest_leaf(leaf)}".encode()).hexdigest()
