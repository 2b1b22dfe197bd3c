import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.tools.logic.snippets import python_code

CODE = "def solution():\n    return 1\n"


@pytest.mark.parametrize(
    "command",
    [
        CODE,
        f"```python\n{CODE}```",
        f"```\n{CODE}```",
        f"```py\n{CODE}\n```",
        f"```Python3\n{CODE}```",
        f"``` python \r\n{CODE}```",
        f"Here it is:\n\n```python\n{CODE}```\n\nIt returns 1.",
        f"```python\n{CODE}",
        f"```python\nprint('first')\n```\nthen\n```python\n{CODE}```",
        "```python\n    def solution():\n        return 1\n```",
    ],
)
def test_the_code_is_found_however_it_is_wrapped(command: str) -> None:
    assert python_code(command).strip() == CODE.strip()


def test_of_blocks_without_solution_the_first_counts() -> None:
    assert python_code("```python\na = 1\n```\n```python\nb = 2\n```").strip() == "a = 1"


def test_code_fenced_on_one_line_is_found() -> None:
    assert python_code("```def solution(): return 1```") == "def solution(): return 1"


@given(st.text())
def test_any_text_gives_some_code(command: str) -> None:
    assert isinstance(python_code(command), str)
