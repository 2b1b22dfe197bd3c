"""Tasks that a calculator solves."""

from typing import Any

from tests.builders import atomic_task, call, parameter, reply, tool

CALCULATOR = tool("Calculator", parameter("expression"))
TOOLMETA = [CALCULATOR, *(tool(f"Other{number}", parameter("text")) for number in range(3))]


def multiplication(left: int) -> dict[str, Any]:
    product = str(left * 7)
    return atomic_task(
        tools=[CALCULATOR],
        dialogs=[
            {"role": "user", "content": f"What is {left}*7?"},
            call("Calculator", {"expression": f"{left}*7"}),
            reply("Calculator", product),
            {"role": "assistant", "content": f"It is {product}."},
        ],
        gt_answer={"whitelist": [[product]], "blacklist": None},
    )
