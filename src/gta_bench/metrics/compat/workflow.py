"""GTA-Workflow as the published evaluator scores it: its reply parser and its weighted tree."""

import json
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from pydantic import JsonValue

from gta_bench.metrics.counts import running_sum
from gta_bench.records.workflow import Checkpoint

ROOT: Final = "root"
FALLBACK: Final = "regex fallback"
FAILED: Final = "parse failed"
NUMBER: Final = re.compile(r"\d+(\.\d+)?")


class ParsedReply(NamedTuple):
    """What upstream keeps of a judge's reply."""

    score: float
    analysis: str


def parse_reply(text: str) -> ParsedReply:
    """The score of a reply by upstream's rule: JSON, else the first number anywhere, else 0.

    Kept for parity: NaN becomes 10 because every comparison with it is false, a missing score 0.
    """
    try:
        reply = json.loads(text)
        score = float(reply.get("score", 0))
        return ParsedReply(max(0, min(10, score)), str(reply.get("analysis", "")))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        found = NUMBER.search(text)
    if found is None:
        return ParsedReply(0, FAILED)
    return ParsedReply(min(10, float(found.group())), FALLBACK)


def read_tree(raw: JsonValue) -> Checkpoint:
    """Upstream's root of a stored tree: a list, or a node without children, gets one above it."""
    if isinstance(raw, list):
        return Checkpoint(id=ROOT, children=tuple(_node(item) for item in raw))
    if isinstance(raw, dict):
        return _node(raw) if "sub_tasks" in raw else Checkpoint(id=ROOT, children=(_node(raw),))
    raise ValueError(f"A tree is a list or an object, not {type(raw).__name__}.")


def tree_root(checkpoints: tuple[Checkpoint, ...]) -> Checkpoint:
    """The root that upstream puts above a task's checkpoints; alone, it is itself a leaf."""
    return Checkpoint(id=ROOT, children=checkpoints)


def node_score(node: Checkpoint, leaves: Mapping[str, float]) -> float:
    """The weighted mean of the children, 0 where the weights are all 0; a leaf's own score."""
    if not node.children:
        return leaves[node.id]
    weights = running_sum(child.weight for child in node.children)
    if weights == 0:
        return 0
    weighted = (child.weight * node_score(child, leaves) for child in node.children)
    return running_sum(weighted) / weights


def _node(raw: JsonValue) -> Checkpoint:
    if not isinstance(raw, dict):
        raise ValueError(f"A checkpoint is an object, not {type(raw).__name__}.")
    children = raw.get("sub_tasks") or []
    assert isinstance(children, list)
    return Checkpoint.model_validate(
        {
            **{key: raw[key] for key in ("id", "requirements", "weight") if key in raw},
            "id": raw.get("id", ROOT),
            "children": tuple(_node(child) for child in children),
        }
    )
