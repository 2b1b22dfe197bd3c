"""The demo's scripted judge: it looks for fixed words in the evidence that it is really shown.

It is no language model, and no judge to be used on anything else.
"""

import json
import re
from collections.abc import Mapping

from inspect_ai.model import ChatMessage, ContentText, Model, ModelOutput, ModelUsage, get_model

NAME = "mockllm/scripted-judge"
LEAF = re.compile(r"^leaf: (\S+)$", re.MULTILINE)
SHOWN = re.compile(r"^BEGIN (\w+) deliverable (\"[^\n]*\")\n(.*?)^END \1", re.DOTALL | re.MULTILINE)
# What must stand in the deliverables, for each leaf; a picture stands there by its label.
WANTED: Mapping[str, tuple[str, ...]] = {
    "umbrellas": ("486",),
    "hats": ("623",),
    "overtaking": ("April",),
    "document": ("report.pdf", "January to June"),
    "chart": ("page 1",),
    "order": ("July", "risen every month"),
    "lines": ("Bread,3,2.40,7.20", "Cheese,2,5.50,11.00", "Grapes,4,1.80,7.20", "Lemonade,6"),
    "total": ("32.90",),
    "menu": ("Bread", "Cheese", "Grapes", "Lemonade"),
    "share": ("5.48",),
}


def scripted_judge() -> Model:
    """The script as a model that Inspect can ask."""
    return get_model(NAME, custom_outputs=_reply, memoize=False)


def _reply(messages: list[ChatMessage], *_: object) -> ModelOutput:
    content = messages[-1].content
    parts = [part.text for part in content if isinstance(part, ContentText)]
    assert not isinstance(content, str)
    leaf = LEAF.findall(parts[-1])[-1]
    shown = {json.loads(name): text for _, name, text in SHOWN.findall("\n".join(parts[:-1]))}
    output = ModelOutput.from_content(NAME, json.dumps(_verdict(leaf, shown)))
    output.usage = ModelUsage()
    return output


def _verdict(leaf: str, shown: Mapping[str, str]) -> dict[str, object]:
    everything = "\n".join(f"{name}\n{text}" for name, text in shown.items())
    wanted = WANTED[leaf.rpartition("~")[0]]  # the name that was asked for ends in the unit's mark
    missing = [words for words in wanted if words not in everything]
    used = [name for name, text in shown.items() if any(words in text for words in wanted)]
    reason = f"The evidence lacks: {', '.join(missing)}." if missing else "All is there."
    score = round(10 * (len(wanted) - len(missing)) / len(wanted))
    return {"leaf": leaf, "used": used, "reason": f"Scripted check. {reason}", "score": score}
