"""Run by a Python with lagent 0.2.4: what its own protocol class renders for histories on stdin.

Only the modules that the protocol needs are imported. The packages' own `__init__` import every
action that lagent has, with all that those depend on.
"""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

found = importlib.util.find_spec("lagent")
assert found is not None and found.submodule_search_locations
root = Path(found.submodule_search_locations[0])
for name in ("lagent", "lagent.actions", "lagent.agents", "lagent.llms"):
    package = ModuleType(name)
    package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
    sys.modules[name] = package

from lagent.actions.action_executor import ActionExecutor  # type: ignore[import-not-found]  # noqa: E402
from lagent.actions.base_action import BaseAction  # type: ignore[import-not-found]  # noqa: E402

sys.modules["lagent.actions"].ActionExecutor = ActionExecutor  # type: ignore[attr-defined]

from lagent.agents.react import ReActProtocol  # type: ignore[import-not-found]  # noqa: E402
from lagent.schema import ActionReturn, ActionStatusCode  # type: ignore[import-not-found]  # noqa: E402

protocol = ReActProtocol()
rendered = []
for asked in json.load(sys.stdin):
    steps = []
    for step in asked["steps"]:
        if "result" in step:
            done = ActionReturn(
                args={}, type="tool", result=step["result"], state=ActionStatusCode.SUCCESS
            )
            steps.append(protocol.format_response(done))
        else:
            steps.append(step)
    executor = ActionExecutor([BaseAction(description) for description in asked["tools"]])
    rendered.append(
        protocol.format(
            chat_history=[],
            inner_step=steps,
            action_executor=executor,
            force_stop=asked["force_stop"],
        )
    )
json.dump(rendered, sys.stdout)
