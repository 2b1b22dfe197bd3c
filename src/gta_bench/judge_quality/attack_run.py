"""Attacks on a judge: the corpus judged with its defences, without them, and with each one off."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from gta_bench.judge_quality.attacks.corpus import Attack
from gta_bench.judge_quality.attacks.outcomes import AttackSummary, summarize
from gta_bench.judging.options import DEFENCES, JudgeOptions
from gta_bench.running.judge_run import Judging, Watching, judge_run, name_judge
from gta_bench.runs.verdicts import read_verdicts


@dataclass(frozen=True)
class Shield:
    """A set of defences by the name under which it is reported."""

    name: str
    options: JudgeOptions


def shields(options: JudgeOptions, *, ablation: bool) -> list[Shield]:
    """None first, then all; each one off and the control where an ablation is wanted."""
    plain = options.model_copy(update={"control": False})
    found = [
        Shield("none", plain.model_copy(update={"without": DEFENCES})),
        Shield("all", options),
    ]
    if ablation:
        found += [
            Shield(f"all but {defence}", plain.model_copy(update={"without": (defence,)}))
            for defence in DEFENCES
        ]
        found.append(Shield("all and control", plain.model_copy(update={"control": True})))
    return found


Works = Literal["failing", "borderline"]


@dataclass(frozen=True)
class Shielded:
    """What a set of defences is worth to one model, on works that fail or on borderline ones."""

    model: str
    shield: str
    works: Works
    summary: AttackSummary


def attack(
    run: Path,
    chosen: Sequence[Attack],
    judging: Judging,
    watching: Watching,
    *,
    ablation: bool,
) -> Iterator[Shielded]:
    """Judge the stored corpus under each set of defences; what was judged before is not again.

    Every work is judged twice or more, or nobody knew what honest works do without any attack.
    """
    repeats = max(2, judging.repeats)
    kinds: dict[Works, list[Attack]] = {
        "failing": [one for one in chosen if not one.borderline],
        "borderline": [one for one in chosen if one.borderline],
    }
    for model in judging.models:
        planned = shields(judging.options, ablation=ablation)
        bare = name_judge(model, planned[0].options)
        for shield in planned:
            one = replace(judging, models=(model,), options=shield.options, repeats=repeats)
            for _ in judge_run(run, one, watching):
                pass
            name = name_judge(model, shield.options)
            verdicts = read_verdicts(run)
            for works, own in kinds.items():
                summary = summarize(name, own, verdicts, bare=bare, repeats=repeats)
                yield Shielded(model.name, shield.name, works, summary)
