"""Load GTA-Atomic's released layout (`dataset.json`, or a `step.json` in the same layout)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from gta_bench.datasets.files import Location, read_tasks
from gta_bench.datasets.model import AtomicDataset
from gta_bench.datasets.released import (
    ReleasedAtomicTask,
    ReleasedMessage,
    ReleasedReply,
    ReleasedWhitelist,
    find_oddities,
    is_host_path,
    load_toolmeta,
    missing_file,
    read_attachments,
    tool_spec,
)
from gta_bench.records.atomic import (
    PLACEHOLDER_IMAGE,
    Answer,
    AtomicTask,
    FreeTextAnswer,
    WhitelistAnswer,
)
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn, ToolCall, Turn, UserTurn
from gta_bench.records.files import Attachment
from gta_bench.records.finding import Finding
from gta_bench.records.tools import FILE_TYPES

ATOMIC_FILES = ("dataset.json", "step.json")
RELEASED_PLACEHOLDER = "image/dummy_generated_image.jpg"


def load_atomic(root: Path) -> AtomicDataset:
    """Load a folder in GTA-Atomic's layout; every oddity becomes a finding."""
    file = next((name for name in ATOMIC_FILES if (root / name).is_file()), None)
    if file is None:
        raise missing_file(root / ATOMIC_FILES[0], "atomic")
    released = read_tasks(root / file, ReleasedAtomicTask)
    files = {
        task: read_attachments(entry.files, Location(file, task))
        for task, entry in released.items()
    }
    portable = portable_paths(files.values())
    tools, findings = load_toolmeta(root)
    tasks = {}
    for task, entry in released.items():
        where = Location(file, task)
        tasks[task] = AtomicTask(
            id=task,
            tools=tuple(tool_spec(tool) for tool in entry.tools),
            attachments=files[task],
            dialogue=tuple(
                _read_turn(message, portable, where, f"dialogs.{index}")
                for index, message in enumerate(entry.dialogs)
            ),
            answer=_read_answer(entry.gt_answer),
        )
        findings += find_oddities(entry, entry.files, where)
        findings += _find_odd_messages(entry.dialogs, where)
    return AtomicDataset(root, file, tasks, tools, tuple(findings))


def portable_paths(attachments: Iterable[Sequence[Attachment]]) -> dict[str, str]:
    """The portable path of each file of a dataset; some references name another task's file."""
    portable = {item.source: item.path for items in attachments for item in items}
    return portable | {RELEASED_PLACEHOLDER: PLACEHOLDER_IMAGE}


def _read_turn(
    message: ReleasedMessage, portable: Mapping[str, str], where: Location, field: str
) -> Turn:
    content = message.content
    if message.role == "tool":
        if not isinstance(content, ReleasedReply) or message.name is None:
            problem = "a tool message needs a name and a content with type and content."
            raise where.error(problem, field)
        text = portable.get(content.content, content.content)
        if _is_foreign_file(content):
            text = PLACEHOLDER_IMAGE
        return ReplyTurn(tool=message.name, type=content.type, content=text)
    if isinstance(content, ReleasedReply):
        problem = f"the content of a message with role {message.role!r} must be text."
        raise where.error(problem, f"{field}.content")
    if message.role == "assistant" and message.tool_calls:
        function = message.tool_calls[0].function
        arguments = {
            name: portable.get(value, value) if isinstance(value, str) else value
            for name, value in function.arguments.items()
        }
        call = ToolCall(name=function.name, arguments=arguments)
        return CallTurn(call=call, thought=message.thought, content=content)
    if content is None:
        raise where.error("a message without a tool call needs a text.", f"{field}.content")
    if message.role == "user":
        return UserTurn(content=content)
    return AnswerTurn(content=content, thought=message.thought)


def _is_foreign_file(reply: ReleasedReply) -> bool:
    return reply.type in FILE_TYPES and is_host_path(reply.content)


def _read_answer(released: ReleasedWhitelist | list[str] | None) -> Answer | None:
    if released is None:
        return None
    if isinstance(released, list):
        return FreeTextAnswer(references=tuple(released))
    blacklist = released.blacklist
    return WhitelistAnswer(
        whitelist=tuple(tuple(group) for group in released.whitelist),
        blacklist=None if blacklist is None else tuple(tuple(group) for group in blacklist),
    )


def _find_odd_messages(messages: Sequence[ReleasedMessage], where: Location) -> Iterator[Finding]:
    for index, message in enumerate(messages):
        if message.role == "user" and message.tool_calls:
            text = "a tool call in a user message is ignored."
            yield where.finding("misplaced-tool-call", text, field=f"dialogs.{index}.tool_calls")
        if isinstance(message.content, ReleasedReply) and _is_foreign_file(message.content):
            text = (
                "the recorded file is a path of the authors' machine; the placeholder replaces it."
            )
            yield where.finding("host-path-reply", text, field=f"dialogs.{index}.content")
