"""Workflow compat: the root that the published parser makes of what a judge really replied."""

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest

from gta_bench.judging.judge import judge_unit
from gta_bench.judging.reply import read_published
from gta_bench.metrics.workflow_scores import Thresholds, score_workflow
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictRow
from gta_bench.records.workflow_scores import JudgeScores
from tests.chat_server import ChatServer, chat_server
from tests.judging.builders import (
    asked,
    evidence,
    file,
    honest,
    judge,
    model,
    names,
    question,
    stored,
    task,
    verdict,
)

TASKS, LEAVES = 20, 2
PARTS = range(1, LEAVES + 1)
AGAIN = "last reply"


class Messy:
    """A judge that replies in five forms by turns; what it said first of a leaf is kept."""

    def __init__(self) -> None:
        self.first: dict[tuple[str, str], str] = {}

    def __call__(self, request: dict[str, Any]) -> str:
        ((leaf,), (name,)) = asked(request), names(request)
        found = re.search(r"Part \d+ of (\w+) is right", question(request))
        assert found is not None
        number = int(leaf[-1]) + int(found[1])
        score = number % 11
        good = json.dumps(verdict(name, score))
        forms = [
            good,
            f"```json\n{good}\n```",
            f"I would give it a {score}, as part of it is missing.",
            json.dumps({"leaf": name, "used": [], "reason": "Looks fine."}),
            json.dumps(verdict(name) | {"score": f"{score}/10"}),
        ]
        text = forms[number % len(forms)]
        self.first.setdefault((found[1], leaf), text.replace(name, ""))
        return text


def published(text: str) -> float:
    """The published parser, reimplemented: JSON, else the first number, else nothing."""
    try:
        return max(0.0, min(10.0, float(json.loads(text).get("score", 0))))
    except (ValueError, TypeError, AttributeError):
        number = re.search(r"\d+(\.\d+)?", text)
        return min(10.0, float(number[0])) if number else 0.0


@pytest.fixture
def messy() -> Messy:
    return Messy()


@pytest.fixture
def server(loopback: None, messy: Messy) -> Iterator[ChatServer]:
    with chat_server(messy) as server:
        yield server


def judged(server: ChatServer, *numbers: int) -> list[VerdictRow]:
    chosen = judge(server.url)
    rows: list[VerdictRow] = []

    async def keep(made: Sequence[VerdictRow]) -> None:
        rows.extend(made)

    async def run() -> None:
        async with model(server.url, chosen.model.config) as opened:
            judged = (
                judge_unit(
                    task(str(number), LEAVES),
                    evidence(file()),
                    replace(chosen, model=opened),
                    pictures=stored,
                    keep=keep,
                )
                for number in numbers
            )
            await asyncio.gather(*judged)

    asyncio.run(run())
    return rows


def scored(rows: Sequence[VerdictRow]) -> JudgeScores:
    units = [
        WorkflowUnit(task=task(name, LEAVES), trace=())
        for name in dict.fromkeys(row.key.task for row in rows)
    ]
    (scores,) = score_workflow(units, rows, thresholds=Thresholds(7, 7)).judges
    return scores


def test_a_messy_judge_gives_all_roots_that_the_published_parser_gives(
    server: ChatServer, messy: Messy
) -> None:
    """No reply of a live judge was read by the published rule: 0 of 20 roots, not 20."""
    rows = judged(server, *range(TASKS))
    found = {one.task: one.compat for one in scored(rows).tasks}
    wanted = {
        str(number): fmean(published(messy.first[str(number), f"cp1-{leaf}"]) for leaf in PARTS)
        for number in range(TASKS)
    }
    assert found == pytest.approx(wanted)
    assert len(found) == TASKS
    assert scored(rows).compat.n == TASKS
    strict = [row for row in rows if isinstance(row.verdict, Scored)]
    assert len(strict) == TASKS * LEAVES * 2 // 5, "the good ones, bare and fenced"


def test_the_first_reply_counts_though_the_second_is_right(server: ChatServer) -> None:
    server.reply = lambda request: honest(request) if AGAIN in question(request) else "Only a 2."
    rows = judged(server, 1)
    assert {(row.compat, row.verdict.value) for row in rows if isinstance(row.verdict, Scored)} == {
        (2.0, 8.0)
    }
    assert len(rows) == LEAVES


def test_a_provider_that_fails_leaves_no_published_score(server: ChatServer) -> None:
    server.forever = "garbage"
    assert {row.compat for row in judged(server, 1)} == {None}


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        ('{"verdicts": [{"leaf": "a", "score": 7}, {"leaf": "b", "score": "3/10"}]}', (7, 3)),
        ('{"verdicts": [{"leaf": "b", "score": 4}, {"leaf": ["a"], "score": 9}]}', (0, 4)),
        ('{"verdicts": 5}', (0, 0)),
        ("Both are worth 6 points.", (6, 6)),
        ('```json\n{"verdicts": [{"leaf": "cp1-2", "score": 9}]}\n```', (9, 9)),
    ],
)
def test_of_a_reply_for_several_leaves_each_verdict_is_read_as_a_reply(
    text: str, scores: tuple[float, float]
) -> None:
    assert tuple(read_published(text, ["a", "b"], several=True).values()) == scores
