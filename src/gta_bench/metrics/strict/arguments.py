"""Compare the arguments of a call with the reference: exactly, and by the tool's types."""

import ast
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

from pydantic import JsonValue

from gta_bench.metrics.counts import total
from gta_bench.metrics.similarity import SimilarityFunction
from gta_bench.records.atomic import PLACEHOLDER_IMAGE
from gta_bench.records.tools import Parameter, ToolSpec

# A syntax node: its type, the numbers of its child nodes, and its own values as text.
Shape = tuple[int | str, ...]

FENCED = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)```", re.DOTALL)


def compare_code(predicted: str, gold: str, *, similarity: SimilarityFunction) -> float:
    """Return the share of equal subtrees (Dice), so that layout and comments do not count.

    If the reference is not Python, the texts are compared. A prediction that is not Python gets 0
    if the reference is.
    """
    known: dict[Shape, int] = {}
    gold_tree = _subtrees(gold, known)
    if gold_tree is None:
        return 1.0 if predicted == gold else similarity(predicted, gold)
    tree = _subtrees(predicted, known)
    if tree is None:
        return 0.0
    return 2 * (tree & gold_tree).total() / (tree.total() + gold_tree.total())


def _subtrees(text: str, known: dict[Shape, int]) -> Counter[int] | None:
    """Count the subtrees by number; None if the text is not Python."""
    fenced = FENCED.search(text)
    code = (fenced.group(1) if fenced else text).strip()
    found: Counter[int] = Counter()
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(code)
        _literal_number(tree, known, found)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return found


def _literal_number(part: object, known: dict[Shape, int], found: Counter[int]) -> int | str:
    """Number a syntax tree bottom up, with the same number for equal subtrees, in linear time."""
    if isinstance(part, list):
        return str([_literal_number(item, known, found) for item in part])
    if not isinstance(part, ast.AST):
        return repr(part)
    children = (_literal_number(value, known, found) for _, value in ast.iter_fields(part))
    number = known.setdefault((type(part).__name__, *children), len(known))
    found[number] += 1
    return number


_Comparison = Callable[[JsonValue, JsonValue, SimilarityFunction], float]

CODE: Final = frozenset({("Plot", "command"), ("Solver", "command"), ("Calculator", "expression")})
COORDINATES: Final = frozenset({"bbox", "position"})
COORDINATE_TEXT = re.compile(r"[\[(]?\s*(?P<numbers>[-+.0-9eE]+(?:[\s,;]+[-+.0-9eE]+)*)\s*[\])]?")
TRUTH: Final[Mapping[str, bool]] = {"true": True, "false": False}


def same_arguments(predicted: JsonValue, gold: JsonValue) -> bool:
    """Return whether two values are equal as JSON: 1 equals 1.0, but true does not equal 1."""
    if isinstance(predicted, dict) and isinstance(gold, dict):
        return predicted.keys() == gold.keys() and all(
            same_arguments(predicted[key], gold[key]) for key in gold
        )
    if isinstance(predicted, list) and isinstance(gold, list):
        return len(predicted) == len(gold) and all(map(same_arguments, predicted, gold))
    return isinstance(predicted, bool) == isinstance(gold, bool) and predicted == gold


def score_arguments(
    predicted: JsonValue, gold: JsonValue, tool: ToolSpec | None, *, similarity: SimilarityFunction
) -> float:
    """Return a score from 0 to 1: the mean over all arguments of either side.

    A missing argument counts as the tool's default, and scores 0 if there is none.
    """
    if not isinstance(predicted, dict) or not isinstance(gold, dict):
        return float(same_arguments(predicted, gold))
    names = sorted(predicted.keys() | gold.keys())
    scores = []
    for name in names:
        parameter = None if tool is None else tool.input(name)
        default = None if parameter is None else parameter.default
        left, right = predicted.get(name, default), gold.get(name, default)
        if left is None or right is None:
            scores.append(float(left is right))
        else:
            compare = _comparison(None if tool is None else tool.name, name, parameter, right)
            scores.append(compare(left, right, similarity))
    return total(scores) / len(scores) if scores else 1.0


def _comparison(
    tool: str | None, name: str, parameter: Parameter | None, gold: JsonValue
) -> _Comparison:
    """Choose a comparison by the declared type, or by the type of the reference if undeclared."""
    if (tool, name) in CODE:
        return _code
    if name in COORDINATES:
        return _coordinates
    if parameter is not None:
        return BY_TYPE.get(parameter.type, _text)
    if isinstance(gold, bool):
        return _truth
    return _number if isinstance(gold, int | float) else _text


def _number(predicted: JsonValue, gold: JsonValue, similarity: SimilarityFunction) -> float:
    left, right = _as_number(predicted), _as_number(gold)
    if left is None or right is None:
        return float(same_arguments(predicted, gold))
    return float(left == right)


def _truth(predicted: JsonValue, gold: JsonValue, similarity: SimilarityFunction) -> float:
    left, right = (
        TRUTH.get(one.strip().lower(), one) if isinstance(one, str) else one
        for one in (predicted, gold)
    )
    return float(same_arguments(left, right))


def _path(predicted: JsonValue, gold: JsonValue, similarity: SimilarityFunction) -> float:
    left, right = _as_path(predicted), _as_path(gold)
    # The reference uses one name for all images made by tools; a real run uses its own names.
    if right == PLACEHOLDER_IMAGE:
        return float(left.startswith("outputs/"))
    return float(left == right)


def _coordinates(predicted: JsonValue, gold: JsonValue, similarity: SimilarityFunction) -> float:
    left, right = _as_coordinates(predicted), _as_coordinates(gold)
    if left is None or right is None:
        return float(_as_text(predicted).strip().casefold() == _as_text(gold).strip().casefold())
    return float(left == right)


def _code(predicted: JsonValue, gold: JsonValue, similarity: SimilarityFunction) -> float:
    return compare_code(_as_text(predicted), _as_text(gold), similarity=similarity)


def _text(predicted: JsonValue, gold: JsonValue, similarity: SimilarityFunction) -> float:
    left, right = _as_text(predicted), _as_text(gold)
    if left == right:
        return 1.0
    return similarity(left, right) if left.strip() else 0.0


def _as_number(value: JsonValue) -> Decimal | None:
    """Return a finite number, also if it is given as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(value) if isinstance(value, int) else Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _as_path(value: JsonValue) -> str:
    """Normalize a path: drop `.` and empty parts, and resolve `..`."""
    text = _as_text(value).strip().replace("\\", "/")
    parts: list[str] = []
    for part in text.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return ("/" if text.startswith("/") else "") + "/".join(parts)


def _as_coordinates(value: JsonValue) -> tuple[Decimal, ...] | None:
    items: list[JsonValue]
    if isinstance(value, list):
        items = value
    else:
        match = COORDINATE_TEXT.fullmatch(_as_text(value).strip())
        if match is None:
            return None
        items = list(re.split(r"[\s,;]+", match["numbers"]))
    numbers = [number for item in items if (number := _as_number(item)) is not None]
    return tuple(numbers) if len(numbers) == len(items) else None


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


BY_TYPE: Final[Mapping[str, _Comparison]] = {
    "bool": _truth,
    "int": _number,
    "float": _number,
    "image": _path,
    "audio": _path,
    "video": _path,
    "file": _path,
}
