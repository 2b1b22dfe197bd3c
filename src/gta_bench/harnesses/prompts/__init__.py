"""What harnesses are told besides the request: prompt files, filled by a strict template."""

from gta_bench.prompting import Prompts

_PROMPTS = Prompts(__name__, ("task.md",))
render = _PROMPTS.render
digests = _PROMPTS.digests
