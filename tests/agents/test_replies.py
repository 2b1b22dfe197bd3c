import pytest

from gta_bench.agents.replies import without_thinking


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("It is 7.", "It is 7."),
        ("<think>8?</think>It is 7.", "It is 7."),
        (" \n<think>8?</think>It is 7.", "It is 7."),
        ("<think>8?", ""),
        ("<think>8?</think><think>9?", ""),
        # DeepSeek-R1, QwQ and Qwen3-Thinking: the opening tag is the end of the prompt.
        ("It may be 8.</think>It is 7.", "It is 7."),
        ("It may be 8.\n</think>", ""),
        ("Write `<think>` and `</think>` around it.", "Write `<think>` and `</think>` around it."),
    ],
)
def test_reasoning_is_no_part_of_the_answer(text: str, answer: str) -> None:
    assert without_thinking(text) == answer
