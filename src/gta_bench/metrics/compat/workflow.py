"""GTA-Workflow as the published evaluator scores it: reply parser and weighted tree."""

import json
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from gta_bench.metrics.counts import running_sum
from gta_bench.records.workflow import Checkpoint

ROOT: Final = "root"
FALLBACK: Final = "regex fallback"
FAILED: Final = "parse failed"


class ParsedReply(NamedTuple):
    """The parts of a judge's reply that upstream keeps."""

    score: float
    analysis: str


def parse_reply(text: str) -> ParsedReply:
    """Read a reply as upstream does: as JSON, else the first number in the text, else 0.

    Kept for parity: NaN becomes 10, because every comparison with it is false, and a missing score
    becomes 0.
    """
    try:
        reply = json.loads(text)
        score = float(reply.get("score", 0))
        return ParsedReply(max(0, min(10, score)), str(reply.get("analysis", "")))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        found = re.search(r"\d+(\.\d+)?", text)
    if found is None:
        return ParsedReply(0, FAILED)
    return ParsedReply(min(10, float(found.group())), FALLBACK)


def tree_root(checkpoints: tuple[Checkpoint, ...]) -> Checkpoint:
    """Return the root that upstream adds above a task's checkpoints; without any, it is a leaf."""
    return Checkpoint(id=ROOT, children=checkpoints)


def node_score(node: Checkpoint, leaves: Mapping[str, float]) -> float:
    """Return a leaf's score, or the weighted mean of the children (0 if all weights are 0)."""
    if not node.children:
        return leaves[node.id]
    weights = running_sum(child.weight for child in node.children)
    if weights == 0:
        return 0
    weighted = (child.weight * node_score(child, leaves) for child in node.children)
    return running_sum(weighted) / weights
