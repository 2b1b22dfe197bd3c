"""The prompts of harnesses, in full."""

from gta_bench.harnesses.prompts import digests, render


def test_a_harness_gets_the_request_and_where_to_put_results() -> None:
    text = render("task.md", request="Write a report.")
    assert text.startswith("Write a report.\n\nWork in the current folder.")
    assert "put every file that is part of the result into `outputs/`" in text
    assert list(digests()) == ["task.md"]
