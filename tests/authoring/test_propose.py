"""Replies of a model that proposes leaves: only plain ones are used."""

import json
from typing import Any

import pytest

from gta_bench.authoring.propose import read_proposal

LEAF: dict[str, Any] = {"id": "sums", "says": "The page has the sums."}


def read(*leaves: dict[str, Any]) -> object:
    return read_proposal(json.dumps({"leaves": [*leaves]}), ("outputs/page.html",))


@pytest.mark.parametrize(
    ("leaves", "said"),
    [
        ([], "leaves: Tuple should have at least 1 item"),
        ([LEAF, LEAF], "two leaves have the same id."),
        ([{"id": "a"}], "a: `says` is missing."),
        ([{**LEAF, "says": "TODO (author): think"}], "sums: `says` is missing."),
        ([{**LEAF, "needs": ["x"]}], "sums: only id, says, weight and checks are allowed."),
        ([{**LEAF, "run": "x"}], "leaves.0.run: Extra inputs are not permitted."),
        (
            [{**LEAF, "checks": [{"is": "python", "run": "checks/x.py:f"}]}],
            "sums: the check 'python' is not allowed.",
        ),
        (
            [{**LEAF, "checks": [{"is": "file.exists", "file": "../../etc/passwd"}]}],
            "sums: no file '../../etc/passwd' was delivered.",
        ),
        (
            [{**LEAF, "checks": [{"is": "acme.check", "x": 1}]}],
            "sums: the check 'acme.check' is not allowed.",
        ),
    ],
)
def test_a_proposal_that_cannot_be_used_says_why(leaves: list[dict[str, Any]], said: str) -> None:
    found = read(*leaves)
    assert isinstance(found, str) and found.startswith(said)


def test_a_plain_proposal_is_used() -> None:
    check = {"is": "text.contains", "file": "page.html", "all": ["12"]}
    found = read({**LEAF, "checks": [check], "weight": 2})
    assert isinstance(found, tuple) and found[0].weight == 2 and found[0].checks
