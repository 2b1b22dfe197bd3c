import pytest

from gta_bench.agents.text_calls import holds_call
from tests.agents.builders import TOOLS


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "OCR", "arguments": {"image": "inputs/menu.jpg"}}',
        '```json\n{"name": "ocr", "arguments": {}}\n```',
        'I will read it.\n{"name": "OCR", "parameters": {"image": "a"}}',
        '{"function": {"name": "OCR", "arguments": "{}"}}',
        '{"tool_calls": [{"function": {"name": "OCR", "arguments": {}}}]}',
        '[{"name": "OCR", "arguments": {}}]',
        '{"action": "GoogleSearch", "action_input": {"query": "beer"}}',
        '<tool_call>\n{"name": "Unheard", "arguments": {}}\n</tool_call>',
        '[TOOL_CALLS] [{"name": "OCR", "arguments": {}}]',
        '<|python_tag|>OCR.call(image="a")',
        "<function=OCR><parameter=image>a</parameter></function>",
        '[OCR(image="inputs/menu.jpg")]',
        'GoogleSearch(query="beer (dark)", k=3)',
        "<\uff5ctool\u2581calls\u2581begin\uff5c>",
    ],
)
def test_calls_in_the_forms_that_models_write_are_found(text: str) -> None:
    assert holds_call(text, TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It costs 7.",
        "I used OCR (twice) and GoogleSearch.",
        "OCR (Optical Character Recognition) reads text.",
        '{"name": "Anna", "arguments": "none"}',
        '{"name": "OCR", "version": 2}',
        '{"price": 7, "currency": "EUR"}',
        "{ { { {",
        "The function f(x) = 2x has no zero but 0.",
    ],
)
def test_answers_are_answers(text: str) -> None:
    assert not holds_call(text, TOOLS)


def test_a_page_of_braces_is_read_at_once() -> None:
    assert not holds_call("{" * 200_000, TOOLS)
