"""How alike two pieces of Python are, by their syntax trees."""

import ast
import re
import warnings
from collections import Counter

from gta_bench.metrics.similarity import Similarity

FENCED = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)```", re.DOTALL)


def compare_code(predicted: str, gold: str, *, similarity: Similarity) -> float:
    """The share of equal subtrees (Dice), 1 for equal trees: layout and comments do not count.

    Where the reference itself is not Python the texts are compared; a prediction that is not
    Python then gains nothing from being broken.
    """
    gold_tree = _subtrees(gold)
    if gold_tree is None:
        return 1.0 if predicted == gold else similarity(predicted, gold)
    tree = _subtrees(predicted)
    if tree is None:
        return 0.0
    return 2 * (tree & gold_tree).total() / (tree.total() + gold_tree.total())


def _subtrees(text: str) -> Counter[str] | None:
    """The dump of every node below, and with, the module; None where the text is not Python."""
    fenced = FENCED.search(text)
    code = (fenced.group(1) if fenced else text).strip()
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(code)
        return Counter(ast.dump(node) for node in ast.walk(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
