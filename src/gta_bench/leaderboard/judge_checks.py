"""Whether verdicts are those of the judges that the run recorded, by prompts that are known."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gta_bench.records.judges import PROMPT_DIGESTS, JudgeEntry
from gta_bench.records.leaderboard import BundleFinding
from gta_bench.runs.judges import read_judges
from gta_bench.runs.verdicts import read_verdicts


class JudgedBy(NamedTuple):
    """A judge by its verdicts: prompts, names by which providers answered, entries in the registry.

    `models` are those that were asked; a cascade has two.
    """

    prompts: tuple[str, ...]
    answered: tuple[str, ...]
    entries: tuple[JudgeEntry, ...]
    models: tuple[str, ...]


def read_judged(run: Path) -> dict[str, JudgedBy]:
    """Everything that a run tells of its judges, by their names."""
    registry = read_judges(run)
    names = {entry.name: None for entry in registry.judges}
    prompts: dict[str, set[str]] = {}
    answered: dict[str, set[str]] = {}
    for key, row in read_verdicts(run).items():
        names[key.judge] = None
        prompts.setdefault(key.judge, set()).add(row.prompts)
        answered.setdefault(key.judge, set()).add(row.model)
    return {
        name: JudgedBy(
            tuple(sorted(prompts.get(name, ()))),
            tuple(sorted(answered.get(name, set()) - {""})),
            registry.of(name),
            tuple(entry.model for entry in registry.judges if entry.name in name),
        )
        for name in names
    }


def judge_findings(judged: JudgedBy | None, name: str) -> Iterator[BundleFinding]:
    """Where verdicts under that name are not what the recorded judge could have said."""
    if judged is None or not judged.entries:
        yield _finding(f"{name} is not in judges.json: who gave its verdicts is not known")
        return
    for entry in judged.entries:
        if entry.digest != entry.compute_digest() or not _is_named_by(entry):
            yield _finding(f"{name} is not what its digest in judges.json says")
    if {*judged.prompts} - {entry.prompts for entry in judged.entries}:
        yield _finding(f"verdicts of {name} were made with other prompts than judges.json says")
    if {*judged.prompts} - {*PROMPT_DIGESTS}:
        yield _finding(
            f"{name} was asked with prompts that no version up to this one has; judge with a "
            "released version, or check with a newer one"
        )


def _is_named_by(entry: JudgeEntry) -> bool:
    """Whether a judge's name begins with its model, as names of judges and of cascades do."""
    return f"{entry.name} ".startswith(f"{entry.model} ")


def _finding(message: str) -> BundleFinding:
    return BundleFinding(check="judge", message=message)
