"""Templates of the files in an exported task."""

from typing import Final

from gta_bench.prompting import Prompts

TEMPLATES: Final = Prompts(__name__, ("instruction.md", "Dockerfile", "test.sh"))
