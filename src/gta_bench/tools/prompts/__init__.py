"""Prompts of tools for vision models: files that a strict template fills."""

from gta_bench.prompting import Prompts

_PROMPTS = Prompts(__name__, ("count.md", "describe.md", "ground.md", "math.md", "region.md"))
render = _PROMPTS.render
digests = _PROMPTS.digests
