"""GTA-Atomic's released layout (`dataset.json`, or a `step.json` of its shape) as records."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import JsonValue

from gta_bench.datasets.files import check_task_id, parse, read_entries
from gta_bench.datasets.model import AtomicDataset
from gta_bench.datasets.released import (
    ReleasedAtomicTask,
    ReleasedMessage,
    ReleasedReply,
    ReleasedWhitelist,
    attachments,
    bare_string_findings,
    is_host_path,
    load_toolmeta,
    tool_spec,
    unknown_key_findings,
)
from gta_bench.errors import DatasetError
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
    """Load a folder of GTA-Atomic's layout; every quirk becomes a finding."""
    file = next((name for name in ATOMIC_FILES if (root / name).is_file()), None)
    if file is None:
        raise DatasetError(
            "no such file; `gta data fetch atomic` brings it. `--data DIR` names another folder, "
            "GTA_DATA the one above it.",
            file=str(root / ATOMIC_FILES[0]),
        )
    released = {}
    for task, raw in read_entries(root / file).items():
        check_task_id(task, file=file)
        released[task] = parse(ReleasedAtomicTask, raw, file=file, task=task)
    files = {
        task: attachments(entry.files, file=file, task=task) for task, entry in released.items()
    }
    portable = _portable_paths(files)
    tools, findings = load_toolmeta(root)
    for task, entry in released.items():
        findings += bare_string_findings(entry.files, file=file, task=task)
        findings += unknown_key_findings(entry, file=file, task=task)
        findings += _message_findings(entry, file=file, task=task)
    return AtomicDataset(
        root=root,
        file=file,
        tasks={
            task: AtomicTask(
                id=task,
                tools=tuple(tool_spec(tool) for tool in entry.tools),
                attachments=files[task],
                dialogue=tuple(_turns(entry.dialogs, portable, file=file, task=task)),
                answer=_answer(entry.gt_answer),
            )
            for task, entry in released.items()
        },
        tools=tools,
        findings=tuple(findings),
    )


def _portable_paths(files: Mapping[str, tuple[Attachment, ...]]) -> dict[str, str]:
    """Where each file of the dataset stands for agents; some references name another task's."""
    portable = {item.source: item.path for items in files.values() for item in items}
    return portable | {RELEASED_PLACEHOLDER: PLACEHOLDER_IMAGE}


def _turns(
    messages: list[ReleasedMessage], portable: Mapping[str, str], *, file: str, task: str
) -> Iterator[Turn]:
    for index, message in enumerate(messages):
        where = f"dialogs.{index}"
        if message.role == "tool":
            yield _reply(message, portable, file=file, task=task, where=where)
        elif message.role == "assistant" and message.tool_calls:
            yield _call(message, portable, file=file, task=task, where=where)
        else:
            text = _text(message, file=file, task=task, where=where)
            if text is None:
                raise DatasetError(
                    "a message without tool call needs a text.",
                    file=file,
                    task=task,
                    field=f"{where}.content",
                )
            if message.role == "user":
                yield UserTurn(content=text)
            else:
                yield AnswerTurn(content=text, thought=message.thought)


def _call(
    message: ReleasedMessage, portable: Mapping[str, str], *, file: str, task: str, where: str
) -> CallTurn:
    assert message.tool_calls
    function = message.tool_calls[0].function
    arguments: dict[str, JsonValue] = {
        name: portable.get(value, value) if isinstance(value, str) else value
        for name, value in function.arguments.items()
    }
    return CallTurn(
        call=ToolCall(name=function.name, arguments=arguments),
        thought=message.thought,
        content=_text(message, file=file, task=task, where=where),
    )


def _reply(
    message: ReleasedMessage, portable: Mapping[str, str], *, file: str, task: str, where: str
) -> ReplyTurn:
    reply = message.content
    if not isinstance(reply, ReleasedReply) or message.name is None:
        raise DatasetError(
            "a tool message needs a name and a content with type and content.",
            file=file,
            task=task,
            field=where,
        )
    content = portable.get(reply.content, reply.content)
    if _is_foreign_file(reply):
        content = PLACEHOLDER_IMAGE
    return ReplyTurn(tool=message.name, type=reply.type, content=content)


def _is_foreign_file(reply: ReleasedReply) -> bool:
    return reply.type in FILE_TYPES and is_host_path(reply.content)


def _text(message: ReleasedMessage, *, file: str, task: str, where: str) -> str | None:
    if isinstance(message.content, ReleasedReply):
        raise DatasetError(
            f"the content of a message of role {message.role!r} is a text.",
            file=file,
            task=task,
            field=f"{where}.content",
        )
    return message.content


def _answer(released: ReleasedWhitelist | list[str] | None) -> Answer | None:
    if released is None:
        return None
    if isinstance(released, list):
        return FreeTextAnswer(references=tuple(released))
    blacklist = released.blacklist
    return WhitelistAnswer(
        whitelist=tuple(tuple(group) for group in released.whitelist),
        blacklist=None if blacklist is None else tuple(tuple(group) for group in blacklist),
    )


def _message_findings(entry: ReleasedAtomicTask, *, file: str, task: str) -> Iterator[Finding]:
    for index, message in enumerate(entry.dialogs):
        if message.role == "user" and message.tool_calls:
            yield Finding(
                check="misplaced-tool-call",
                severity="warning",
                file=file,
                task=task,
                field=f"dialogs.{index}.tool_calls",
                message="a tool call in a user message is ignored.",
            )
        if isinstance(message.content, ReleasedReply) and _is_foreign_file(message.content):
            yield Finding(
                check="host-path-reply",
                severity="warning",
                file=file,
                task=task,
                field=f"dialogs.{index}.content",
                message="the recorded file is a path of the authors' machine; "
                "the placeholder stands for it.",
            )
