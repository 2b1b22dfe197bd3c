"""Leaderboard entries: reading them, and checking whether their scores are possible at all.

The checks need no predictions: counts, ranges, and relations between metrics. docs/leaderboard.md
derives each rule.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Final, cast
from zipfile import is_zipfile

from pydantic import TypeAdapter, ValidationError

from gta_bench.errors import UsageError
from gta_bench.metrics import table
from gta_bench.records.leaderboard import (
    Board,
    Entry,
    EntryCheck,
    EntryFinding,
    MetricName,
    Score,
)

_ENTRIES: TypeAdapter[tuple[Entry, ...]] = TypeAdapter(tuple[Entry, ...])
# For floating point only; the tolerance of a rounded value depends on its decimals.
EPSILON: Final = 1e-9
# Results by task have four decimals.
ROUNDED: Final = 0.01


def is_bundle(path: Path) -> bool:
    """Return whether a file is a bundle, by its name or its content."""
    return path.suffix == ".zip" or is_zipfile(path)


def read_published_entries() -> tuple[Entry, ...]:
    """Return every row that the authors of GTA have published."""
    folder = files("gta_bench.leaderboard") / "published"
    return tuple(
        entry
        for name in ("atomic", "workflow", "workflow-30")
        for entry in _ENTRIES.validate_json((folder / f"{name}.json").read_bytes())
    )


def read_entries(paths: Iterable[Path], *, now: datetime | None = None) -> tuple[Entry, ...]:
    """Read files that each contain one entry or a list of entries; `now` is the current time.

    Raises UsageError for a file that is none, and for a release that is later than this month.
    """
    found = []
    for path in paths:
        for entry in _read(path):
            if problem := find_future(entry, now):
                raise UsageError(
                    f"{path}: entry {entry.id!r}: {problem}. Use the month of the run."
                )
            found.append(entry)
    return tuple(found)


def find_future(entry: Entry, now: datetime | None = None) -> str:
    """Say that the month of an entry has not begun, in UTC; empty if it has."""
    month = f"{(now or datetime.now(UTC)).astimezone(UTC):%Y-%m}"
    if entry.release <= month:
        return ""
    return f"its release {entry.release} is in the future; this month is {month}"


def raise_tiers(bundled: Sequence[Entry], stated: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the entries of bundles and of files; a verified entry replaces that of its bundle.

    `gta leaderboard verify --out` writes such an entry: the bundle's own, with a higher tier unless
    it repeated too little. Raises UsageError if an entry states a higher tier without its bundle.
    """
    verified = [one for one in stated if one.status in ("re-judged", "reproduced")]
    replaced = [one.model_copy(update={"status": "self-reported"}) for one in verified]
    for one, lower in zip(verified, replaced, strict=True):
        if lower not in bundled:
            raise UsageError(
                f"Entry {one.id!r} has the tier {one.status!r}, but there is no bundle with this "
                "entry. Add the bundle that `gta leaderboard verify` repeated, or use the status "
                "'self-reported'."
            )
        if one.status == "re-judged" and one.board == "atomic":
            raise UsageError(
                f"Entry {one.id!r} has the tier 're-judged', but GTA-Atomic has no judge. Use the "
                "status 'self-reported'."
            )
    return (*(one for one in bundled if one not in replaced and one not in stated), *stated)


def check_unique_ids(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the entries, or raise an error if two of them have the same id."""
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen:
            raise UsageError(f"Two entries have the id {entry.id!r}. Change one of them.")
        seen.add(entry.id)
    return tuple(entries)


def _read(path: Path) -> tuple[Entry, ...]:
    if is_bundle(path):
        raise UsageError(
            f"{path} is a bundle, not an entry. Check it with `gta leaderboard check {path}`, or "
            f"extract its entry with `unzip {path} entry.json`."
        )
    raw = path.read_bytes()
    try:
        if raw.lstrip().startswith(b"["):
            return _ENTRIES.validate_json(raw)
        return (Entry.model_validate_json(raw),)
    except ValidationError as exc:
        first = exc.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        reason = first["msg"].removeprefix("Value error, ")
        raise UsageError(
            f"{path} is not a leaderboard entry: {field}: {reason}. "
            "The schema is docs/reference/schemas/Entry.schema.json."
        ) from exc


def check_entry(entry: Entry) -> tuple[EntryFinding, ...]:
    """Return every score of the entry that is impossible."""
    return (*_counts(entry), *_ranges(entry), *_calls(entry), *_answers(entry), *_tasks(entry))


def find_denominator(entry: Entry, metric: MetricName) -> int | None:
    """Return the denominator of the metric in this entry; None if it is not a proportion."""
    return find_released_size(entry, metric) if table.metric(metric).is_count else None


def find_released_size(entry: Entry, metric: MetricName) -> int | None:
    """Return the denominator of the metric on the released data; None if it is unknown."""
    row = table.metric(metric)
    strict = row.released_strict.get(entry.board) if entry.scoring == "strict" else None
    return row.released.get(entry.board) if strict is None else strict


def find_count(score: Score, n: int) -> int | None:
    """Return the k for which k/n rounds to the value; None if there is none."""
    k = round(score.value * n / 100)
    return k if abs(100 * k / n - score.value) <= _slack(score) else None


def _counts(entry: Entry) -> Iterator[EntryFinding]:
    for metric, score in entry.scores.items():
        n = find_denominator(entry, metric)
        if score.k is not None and score.n is not None:
            if n is not None and score.n != n:
                fact = f"is given as a share of {score.n} instead of {n}"
                yield _finding(entry, "other-count", metric, fact)
            elif abs(100 * score.k / score.n - score.value) > _slack(score):
                fact = f"is not {score.k}/{score.n}, as the entry says"
                yield _finding(entry, "other-count", metric, fact)
        elif n is not None and _in_range(entry, metric) and find_count(score, n) is None:
            k = int(score.value * n / 100)
            near = [f"{100 * one / n:.{score.decimals}f} ({one}/{n})" for one in (k, k + 1)]
            fact = f"is no k/{n}; the nearest are {' and '.join(near)}"
            yield _finding(entry, "no-count", metric, fact)


def _ranges(entry: Entry) -> Iterator[EntryFinding]:
    for metric in entry.scores:
        if not _in_range(entry, metric):
            top = _find_top(entry, metric)
            yield _finding(entry, "out-of-range", metric, f"is not between 0 and {top:g}")


def _in_range(entry: Entry, metric: MetricName) -> bool:
    score = entry.scores[metric]
    return -EPSILON <= score.value <= _find_top(entry, metric) + _slack(score)


def _find_top(entry: Entry, metric: MetricName) -> float:
    row = table.metric(metric)
    if entry.scoring == "compat" and row.compat_top is not None:
        return row.compat_top
    return row.top * row.factor


def _calls(entry: Entry) -> Iterator[EntryFinding]:
    """Right arguments count only in a call of the right tool."""
    tool, arg = entry.scores.get("tool_acc"), entry.scores.get("arg_acc")
    if tool and arg and arg.value > tool.value + _slack(tool) + _slack(arg):
        fact = f"exceeds {table.TOOL_ACC.label} {_text(tool)}"
        yield _finding(entry, "arg-above-tool", "arg_acc", fact)


def _answers(entry: Entry) -> Iterator[EntryFinding]:
    """AnsAcc+I averages the same 172 answers and 57 image tasks, 0 to 1 each, over 229."""
    answer, both = entry.scores.get("ans_acc"), entry.scores.get("ans_acc_i")
    if answer is None or both is None:
        return
    answers, tasks = table.ANS_ACC.released["atomic"], table.ANS_ACC_I.released["atomic"]
    low = answer.value * answers / tasks
    high = low + 100 * (tasks - answers) / tasks
    slack = _slack(answer) * answers / tasks + _slack(both)
    if not low - slack <= both.value <= high + slack:
        fact = (
            f"is not between {low:.2f} and {high:.2f}, as {table.ANS_ACC.label} {_text(answer)} "
            "requires"
        )
        yield _finding(entry, "ans-acc-i-bound", "ans_acc_i", fact)


def _tasks(entry: Entry) -> Iterator[EntryFinding]:
    """The mean of the results by task is the score by which the board is sorted."""
    headline = find_headline(entry.board)
    if not entry.by_task or headline not in entry.scores:
        return
    mean, score = 100 * fmean(entry.by_task.values()), entry.scores[headline]
    if abs(mean - score.value) > _slack(score) + ROUNDED:
        fact = f"is not {mean:.2f}, the mean of the results by task"
        yield _finding(entry, "other-count", headline, fact)


def find_headline(board: Board) -> MetricName:
    """Return the metric by which a board is sorted."""
    return cast(MetricName, table.primary("end-to-end" if board == "atomic" else "workflow").name)


def _finding(entry: Entry, check: EntryCheck, metric: MetricName, fact: str) -> EntryFinding:
    message = f"{table.label(metric)} {_text(entry.scores[metric])} {fact}"
    return EntryFinding(entry=entry.id, check=check, metric=metric, message=message)


def _text(score: Score) -> str:
    return f"{score.value:.{score.decimals}f}"


def _slack(score: Score) -> float:
    """Return how far the rounded value may be from the true one."""
    return 0.5 * 10.0**-score.decimals + EPSILON
