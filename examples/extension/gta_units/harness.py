"""A new harness: a function that gets the task and returns the answer.

gta run atomic --mode end-to-end --data units --agent-bridge gta_units.harness:agent \
    --model mockllm/model --out runs/units
"""

import re

from gta_bench.harnesses.in_process import AgentTask

QUESTION = re.compile(r"([\d.]+) (\w+?)s? in (\w+?)s?\?")


async def agent(task: AgentTask) -> str:
    """Read the question, ask the tool, answer; a real one would ask a model too."""
    found = QUESTION.search(task.prompt)
    if found is None:
        return "I do not understand the question."
    value, unit, to = found.groups()
    result = await task.tool("UnitConverter")({"value": float(value), "unit": unit, "to": to})
    return f"It is {result}."
