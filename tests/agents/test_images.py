import asyncio
from pathlib import Path

import pytest
from inspect_ai.model import ChatMessage, ContentImage, ContentText

from gta_bench.agents.catalog import load_agent
from gta_bench.agents.contract import History, Setup
from gta_bench.agents.replies import attach_images
from gta_bench.errors import UsageError
from gta_bench.records.dialogue import UserTurn
from gta_bench.records.files import Attachment
from tests.agents.builders import HISTORIES, Listening, decide, inspect_warnings

pytestmark = inspect_warnings

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
AGENTS = ("toolcalling", "react", "react-upstream")


def pictures(messages: list[ChatMessage]) -> list[tuple[str, str]]:
    """The role of every message that shows a picture, and the picture."""
    return [
        (message.role, part.image)
        for message in messages
        for part in message.content_list
        if isinstance(part, ContentImage)
    ]


@pytest.mark.parametrize("name", AGENTS)
def test_a_model_sees_paths_only_unless_images_are_attached(name: str) -> None:
    listening = Listening()
    decide(load_agent(name), HISTORIES[-1], setup=Setup(model=listening.model))
    assert pictures(listening.messages[0]) == []
    assert "`inputs/menu.jpg`" in "".join(message.text for message in listening.messages[0])


@pytest.mark.parametrize("name", AGENTS)
def test_attached_images_stand_beside_the_request_as_data(name: str, tmp_path: Path) -> None:
    (tmp_path / "menu.jpg").write_bytes(PNG)
    listening = Listening()
    setup = Setup(
        model=listening.model,
        images="attached",
        image_source=lambda item: str(tmp_path / Path(item.source).name),
    )
    decide(load_agent(name), HISTORIES[-1], setup=setup)
    (role, image), *more = pictures(listening.messages[0])
    assert more == []
    assert role == "user"
    assert image.startswith("data:image/")
    request = next(m for m in listening.messages[0] if pictures([m]))
    assert isinstance(request.content[0], ContentText)
    assert request.text.endswith("What does the bière cost?")
    assert str(tmp_path) not in "".join(m.model_dump_json() for m in listening.messages[0])


def test_only_the_first_request_carries_the_images() -> None:
    turns = (UserTurn(content="One?"), UserTurn(content="Two?"))
    history = HISTORIES[0].model_copy(update={"turns": turns})
    setup = Setup(images="attached", image_source=lambda item: "data:image/png;base64,AAAA")
    for name in AGENTS:
        listening = Listening()
        decide(
            load_agent(name),
            history,
            setup=Setup(
                model=listening.model, images=setup.images, image_source=setup.image_source
            ),
        )
        shown = [m.text for m in listening.messages[0] if pictures([m])]
        assert [text.rpartition("\n")[2] for text in shown] == ["One?"]


def test_files_that_are_no_images_are_not_attached() -> None:
    history = History(
        task="1",
        attachments=(
            Attachment(path="inputs/a.pdf", source="a.pdf", type="image"),
            Attachment(path="inputs/b.webp", source="b.webp"),
            Attachment(path="inputs/c", source="c", type="image"),
            Attachment(path="inputs/d", source="d"),
        ),
    )
    asked: list[str] = []

    def source(item: Attachment) -> str:
        asked.append(item.path)
        return "data:image/png;base64,AAAA"

    setup = Setup(images="attached", image_source=source)
    assert len(asyncio.run(attach_images(history, setup))) == 2
    assert asked == ["inputs/b.webp", "inputs/c"]


def test_attached_images_need_a_source() -> None:
    with pytest.raises(UsageError, match="needs `image_source`"):
        asyncio.run(attach_images(HISTORIES[0], Setup(images="attached")))
