"""Prompts of agents: files, filled by a strict template."""

from gta_bench.prompting import Prompts

_PROMPTS = Prompts(
    __name__,
    (
        "answer_now.md",
        "answer_without_tools.md",
        "feedback.md",
        "files.md",
        "react.md",
        "react_upstream.md",
        "react_upstream_arguments.md",
        "toolcalling.md",
    ),
)
render = _PROMPTS.render
digests = _PROMPTS.digests
