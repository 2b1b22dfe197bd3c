"""Files of an exported task that are the same for all tasks, or nearly so."""

from typing import Final

from gta_bench.prompting import Prompts

TEMPLATES: Final = Prompts(__name__, ("instruction.md", "Dockerfile", "test.sh"))
