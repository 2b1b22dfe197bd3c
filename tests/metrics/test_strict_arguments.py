"""Arguments compared exactly, and by the types that the task's own tool declares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from gta_bench.metrics.similarity import exact_or_half
from gta_bench.metrics.strict.arguments import compare_code, same_arguments, score_arguments
from gta_bench.records.tools import Parameter, ParameterType, ToolSpec


def tool(name: str, **types: ParameterType) -> ToolSpec:
    inputs = tuple(Parameter(name=key, type=kind) for key, kind in types.items())
    return ToolSpec(name=name, inputs=inputs)


SEARCH = ToolSpec(
    name="GoogleSearch",
    inputs=(
        Parameter(name="query", type="text"),
        Parameter(name="k", type="int", optional=True, default=10),
    ),
)


def score(predicted: JsonValue, gold: JsonValue, spec: ToolSpec | None) -> float:
    return score_arguments(predicted, gold, spec, similarity=exact_or_half)


def one(kind: ParameterType, predicted: JsonValue, gold: JsonValue, name: str = "x") -> float:
    return score({name: predicted}, {name: gold}, tool("Any", **{name: kind}))


@pytest.mark.parametrize(
    ("predicted", "gold", "same"),
    [
        ({"a": 1, "b": "x"}, {"b": "x", "a": 1}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": True}, {"a": 1}, False),
        ({"a": 0}, {"a": False}, False),
        ({"a": True}, {"a": True}, True),
        ({"a": [1, {"b": True}]}, {"a": [1, {"b": True}]}, True),
        ({"a": [1, {"b": True}]}, {"a": [1, {"b": 1}]}, False),
        ({"a": [1]}, {"a": [1, 2]}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": None}, {}, False),
        ("{}", {}, False),
        ([], {}, False),
        (None, None, True),
    ],
)
def test_exact_equality_is_that_of_json_with_true_apart_from_1(
    predicted: JsonValue, gold: JsonValue, same: bool
) -> None:
    assert same_arguments(predicted, gold) is same


@pytest.mark.parametrize(
    ("kind", "predicted", "gold", "value"),
    [
        ("int", 4, 4, 1.0),
        ("int", "4", 4, 1.0),
        ("int", 4.0, 4, 1.0),
        ("int", 5, 4, 0.0),
        ("int", True, 1, 0.0),
        ("int", "four", 4, 0.0),
        ("int", [4], 4, 0.0),
        ("float", 0.1, "0.10", 1.0),
        ("float", "nan", "nan", 1.0),
        ("float", "1e999", "2e999", 0.0),
        ("bool", True, True, 1.0),
        ("bool", "False", False, 1.0),
        ("bool", " true ", True, 1.0),
        ("bool", 1, True, 0.0),
        ("bool", "yes", True, 0.0),
        ("image", "./inputs/a.jpg", "inputs/a.jpg", 1.0),
        ("image", "inputs//x/../a.jpg", "inputs/a.jpg", 1.0),
        ("image", "inputs\\a.jpg", "inputs/a.jpg", 1.0),
        ("image", "../inputs/a.jpg", "inputs/a.jpg", 0.0),
        ("image", "/inputs/a.jpg", "inputs/a.jpg", 0.0),
        ("image", "inputs/b.jpg", "inputs/a.jpg", 0.0),
        ("file", 3, "inputs/a.jpg", 0.0),
        ("image", "outputs/plot_1.png", "outputs/dummy_generated_image.jpg", 1.0),
        ("image", "inputs/plot_1.png", "outputs/dummy_generated_image.jpg", 0.0),
        ("text", "a dog", "a dog", 1.0),
        ("text", "a cat", "a dog", 0.5),
        ("text", "", "a dog", 0.0),
        ("text", " ", "a dog", 0.0),
        ("text", 5, "5", 1.0),
        ("text", {"b": 1, "a": 2}, '{"a": 2, "b": 1}', 1.0),
    ],
)
def test_a_value_is_compared_by_its_declared_type(
    kind: ParameterType, predicted: JsonValue, gold: JsonValue, value: float
) -> None:
    assert one(kind, predicted, gold) == value


@pytest.mark.parametrize("name", ["bbox", "position"])
@pytest.mark.parametrize(
    ("predicted", "gold", "value"),
    [
        ("(1, 2, 3, 4)", "(1,2,3,4)", 1.0),
        ("1 2 3 4", "(1, 2, 3, 4)", 1.0),
        ("[1.0; 2; 3; 4]", "(1, 2, 3, 4)", 1.0),
        ([1, 2, 3, 4], "(1, 2, 3, 4)", 1.0),
        (["a", 2, 3, 4], "(1, 2, 3, 4)", 0.0),
        ("(1, 2, 3, 5)", "(1, 2, 3, 4)", 0.0),
        ("(1, 2, 3)", "(1, 2, 3, 4)", 0.0),
        ("left", "(1, 2)", 0.0),
        ("--", "--", 1.0),
        (" LM", "lm", 1.0),
        ("mm", "lm", 0.0),
    ],
)
def test_a_place_is_compared_by_its_numbers_or_its_word(
    name: str, predicted: JsonValue, gold: JsonValue, value: float
) -> None:
    assert one("text", predicted, gold, name) == value


def test_the_mean_is_over_the_arguments_of_both_sides() -> None:
    spec = tool("Any", a="int", b="int")
    assert score({"a": 1, "b": 2}, {"a": 1, "b": 2}, spec) == 1.0
    assert score({"a": 1}, {"a": 1, "b": 2}, spec) == 0.5
    assert score({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2}, spec) == pytest.approx(2 / 3)
    assert score({}, {"a": 1}, spec) == 0.0
    assert score({}, {}, spec) == 1.0


def test_an_argument_left_out_counts_as_the_tools_default() -> None:
    gold: JsonValue = {"query": "cats", "k": 10}
    assert score({"query": "cats"}, gold, SEARCH) == 1.0
    assert score({"query": "cats", "k": 10}, {"query": "cats"}, SEARCH) == 1.0
    assert score({"query": "cats"}, {"query": "cats", "k": 4}, SEARCH) == 0.5


def test_null_is_an_argument_left_out() -> None:
    assert score({"a": None}, {"a": 1}, None) == 0.0
    assert score({"a": None}, {}, None) == 1.0


@pytest.mark.parametrize(
    ("predicted", "gold", "value"),
    [("4", 4, 1.0), ("false", False, 1.0), ("a cat", "a dog", 0.5), (1, True, 0.0)],
)
def test_an_undeclared_argument_is_compared_by_the_references_type(
    predicted: JsonValue, gold: JsonValue, value: float
) -> None:
    assert score({"x": predicted}, {"x": gold}, None) == value
    assert score({"x": predicted}, {"x": gold}, tool("Any")) == value


def test_a_raw_text_is_not_the_arguments() -> None:
    assert score('{"a": 1}', {"a": 1}, None) == 0.0


@pytest.mark.parametrize(
    ("name", "argument"),
    [("Plot", "command"), ("Solver", "command"), ("Calculator", "expression")],
)
def test_code_is_compared_by_its_syntax_tree(name: str, argument: str) -> None:
    spec = ToolSpec(name=name, inputs=(Parameter(name=argument, type="text"),))
    assert score({argument: "1+ 2  # sum"}, {argument: "1 + 2"}, spec) == 1.0
    assert 0 < score({argument: "1 - 2"}, {argument: "1 + 2"}, spec) < 1
    assert score({argument: 3}, {argument: "3"}, spec) == 1.0


def test_the_same_words_are_no_code_for_another_tool() -> None:
    assert score({"command": "1+2"}, {"command": "1 + 2"}, tool("Echo", command="text")) == 0.5


@pytest.mark.parametrize(
    ("predicted", "gold", "value"),
    [
        ("def f():\n    return 'a'", 'def f():\n\n  return "a"\n', 1.0),
        ("```python\nx = 1\n```", "x=1", 1.0),
        ("text\n```\nx = 1\n```\nmore", "```py\nx = 1\n```", 1.0),
        ("x = (", "x = 1", 0.0),
        ("x = 1", "x = (", 0.5),
        ("x = (", "x = (", 1.0),
        ("x = '\0'", "x = 1", 0.0),
        ("(" * 10_000, "x = 1", 0.0),
        ("+".join(["1"] * 5_000), "x = 1", 0.0),
        ("1 is 1", "1 is 1", 1.0),
        ("", "x = 1", 0.0),
    ],
)
def test_layout_quotes_and_fences_do_not_change_code(
    predicted: str, gold: str, value: float
) -> None:
    assert compare_code(predicted, gold, similarity=exact_or_half) == value


def test_code_that_shares_more_is_nearer() -> None:
    gold = "x = [1, 2, 3]\nplot(x)"
    near = compare_code("x = [1, 2, 4]\nplot(x)", gold, similarity=exact_or_half)
    far = compare_code("print('hello')", gold, similarity=exact_or_half)
    assert 0 < far < near < 1


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
mappings = st.dictionaries(
    st.sampled_from(["command", "expression", "bbox", "image", "k", "top1", "text", "other"]),
    values | st.lists(values, max_size=3),
    max_size=4,
)
SPECS = [
    tool("Plot", command="text", image="image", k="int", top1="bool", text="text", bbox="text"),
    tool("Calculator", expression="text", k="float"),
    None,
]


@given(mappings | values, mappings, st.sampled_from(SPECS))
def test_any_arguments_get_a_score_between_0_and_1(
    predicted: JsonValue, gold: JsonValue, spec: ToolSpec | None
) -> None:
    assert 0.0 <= score(predicted, gold, spec) <= 1.0


@given(
    st.dictionaries(st.sampled_from(["command", "bbox", "image", "k", "text"]), st.text()),
    st.sampled_from(SPECS),
)
def test_the_reference_itself_is_the_best_prediction(
    gold: dict[str, JsonValue], spec: ToolSpec | None
) -> None:
    assert score(gold, gold, spec) == 1.0
