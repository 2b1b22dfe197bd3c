from time import process_time

import pytest

from gta_bench.agents.text_calls import ends_with_call
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
        # JSON that is none
        '{"name": "OCR", "arguments": {"image": "a"}',
        '{"name": "OCR", "arguments": {"image": "a",},}',
        '{"name": "OCR", "arguments": {"image": "a"}}}',
        "{'name': 'OCR', 'arguments': {'image': 'a'}}",
        '{"name": "GoogleSearch", "arguments": {"query": "dark\nbeer"}}',
        # other keys
        '{"function_name": "OCR", "arguments": {}}',
        '{"function_call": {"name": "OCR", "arguments": "{}"}}',
        '{"tool_call": {"name": "OCR", "arguments": {}}}',
        '{"tool_uses": [{"recipient_name": "functions.OCR", "parameters": {"image": "a"}}]}',
        '{"OCR": {"image": "a"}}',
        '{"tool": "OCR", "image": "a"}',
        # the name before its arguments
        'OCR{"image": "a"}',
        'OCR[ARGS]{"image": "a"}',
        'functions.OCR:0{"image": "a"}',
        'function OCR\n```json\n{"image": "a"}\n```',
        'commentary to=functions.OCR json{"image": "a"}',
        # ReAct
        'Thought: I read it.\nAction: OCR\nAction Input: {"image": "a"}',
        "Action: GoogleSearch\nAction Input: dark beer",
        'Action: OCR(image="a")',
        # Python
        'OCR("inputs/menu.jpg")',
        '```python\nOCR(image="a")\n```',
        'I read it.\n```python\nprint(OCR(image="a"))\n```',
        'functions.OCR({"image": "a"})',
        '[OCR(image="a"), DrawBox(image="a", bbox="b")]',
        # marks
        '<\uff5cDSML\uff5cinvoke name="OCR">\n</\uff5cDSML\uff5cinvoke>',
        '<|channel|>commentary to=functions.OCR <|constrain|>json<|message|>{"image": "a"}<|call|>',
        '<|start|>assistant<|channel|>analysis to=functions.OCR<|message|>{"image": "a"}',
        "<start_function_call>call:OCR{image:<escape>a<escape>}<end_function_call>",
        "OCR\n<arg_key>image</arg_key><arg_value>a</arg_value>",
        "<OCR><image>a</image></OCR>",
        '<TOOLCALL>[OCR(image="a")]</TOOLCALL>',
        '<tool_call>\n{"name"',
    ],
)
def test_calls_in_the_forms_that_models_write_are_found(text: str) -> None:
    assert ends_with_call(text, TOOLS)


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
        # answers that mention a call
        'I called {"name": "OCR", "input": "a"} and read 7. The answer is 7.',
        "I called {'name': 'OCR', 'input': 'a'} and read 7. The answer is '7'.",
        '{"tool": "OCR", "input": "a", "result": "7"}',
        '{"tool": "OCR", "input": "a", "output": "7"}',
        '{"action": "OCR", "args": [], "answer": 7}',
        '{"steps": [{"tool": "OCR", "input": "a", "observation": "7"}], "answer": "7"}',
        'OCR(image="a") = 7',
        'I used OCR(image="a"), and it costs 7.',
        "DrawBox (done)",
        "DrawBox(done)",
        'Action: OCR\nAction Input: {"image": "a"}\nObservation: 7\nFinal Answer: It costs 7.',
        "Action: GoogleSearch\nAction Input: beer\nIt costs 7.",
        "Look for <tool_call> tags. It costs 7.",
        "The tags are <tool_call> and </tool_call>.",
        '<tool_call>{"name": "OCR", "arguments": {}}</tool_call> gave "7".',
        '<tool_call>{"name": "OCR", "arguments": {}} gave "7".',
        "The file has a <function=x> tag.",
        '<invoke name="deploy"> is what ant runs.',
    ],
)
def test_answers_are_answers(text: str) -> None:
    assert not ends_with_call(text, TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 200_000,
        "<tool_call>" * 20_000 + " x",
        "\n" * 200_000 + "x",
        "OCR(" * 50_000,
        "OCR" + " " * 200_000 + "x {}",
        '{"name": "OCR", "args": ' * 10_000,
        "OCR.a" + ".a" * 50_000,
    ],
    ids=range(7),
)
def test_a_page_of_one_thing_is_read_at_once(text: str) -> None:
    begun = process_time()
    assert not ends_with_call(text, TOOLS)
    assert process_time() - begun < 5


def test_without_tools_nothing_is_a_call_but_by_its_mark() -> None:
    assert not ends_with_call('OCR(image="a")', ())
    assert ends_with_call('<tool_call>{"name": "OCR", "arguments": {}}</tool_call>', ())
