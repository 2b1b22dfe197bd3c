import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from gta_bench.datasets.atomic import load_atomic
from gta_bench.errors import RunError, ToolUnavailable
from gta_bench.records.atomic import PLACEHOLDER_IMAGE
from gta_bench.tape.reference import write_reference_tape
from gta_bench.tape.storage import TAPE, Tape, tape_digest
from tests.builders import JPEG, atomic_task, call, parameter, reply, tool, write_atomic
from tests.tape.builders import space, taped

DRAW = tool("Draw", parameter("image", "image"), outputs=[parameter(None, "image")])


def drawing(*, replied: bool = True) -> dict[str, object]:
    """A task that makes an image from an image from an image, if the last reply is there."""
    dialogs = [
        {"role": "user", "content": "Draw."},
        call("Draw", {"image": "image/menu.jpg"}),
        reply("Draw", "image/dummy_generated_image.jpg", "image"),
        call("Draw", {"image": "image/dummy_generated_image.jpg"}),
    ]
    if replied:
        dialogs.append(reply("Draw", "image/dummy_generated_image.jpg", "image"))
    return atomic_task(tools=[DRAW], dialogs=dialogs, gt_answer=None)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    tasks = {"0": drawing(), "1": drawing(replied=False)}
    root = write_atomic(tmp_path / "data", tasks, [DRAW])
    (root / "image" / "dummy_generated_image.jpg").write_bytes(JPEG + b"placeholder")
    return root


def ask(tape: Tape, task: str, folder: Path, *images: str) -> list[str]:
    workspace = space(folder)
    (folder / "inputs" / "menu.jpg").write_bytes(JPEG)
    source = taped(tape, "replay", task=task)

    async def said() -> list[str]:
        return [(await source.call(workspace, "Draw", {"image": image})).text for image in images]

    return asyncio.run(said())


def test_images_of_the_reference_are_the_datasets_own_placeholder(
    data: Path, tmp_path: Path
) -> None:
    assert write_reference_tape(load_atomic(data), tmp_path / "tape") == 4
    tape, folder = Tape.open(tmp_path / "tape"), tmp_path / "space"
    said = ask(tape, "0", folder, "inputs/menu.jpg", PLACEHOLDER_IMAGE)
    assert said == [f"[image]({PLACEHOLDER_IMAGE})"] * 2
    assert (folder / PLACEHOLDER_IMAGE).read_bytes() == JPEG + b"placeholder"
    assert len(list((folder / "outputs").iterdir())) == 1


def test_a_call_without_a_reply_is_unavailable(data: Path, tmp_path: Path) -> None:
    write_reference_tape(load_atomic(data), tmp_path / "tape")
    tape = Tape.open(tmp_path / "tape")
    with pytest.raises(ToolUnavailable, match="The reference has no reply to this call"):
        ask(tape, "1", tmp_path / "space", "inputs/menu.jpg", PLACEHOLDER_IMAGE)


def test_a_dataset_without_the_placeholder_is_refused(data: Path, tmp_path: Path) -> None:
    (data / "image" / "dummy_generated_image.jpg").unlink()
    with pytest.raises(RunError, match=r"dummy_generated_image\.jpg is missing"):
        write_reference_tape(load_atomic(data), tmp_path / "tape")


def test_the_same_reference_makes_the_same_tape_and_overwrites_none(
    data: Path, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        write_reference_tape(load_atomic(data), tmp_path / name)
    assert (tmp_path / "one" / TAPE).read_bytes() == (tmp_path / "two" / TAPE).read_bytes()
    assert tape_digest(tmp_path / "one") == tape_digest(tmp_path / "two")
    with pytest.raises(RunError, match="already contains a tape"):
        write_reference_tape(load_atomic(data), tmp_path / "one")


def test_the_widest_definition_of_a_tool_is_offered(tmp_path: Path) -> None:
    wide = tool("OCR", parameter("image", "image"), parameter("bbox", optional=True))
    root = write_atomic(tmp_path / "data", {"0": atomic_task(tools=[wide])})
    write_reference_tape(load_atomic(root), tmp_path / "tape")
    specs: Mapping[str, object] = {
        spec["name"]: [one["name"] for one in spec["inputs"]]
        for line in (tmp_path / "tape" / TAPE).read_text(encoding="utf-8").splitlines()
        if (spec := json.loads(line).get("spec"))
    }
    assert specs == {"OCR": ["image", "bbox"]}
