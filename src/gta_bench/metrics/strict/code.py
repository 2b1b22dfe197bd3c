"""How alike two pieces of Python are, by their syntax trees."""

import ast
import re
import warnings
from collections import Counter

from gta_bench.metrics.similarity import Similarity

# A node: its kind, the numbers of the nodes below it, and its own values as texts.
Shape = tuple[int | str, ...]

FENCED = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)```", re.DOTALL)


def compare_code(predicted: str, gold: str, *, similarity: Similarity) -> float:
    """The share of equal subtrees (Dice), 1 for equal trees: layout and comments do not count.

    Where the reference itself is not Python the texts are compared; a prediction that is not
    Python then gains nothing from being broken.
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
    """How often each subtree occurs, by its number; None where the text is not Python."""
    fenced = FENCED.search(text)
    code = (fenced.group(1) if fenced else text).strip()
    found: Counter[int] = Counter()
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(code)
        _number(tree, known, found)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return found


def _number(part: object, known: dict[Shape, int], found: Counter[int]) -> int | str:
    """Equal subtrees get one number, from the leaves up: linear in the size of the code."""
    if isinstance(part, list):
        return str([_number(item, known, found) for item in part])
    if not isinstance(part, ast.AST):
        return repr(part)
    children = (_number(value, known, found) for _, value in ast.iter_fields(part))
    number = known.setdefault((type(part).__name__, *children), len(known))
    found[number] += 1
    return number
