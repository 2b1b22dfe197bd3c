"""A Python agent for `--agent-bridge` that knows nothing of the package."""

import json
from typing import Any

from openai import AsyncOpenAI


async def bare(task: Any) -> str:
    """Ask the run's model and call its tools until it answers."""
    client = AsyncOpenAI(api_key="none", base_url="http://127.0.0.1:9/v1")
    tools: Any = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
            },
        }
        for tool in task.tools
    ]
    messages: Any = [{"role": "user", "content": task.prompt}]
    while True:
        reply = await client.chat.completions.create(
            model="inspect", messages=messages, tools=tools
        )
        said = reply.choices[0].message
        messages.append(said)
        if not said.tool_calls:
            return said.content or ""
        for call in said.tool_calls:
            assert call.type == "function"
            result = await task.tool(call.function.name)(json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
