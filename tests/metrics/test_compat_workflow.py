import json
from pathlib import Path
from typing import Any

import pytest

from gta_bench.metrics.compat.workflow import node_score, parse_reply, read_tree, tree_root

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


@pytest.mark.parametrize("raw", ["tree", 7, None])
def test_what_is_no_tree_is_refused(raw: Any) -> None:
    with pytest.raises(ValueError, match="A tree is a list or an object"):
        read_tree(raw)


def test_what_is_no_checkpoint_is_refused() -> None:
    with pytest.raises(ValueError, match="A checkpoint is an object, not str"):
        read_tree(["cp1"])


def test_a_tasks_checkpoints_get_the_root_of_a_list() -> None:
    assert tree_root(read_tree([{"id": "a"}]).children) == read_tree([{"id": "a"}])
