"""Prediction files as the published pipeline writes them, from the released dataset itself."""

import copy
import json
from pathlib import Path
from typing import Any

FOLDER = "/home/someone/GTA/data/gta_dataset"


def absolute(message: dict[str, Any], root: Path) -> dict[str, Any]:
    """A message with the dataset's files under a host's path, as upstream's loader makes it."""
    message = copy.deepcopy(message)
    for call in message.get("tool_calls", []):
        arguments = call["function"]["arguments"]
        for name, value in arguments.items():
            if str(value).startswith("image/") and (root / value).is_file():
                arguments[name] = f"{FOLDER}/{value}"
    return message


def reference_predictions(root: Path, mode: str) -> dict[str, Any]:
    """The reference fed back as prediction, for every task."""
    tasks = json.loads((root / "dataset.json").read_text(encoding="utf-8"))
    file = {}
    for position, task in enumerate(tasks.values()):
        turns = [absolute(turn, root) for turn in task["dialogs"] if turn["role"] != "user"]
        if mode == "step":
            turns = [turn for turn in turns if turn["role"] == "assistant"]
        steps = turns if mode == "step" else [turns]
        file[str(position)] = {"prediction": steps, "gold": steps, "origin_prompt": []}
    return file
