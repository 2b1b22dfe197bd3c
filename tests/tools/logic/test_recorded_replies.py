from pathlib import Path

import pytest

pytest.importorskip("pydantic_monty")

from gta_bench.datasets.atomic import load_atomic
from gta_bench.tools.logic.expressions import check_calculator_replies
from tests import builders


def test_replies_typed_by_hand_are_found_in_the_released_data(atomic_dir: Path) -> None:
    spots = list(check_calculator_replies(load_atomic(atomic_dir)))
    found = [int(spot.task or -1) for spot in spots]
    assert found == [2, 21, 25, 26, 27, 52, 53, 91, 101, 104, 107, 110, 193, 204]
    assert spots[0].message == "Calculator gives '27.0', the recorded reply is '27'."


def test_the_place_of_the_reply_is_named(tmp_path: Path) -> None:
    dialogs = [
        {"role": "user", "content": "How much?"},
        builders.call("Calculator", {"expression": "1 + 1"}),
        builders.reply("Calculator", "2"),
        builders.call("Calculator", {"expression": "2 +"}),
        builders.reply("Calculator", "4"),
        {"role": "assistant", "content": "2"},
    ]
    tool = builders.tool("Calculator", builders.parameter("expression"))
    task = builders.atomic_task(dialogs=dialogs, tools=[tool])
    root = builders.write_atomic(tmp_path, {"0": task}, {"Calculator": tool})
    (spot,) = check_calculator_replies(load_atomic(root))
    assert (spot.task, spot.field) == ("0", "dialogs.4")
    assert spot.message.startswith("Calculator gives \"error: '2 +' is not a Python expression")
