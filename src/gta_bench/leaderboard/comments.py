"""What a check found in submitted bundles, as Markdown for a comment on their pull request."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gta_bench.errors import format_count
from gta_bench.leaderboard.tables import BOARDS, find_interval, is_ranked
from gta_bench.metrics.table import label
from gta_bench.records.leaderboard import Entry
from gta_bench.reports.tables import Table, escape_markdown, markdown
from gta_bench.similarity.catalog import PUBLISHED

# A comment of this kind is replaced by the next one.
MARKER: Final = "<!-- gta-bench:leaderboard -->"
# A comment on GitHub has at most 65,536 characters.
LONGEST_PROBLEM: Final = 400
MOST_PROBLEMS: Final = 100
# A name of a file that can neither end the code around it nor be anything but one argument.
_PLAIN: Final = re.compile(r"[\w.+-]+", re.ASCII)


class SubmissionReport(NamedTuple):
    """A bundle by its file name: its entry if it could be read, who signed it, and its problems.

    A problem is the name of a check and a sentence.
    """

    file: str
    entry: Entry | None
    signer: str
    problems: tuple[tuple[str, str], ...]


def format_submissions(reports: Sequence[SubmissionReport]) -> str:
    """Return a comment with one line for each problem, or a table of the rows that are added.

    >>> forged = SubmissionReport("a.zip", None, "", (("signature", "it does not match"),))
    >>> print(format_submissions([forged]))
    <!-- gta-bench:leaderboard -->
    ## Submission refused: 1 problem
    <BLANKLINE>
    **a.zip**: 1 problem
    <BLANKLINE>
    - **signature**: it does not match
    <BLANKLINE>
    `gta leaderboard check a.zip --data DIR` lists the same problems on your computer.
    <BLANKLINE>
    """
    problems = sum(len(one.problems) for one in reports)
    if not reports:
        state = "refused: no bundle"
    elif problems:
        state = f"refused: {format_count(problems, 'problem')}"
    else:
        state = "accepted"
    parts = [MARKER, f"## Submission {state}", ""]
    for one in reports:
        parts += [*_list_problems(one), ""]
    accepted = [one for one in reports if not one.problems and one.entry is not None]
    if accepted:
        parts += [markdown(_table(accepted)), ""]
        notes = [f"- {escape_markdown(note)}" for one in accepted for note in _list_notes(one)]
        parts += [*notes, *([""] if notes else [])]
        parts += [
            "The scores follow from the logs. Merging adds "
            f"{format_count(len(accepted), 'row')} of the tier self-reported.",
            "",
        ]
    return "\n".join(parts)


def _list_problems(one: SubmissionReport) -> Iterator[str]:
    if not one.problems:
        yield f"**{escape_markdown(one.file)}**: no problem"
        return
    yield f"**{escape_markdown(one.file)}**: {format_count(len(one.problems), 'problem')}"
    yield ""
    for check, message in one.problems[:MOST_PROBLEMS]:
        yield f"- **{check}**: {escape_markdown(message, LONGEST_PROBLEM)}"
    if len(one.problems) > MOST_PROBLEMS:
        yield f"- and {format_count(len(one.problems) - MOST_PROBLEMS, 'more problem')}"
    yield ""
    name = one.file if _PLAIN.fullmatch(one.file) else "BUNDLE"
    yield f"`gta leaderboard check {name} --data DIR` lists the same problems on your computer."


def _table(accepted: Sequence[SubmissionReport]) -> Table:
    rows = []
    for one in accepted:
        assert one.entry is not None
        metric = BOARDS[one.entry.board].headline
        interval = find_interval(one.entry, metric)
        score = f"{label(metric)} {one.entry.scores[metric].value:.2f}"
        if interval is not None:
            score += f" ({100 * interval.low:.1f} to {100 * interval.high:.1f})"
        cells = (one.entry.id, one.entry.system, BOARDS[one.entry.board].title)
        rows.append((*map(escape_markdown, cells), score, one.signer))
    return Table(("id", "system", "board", "score", "signed by"), tuple(rows))


def _list_notes(one: SubmissionReport) -> Iterator[str]:
    assert one.entry is not None
    if one.entry.marks:
        yield f"{one.entry.system} is marked: {', '.join(one.entry.marks)}"
    names = [label(name) for name in one.entry.scores if not is_ranked(one.entry, name)]
    if names:
        yield (
            f"{one.entry.system} is not ranked among published rows: its {', '.join(names)} "
            f"depend on the similarity of texts, which was not the published {PUBLISHED}"
        )
