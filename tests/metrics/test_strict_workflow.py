import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.metrics.compat import workflow as compat
from gta_bench.metrics.strict.workflow import root_score, succeeds
from gta_bench.records.workflow import Checkpoint

TOP = st.integers(0, 100).map(lambda tenths: tenths / 10)
WEIGHT = st.integers(1, 50).map(lambda tenths: tenths / 10)


@st.composite
def trees(draw: st.DrawFn) -> tuple[tuple[Checkpoint, ...], dict[str, float]]:
    """Checkpoints two levels deep, each weighing something, with a score for every leaf."""
    nodes = []
    for number in range(draw(st.integers(1, 4))):
        children = tuple(
            Checkpoint(id=f"{number}-{child}", weight=draw(WEIGHT))
            for child in range(draw(st.integers(0, 3)))
        )
        nodes.append(Checkpoint(id=str(number), weight=draw(WEIGHT), children=children))
    leaves = [leaf.id for node in nodes for leaf in node.leaves()]
    return tuple(nodes), {leaf: draw(TOP) for leaf in leaves}


@given(trees())
def test_a_root_lies_between_the_smallest_and_the_largest_leaf(
    tree: tuple[tuple[Checkpoint, ...], dict[str, float]],
) -> None:
    nodes, scores = tree
    root = root_score(nodes, scores)
    assert root is not None
    assert min(scores.values()) - 1e-9 <= root <= max(scores.values()) + 1e-9


@given(trees(), st.sampled_from([0.5, 2.0, 1024.0]))
def test_scaling_all_weights_changes_nothing(
    tree: tuple[tuple[Checkpoint, ...], dict[str, float]], factor: float
) -> None:
    nodes, scores = tree
    scaled = tuple(
        node.model_copy(
            update={
                "weight": node.weight * factor,
                "children": tuple(
                    child.model_copy(update={"weight": child.weight * factor})
                    for child in node.children
                ),
            }
        )
        for node in nodes
    )
    assert root_score(scaled, scores) == pytest.approx(root_score(nodes, scores))


@given(trees())
def test_where_everything_weighs_and_is_scored_both_scorings_agree_to_the_last_digit(
    tree: tuple[tuple[Checkpoint, ...], dict[str, float]],
) -> None:
    nodes, scores = tree
    assert root_score(nodes, scores) == compat.node_score(compat.tree_root(nodes), scores)


@given(trees(), st.data())
def test_one_leaf_without_a_score_leaves_the_task_without_one(
    tree: tuple[tuple[Checkpoint, ...], dict[str, float]], data: st.DataObject
) -> None:
    nodes, scores = tree
    missing = data.draw(st.sampled_from(sorted(scores)))
    del scores[missing]
    assert root_score(nodes, scores) is None


def test_where_nothing_weighs_there_is_nothing_to_measure() -> None:
    node = Checkpoint(id="a", weight=0)
    assert root_score((node,), {"a": 10}) is None
    assert compat.node_score(compat.tree_root((node,)), {"a": 10}) == 0


def test_a_task_without_checkpoints_has_no_root() -> None:
    assert root_score((), {}) is None


def test_a_mean_of_sevens_reaches_seven() -> None:
    nodes = tuple(Checkpoint(id=str(number), weight=0.1) for number in range(3))
    root = root_score(nodes, {"0": 7, "1": 7, "2": 7})
    assert root is not None
    assert succeeds(root, 7)
    assert not succeeds(6.999, 7)


def test_a_root_of_tens_is_ten_whatever_the_weights() -> None:
    leaves = tuple(Checkpoint(id=str(n), weight=weight) for n, weight in enumerate((0.2, 0.7, 0.1)))
    assert root_score(leaves, {str(n): 10.0 for n in range(3)}) == 10.0
