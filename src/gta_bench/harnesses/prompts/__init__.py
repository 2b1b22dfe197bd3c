"""Prompts for harnesses in addition to the request: files, filled by a strict template."""

from gta_bench.prompting import Prompts

_PROMPTS = Prompts(__name__, ("task.md",))
render = _PROMPTS.render
digests = _PROMPTS.digests
