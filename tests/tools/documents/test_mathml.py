import subprocess

import pytest

from gta_bench.content.needs import find_pandoc
from gta_bench.tools.documents.blocks import MathWord, read_formula


def words(formula: str) -> list[MathWord]:
    program = find_pandoc()
    if program is None:
        pytest.skip("no pandoc here")
    done = subprocess.run(
        [program, "-f", "markdown", "-t", "html", "--mathml"],
        input=f"${formula}$".encode(),
        capture_output=True,
        check=True,
    )
    return read_formula(done.stdout.decode(), source=formula)


def line(formula: str) -> str:
    """With `^` before what is raised and `_` before what is lowered."""
    marks = {1: "^", 0: "", -1: "_"}
    return "".join(marks[word.raised] + word.text for word in words(formula))


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("x", "x"),
        ("a + b = c", "a + b = c"),
        (r"x^2", "x^2"),
        (r"x_1", "x_1"),
        (r"x_1^2", "x_1^2"),
        (r"\frac13", "1/3"),
        (r"\frac{a+b}{2}", "(a + b)/2"),
        (r"\sqrt{x}", "√x"),
        (r"\sqrt{a+b}", "√(a + b)"),
        (r"\sqrt[3]{x}", "^3√x"),
        (r"\int_0^1 x\,dx", "∫_0^1 x dx"),
        (r"\sum_{i=1}^n i", "∑_i_=1^n i"),
        (r"\vec{v}", "v\u20d7"),
        (r"a \le b", "a ≤ b"),
        (r"\text{Gewinn} = 3", "Gewinn = 3"),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "(1  2; 3  4)"),
        (r"e^{x^2}", "e^x^^2"),
    ],
)
def test_a_formula_is_written_on_a_line(formula: str, expected: str) -> None:
    assert line(formula).replace("  ", " ") == expected.replace("  ", " ")


def test_letters_are_italic_and_numbers_are_not() -> None:
    assert [(word.text.strip(), word.italic) for word in words("x 2")] == [
        ("x", True),
        ("2", False),
    ]


@pytest.mark.parametrize("html", ["", "<span>$x</span>", "<math><mi>x</math>", "<math/>"])
def test_what_is_no_formula_is_its_source_or_nothing(html: str) -> None:
    assert read_formula(html, source="x") in ([MathWord("x")], [])
