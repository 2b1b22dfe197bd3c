"""The OpenAI Agents SDK as a harness: our tools by MCP, the run's model behind Inspect's bridge.

gta run workflow --harness "python examples/openai_agents.py" --model openai/… --out runs/sdk
"""

import asyncio
import os
from pathlib import Path

from agents.mcp import MCPServerStreamableHttp

from agents import Agent, Runner, set_tracing_disabled


async def main() -> None:
    """Work on the task, and print the answer."""
    set_tracing_disabled(True)
    token = {"Authorization": f"Bearer {os.environ['GTA_MCP_TOKEN']}"}
    prompt = Path(os.environ["GTA_TASK_FILE"]).with_name("task.txt").read_text()
    async with MCPServerStreamableHttp(
        params={"url": os.environ["GTA_MCP_URL"], "headers": token, "timeout": 600},
        client_session_timeout_seconds=600,
    ) as tools:
        agent = Agent(name="gta", model=os.environ["GTA_MODEL"], mcp_servers=[tools])
        print((await Runner.run(agent, prompt, max_turns=50)).final_output)


asyncio.run(main())
