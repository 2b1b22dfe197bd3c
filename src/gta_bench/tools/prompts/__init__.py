"""What tools ask vision models: prompt files, filled by a strict template."""

from gta_bench.prompting import Prompts

_PROMPTS = Prompts(__name__, ("count.md", "describe.md", "ground.md", "math.md", "region.md"))
render = _PROMPTS.render
digests = _PROMPTS.digests
