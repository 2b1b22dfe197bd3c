"""What harnesses are told, as it is."""

from gta_bench.harnesses.prompts import digests, render


def test_a_harness_is_told_the_request_and_where_results_belong() -> None:
    text = render("task.md", request="Write a report.")
    assert text.startswith("Write a report.\n\nWork in the current folder.")
    assert "put every file that is part of the result into `outputs/`" in text
    assert list(digests()) == ["task.md"]
