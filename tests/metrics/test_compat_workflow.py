import json
from pathlib import Path
from typing import Any

import pytest

from gta_bench.metrics.compat.workflow import node_score, parse_reply, tree_root
from gta_bench.records.workflow import Checkpoint

VECTORS = json.loads(
    (Path(__file__).parent.parent / "parity" / "upstream_vectors.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("vector", VECTORS["judge_score_parse"], ids=lambda one: one["text"][:30])
def test_a_reply_is_parsed_as_upstream_parses_it(vector: dict[str, Any]) -> None:
    assert parse_reply(vector["text"])._asdict() == vector["result"]


@pytest.mark.parametrize("vector", VECTORS["workflow_tree"], ids=lambda one: str(one["tree"])[:30])
def test_a_tree_is_scored_as_upstream_scores_it(vector: dict[str, Any]) -> None:
    root = read_tree(vector["tree"])
    leaves = list(root.leaves())
    assert [leaf.requirements or "(none)" for leaf in leaves] == vector["leaf_order"]
    by_requirement = vector["leaf_scores_by_requirement"]
    scores = {leaf.id: by_requirement[leaf.requirements or "(none)"] for leaf in leaves}
    assert node_score(root, scores) == vector["root_score"]


def test_there_are_as_many_vectors_as_were_recorded() -> None:
    assert len(VECTORS["judge_score_parse"]) == 22
    assert len(VECTORS["workflow_tree"]) == 7


def test_a_task_without_checkpoints_is_one_leaf() -> None:
    assert node_score(tree_root(()), {"root": 4.0}) == 4.0


def read_tree(raw: Any) -> Checkpoint:
    """Upstream's root of a stored tree: a list, or a node without children, gets one above it."""
    if isinstance(raw, list):
        return tree_root(tuple(map(read_node, raw)))
    return read_node(raw) if "sub_tasks" in raw else tree_root((read_node(raw),))


def read_node(raw: dict[str, Any]) -> Checkpoint:
    known = {key: raw[key] for key in ("requirements", "weight") if key in raw}
    children = tuple(map(read_node, raw.get("sub_tasks") or ()))
    return Checkpoint.model_validate({"id": raw.get("id", "root"), **known, "children": children})
