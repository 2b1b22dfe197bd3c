"""The judge over HTTP: a real server on loopback that speaks the chat protocol."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from gta_bench.judging.judge import Judge, judge_unit, mark_without_evidence, pending_leaves
from gta_bench.judging.options import JudgeOptions
from gta_bench.records.evidence import Evidence
from gta_bench.records.verdicts import Scored, Unscored, VerdictKey, VerdictRow
from tests.chat_server import Behavior, ChatServer, Reply, chat_server
from tests.judging.builders import (
    asked,
    evidence,
    file,
    honest,
    judge,
    model,
    names,
    picture,
    question,
    replied,
    stored,
    task,
    verdict,
)


class Recorder:
    """Keeps every request, and answers by `reply`."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: dict[str, Any]) -> str | dict[str, Any]:
        self.requests.append(request)
        return self.reply(request)

    @property
    def asked(self) -> list[list[str]]:
        return [asked(request) for request in self.requests]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder(honest)


@pytest.fixture
def server(loopback: None, recorder: Recorder) -> Iterator[ChatServer]:
    with chat_server(recorder) as server:
        yield server


SHOWN = evidence(file(pictures=(picture(),)))


def judged(
    judge: Judge, shown: Evidence = SHOWN, known: Sequence[VerdictRow] = (), leaves: int = 3
) -> tuple[VerdictRow, ...]:
    kept: list[VerdictRow] = []

    async def keep(rows: Sequence[VerdictRow]) -> None:
        kept.extend(rows)

    async def run() -> tuple[VerdictRow, ...]:
        async with model(str(judge.model.api.base_url), judge.model.config) as opened:
            return await judge_unit(
                task(leaves=leaves),
                shown,
                replace(judge, model=opened),
                known={row.key: row for row in known},
                pictures=stored,
                keep=keep,
            )

    rows = asyncio.run(run())

    def by_key(row: VerdictRow) -> str:
        return str(row.key)

    assert sorted(kept, key=by_key) == sorted(rows, key=by_key)
    return rows


def causes(rows: Sequence[VerdictRow]) -> list[str]:
    return [row.verdict.cause if isinstance(row.verdict, Unscored) else "scored" for row in rows]


def test_every_leaf_gets_a_verdict_with_its_key_and_what_it_was_made_from(
    server: ChatServer,
) -> None:
    rows = judged(judge(server.url))
    assert [row.key for row in rows] == [
        VerdictKey(task="7", leaf=f"cp1-{number}", judge="local/m") for number in (1, 2, 3)
    ]
    assert {row.evidence for row in rows} == {SHOWN.digest}
    assert {row.model for row in rows} == {"m-2026"}
    assert [(row.input_tokens, row.output_tokens) for row in rows] == [(10, 5)] * 3
    assert rows[0].verdict == Scored(value=8, reason="Seen.", used=("report.md",))


def test_the_first_call_runs_alone_and_the_others_together(
    server: ChatServer, recorder: Recorder
) -> None:
    at_once: list[int] = []

    def reply(request: dict[str, Any]) -> str:
        at_once.append(server.at_once)
        return honest(request)

    recorder.reply, server.delay = reply, 0.3
    judged(judge(server.url), leaves=6)
    assert at_once[0] == 1
    assert server.most_at_once == 5


def test_all_requests_of_a_unit_share_everything_but_the_question(
    server: ChatServer, recorder: Recorder
) -> None:
    judged(judge(server.url))
    for request in recorder.requests:
        assert request["messages"][-1]["content"].pop()["text"].count("cp1-") == 2
    assert recorder.requests[0] == recorder.requests[1] == recorder.requests[2]
    format_ = recorder.requests[0]["response_format"]
    assert format_["type"] == "json_schema"
    assert format_["json_schema"]["strict"] is True
    assert format_["json_schema"]["schema"]["properties"]["score"]["enum"] == list(range(11))


@pytest.mark.parametrize(("size", "groups"), [(1, [1] * 5), (2, [2, 2, 1]), (9, [5])])
def test_leaves_share_calls_and_their_cost_adds_up(
    server: ChatServer, recorder: Recorder, size: int, groups: list[int]
) -> None:
    rows = judged(judge(server.url, leaves_per_call=size), leaves=5)
    assert causes(rows) == ["scored"] * 5
    assert sorted(map(len, recorder.asked), reverse=True) == groups
    assert sum(row.input_tokens for row in rows) == 10 * len(groups)
    assert sum(row.output_tokens for row in rows) == 5 * len(groups)


def test_only_what_has_no_score_for_this_evidence_is_asked(
    server: ChatServer, recorder: Recorder
) -> None:
    one = judge(server.url)
    rows = judged(one)
    unscored = rows[1].model_copy(update={"verdict": Unscored(cause="timeout")})
    known = (rows[0], unscored, rows[2])
    assert pending_leaves(task(), SHOWN, one, known={row.key: row for row in known}) == 1
    recorder.requests.clear()
    assert [row.key.leaf for row in judged(one, known=known)] == ["cp1-2"]
    assert recorder.asked == [["cp1-2"]]
    assert judged(one, known=rows) == ()

    for changed in (
        judged(one, evidence(file(text="Changed.")), rows),
        judged(one, known=[row.model_copy(update={"prompts": "older"}) for row in rows]),
        judged(judge(server.url, leaves_per_call=2), known=rows),
        judged(judge(server.url, inputs=False), known=rows),
    ):
        assert len(changed) == 3


def test_repeats_are_verdicts_of_their_own_with_seeds_of_their_own(
    server: ChatServer, recorder: Recorder
) -> None:
    rows = judged(judge(server.url, repeats=3, config={"seed": 7}), leaves=2)
    assert sorted((row.key.leaf, row.key.repeat) for row in rows) == [
        (leaf, repeat) for leaf in ("cp1-1", "cp1-2") for repeat in (1, 2, 3)
    ]
    assert sorted(request["seed"] for request in recorder.requests) == [7, 7, 8, 8, 9, 9]


def choice(text: str | None, reason: str = "stop", **message: Any) -> dict[str, Any]:
    return {
        "message": {"role": "assistant", "content": text, **message},
        "finish_reason": reason,
    }


BROKEN: dict[str, tuple[Callable[[str], str | dict[str, Any]], str]] = {
    "prose": (lambda leaf: f"Leaf {leaf} deserves an 8.", "reply_not_json"),
    "prose and a fence": (
        lambda leaf: f"Sure:\n```json\n{json.dumps(verdict(leaf))}\n```",
        "reply_not_json",
    ),
    "two objects": (lambda leaf: json.dumps(verdict(leaf)) * 2, "reply_two_objects"),
    "NaN": (lambda leaf: json.dumps(verdict(leaf, float("nan"))), "score_not_a_number"),
    "8/10": (lambda leaf: json.dumps({**verdict(leaf), "score": "8/10"}), "score_not_a_number"),
    "12": (lambda leaf: json.dumps(verdict(leaf, 12)), "score_out_of_range"),
    "empty": (lambda leaf: "", "empty"),
    "cut off": (lambda leaf: choice(json.dumps(verdict(leaf))[:40], "length"), "truncated"),
    "cut off after all": (lambda leaf: choice(json.dumps(verdict(leaf)), "length"), "truncated"),
    "refusal": (lambda leaf: choice(None, refusal="I cannot judge this."), "refused"),
    "filtered": (lambda leaf: choice("", "content_filter"), "refused"),
    "another leaf": (lambda leaf: json.dumps(verdict("cp1-9")), "other_leaf"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_reply_is_asked_for_once_more_and_then_unscored(
    server: ChatServer, recorder: Recorder, fault: str
) -> None:
    """One leaf of three is hit; the others are judged all the same."""
    broken, cause = BROKEN[fault]

    def reply(request: dict[str, Any]) -> str | dict[str, Any]:
        (leaf,) = names(request)
        return broken(leaf) if asked(request) == ["cp1-2"] else honest(request)

    recorder.reply = reply
    assert causes(judged(judge(server.url))) == ["scored", cause, "scored"]
    again = [request for request in recorder.requests if "last reply" in question(request)]
    assert len(again) == (0 if cause == "refused" else 1)
    assert len(recorder.requests) == 3 + len(again)
    assert [asked(request) for request in again] == [["cp1-2"]] * len(again)
    named = [_leaves_of_schema(request) for request in again]
    assert named == [names(request) for request in again], "the second schema allows no other leaf"


def _leaves_of_schema(request: dict[str, Any]) -> list[str]:
    schema = request["response_format"]["json_schema"]["schema"]
    return list(schema["properties"]["leaf"]["enum"])


def test_a_corrected_reply_counts_and_both_calls_are_paid(
    server: ChatServer, recorder: Recorder
) -> None:
    recorder.reply = lambda request: (
        honest(request) if "last reply" in question(request) else "It is an 8."
    )
    rows = judged(judge(server.url), leaves=1)
    assert causes(rows) == ["scored"]
    assert rows[0].input_tokens == 20
    assert "(reply not json)" in question(recorder.requests[-1])


def test_of_several_verdicts_only_the_broken_are_asked_for_again(
    server: ChatServer, recorder: Recorder
) -> None:
    def reply(request: dict[str, Any]) -> str:
        leaves = names(request)
        kept = [leaf for leaf in leaves if "cp1-2" not in leaf or len(leaves) == 1]
        return replied(kept, True)

    recorder.reply = reply
    rows = judged(judge(server.url, leaves_per_call=3))
    assert causes(rows) == ["scored"] * 3
    assert recorder.asked == [["cp1-1", "cp1-2", "cp1-3"], ["cp1-2"]]


@pytest.mark.parametrize(
    ("behavior", "cause"),
    [
        ("429", "rate_limited"),
        ("500", "http_error"),
        ("hang", "timeout"),
        ("cut", "http_error"),
        ("garbage", "model_error"),
    ],
)
def test_a_provider_that_fails_leaves_leaves_unscored(
    server: ChatServer, behavior: Behavior, cause: str
) -> None:
    server.behaviors = ["ok"]
    server.forever = behavior
    config = {"attempt_timeout": 1} if behavior == "hang" else {}
    assert causes(judged(judge(server.url, config=config))) == ["scored", cause, cause]


def test_a_provider_that_stumbles_is_asked_again_by_the_engine(server: ChatServer) -> None:
    server.behaviors = ["429"]
    rows = judged(judge(server.url, config={"max_retries": 2}), leaves=1)
    assert causes(rows) == ["scored"]
    assert server.asked == 2


def test_after_a_permanent_failure_of_the_first_call_the_others_are_not_sent(
    server: ChatServer,
) -> None:
    """A provider that is down costs one call a unit, which the client sends three times."""
    server.forever = "500"
    rows = judged(judge(server.url), leaves=5)
    assert causes(rows) == ["http_error"] * 5
    assert server.asked == 3
    assert isinstance(rows[1].verdict, Unscored)
    assert rows[1].verdict.detail.startswith("Not asked, as the first call of the unit failed")


def test_a_server_that_is_not_there_is_an_http_error(loopback: None) -> None:
    with chat_server() as server:
        url = server.url
    rows = judged(judge(url), leaves=2)
    assert causes(rows) == ["http_error"] * 2
    assert isinstance(rows[0].verdict, Unscored) and url in rows[0].verdict.detail


def test_in_batch_mode_no_call_waits_for_the_first(server: ChatServer) -> None:
    server.delay = 0.3
    assert causes(judged(judge(server.url, batch=True))) == ["scored"] * 3
    assert server.most_at_once == 3


def test_without_evidence_leaves_that_have_no_score_get_the_cause(server: ChatServer) -> None:
    one = judge(server.url)
    rows = judged(one, leaves=2)
    known = {rows[0].key: rows[0]}
    (missing,) = mark_without_evidence(task(leaves=2), one, "No jail.", known=known)
    assert missing.key == rows[1].key
    assert missing.verdict == Unscored(cause="evidence_failed", detail="No jail.")
    assert pending_leaves(task(leaves=2), None, one, known=known) == 1


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        (ModelOutput(model="m"), "empty"),
        (ModelOutput.from_content("m", "too long", stop_reason="model_length"), "context_too_long"),
        (ModelOutput.from_content("m", "{}", error="overloaded"), "model_error"),
    ],
)
def test_an_output_that_is_no_reply_is_unscored(output: ModelOutput, cause: str) -> None:
    output.usage = ModelUsage()
    asked_model = get_model("mockllm/m", custom_outputs=[output] * 4, memoize=False)

    async def keep(rows: Sequence[VerdictRow]) -> None:
        pass

    one = Judge(asked_model, "m", JudgeOptions())
    rows = asyncio.run(judge_unit(task(leaves=2), evidence(), one, pictures=stored, keep=keep))
    assert causes(rows) == [cause] * 2
