"""Samples of an Inspect log, ours or anybody's, as observed traces."""

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from inspect_ai.event import ModelEvent, ToolEvent
from inspect_ai.log import (
    EvalSample,
    EvalSampleSummary,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
)
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentAudio,
    ContentDocument,
    ContentImage,
    ContentText,
    ContentVideo,
)
from pydantic import ValidationError

from gta_bench.authoring.traces.observed import (
    DATA_ADDRESS,
    ObservedCall,
    ObservedFile,
    ObservedTool,
    ObservedTrace,
    find_answer,
    join_tools,
    make_text,
    read_data_address,
    read_step_calls,
)
from gta_bench.errors import UsageError
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.steps import ReplyPart
from gta_bench.records.workflow import WorkflowTask
from gta_bench.runs.directory import explain_unreadable
from gta_bench.runs.samples import TASK, UnitData, read_unit_data

# Bytes of one member of a log, unpacked.
LARGEST_MEMBER: Final = 256 << 20
MOST_MEMBERS: Final = 200_000


def is_inspect_archive(file: Path) -> bool:
    """Whether a file is a log in Inspect's packed format."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return False
    return "header.json" in names or "_journal/start.json" in names


def list_samples(file: Path) -> list[str]:
    """Return the ids of the samples in a packed log; raises UsageError for one that is too large.

    Sizes are those that the archive states; Inspect reads no more of a member than that.
    """
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
    large = [one.filename for one in members if one.file_size > LARGEST_MEMBER]
    if large or len(members) > MOST_MEMBERS:
        problem = f"{large[0]!r} in it is too large" if large else "it has too many members"
        raise UsageError(f"{file} cannot be read: {problem}. Choose another log.")
    return [_name_sample(one) for one in _summarize(file)]


def read_sample(file: Path, name: str) -> ObservedTrace:
    """Read one sample of a packed log."""
    with explain_unreadable(str(file)):
        for one in _summarize(file):
            if _name_sample(one) == name:
                sample = read_eval_log_sample(
                    file, one.id, one.epoch, resolve_attachments=True, format="eval"
                )
                return observe_sample(sample)
    raise UsageError(f"{file} has no sample {name!r}.")


def read_json_log(file: Path) -> list[ObservedTrace]:
    """Read all samples of a log that is one JSON file."""
    with explain_unreadable(str(file)):
        log = read_eval_log(file, resolve_attachments=True, format="json")
    return [observe_sample(sample) for sample in log.samples or ()]


def _summarize(file: Path) -> Sequence[EvalSampleSummary]:
    with explain_unreadable(str(file)):
        return read_eval_log_sample_summaries(file, format="eval")


def _name_sample(sample: EvalSample | EvalSampleSummary) -> str:
    return f"{sample.id}.{sample.epoch}"


def observe_sample(sample: EvalSample) -> ObservedTrace:
    """Return what a sample shows."""
    asked = [event for event in sample.events if isinstance(event, ModelEvent)]
    # Judges are models in a role.
    own = [event for event in asked if event.role is None]
    defined = [_read_tool(tool) for event in own for tool in event.tools]
    notes = []
    if sample.error is not None:
        notes.append("The sample ended with an error of its own, so the work may be incomplete.")
    found = _observe_ours(sample) or _observe_any(sample, own)
    tools, contradictions = join_tools(defined, found.calls)
    target = sample.target if isinstance(sample.target, str) else "\n".join(sample.target)
    update = {
        "tools": tools,
        "target": target or None,
        "notes": (*notes, *found.notes, *contradictions),
    }
    return found.model_copy(update=update)


def _observe_ours(sample: EvalSample) -> ObservedTrace | None:
    """Return what a unit of our own stores; None for other samples."""
    task = _read_task(sample.metadata)
    if task is None:
        return None
    data: UnitData = read_unit_data(sample.store.items())
    trace = data.steps or ()
    digests = {one.path: one.digest for one in data.inputs}
    return ObservedTrace(
        id=_name_sample(sample),
        format="Inspect",
        request=task.request,
        turns=1,
        answer=find_answer(trace),
        calls=read_step_calls(trace),
        files=tuple(
            ObservedFile(name=one.path, sha256=digests.get(one.path)) for one in task.attachments
        ),
        delivered=tuple(one.path for one in data.deliverables),
        is_ours=True,
    )


def _read_task(metadata: Mapping[str, Any]) -> WorkflowTask | AtomicTask | None:
    for kind in (WorkflowTask, AtomicTask) if TASK in metadata else ():
        try:
            return kind.model_validate(metadata[TASK])
        except ValidationError:
            continue
    return None


def _observe_any(sample: EvalSample, asked: Sequence[ModelEvent]) -> ObservedTrace:
    given: Sequence[ChatMessage] = (
        [ChatMessageUser(content=sample.input)] if isinstance(sample.input, str) else sample.input
    )
    users = [message for message in given if isinstance(message, ChatMessageUser)]
    first = asked[0].input if asked else sample.messages
    system = [one.text for one in first if isinstance(one, ChatMessageSystem)]
    events = [event for event in sample.events if isinstance(event, ToolEvent)]
    calls = [*map(_read_event, events)] if events else [*_read_messages(sample.messages)]
    files = [ObservedFile(name=name) for name in sample.files or ()]
    files += [file for message in users[:1] for file in _read_files(message)]
    cut = [event.function for event in events if event.truncated is not None]
    notes = [f"The system itself saw a shortened reply of {name}." for name in dict.fromkeys(cut)]
    return ObservedTrace(
        id=_name_sample(sample),
        format="Inspect",
        request=(users[0].text.strip() and users[0].text) or None if users else None,
        turns=len(users),
        system="\n\n".join(system) or None,
        answer=sample.output.completion or None,
        calls=tuple(calls),
        files=tuple(files),
        notes=tuple(notes),
    )


def _read_tool(tool: Any) -> ObservedTool:
    schema = tool.parameters.model_dump(mode="json", exclude_none=True)
    return ObservedTool(name=tool.name, description=tool.description, parameters=schema)


def _read_event(event: ToolEvent) -> ObservedCall:
    if event.error is not None:
        error = event.error.message or event.error.type
        return ObservedCall(tool=event.function, arguments=event.arguments, error=error)
    reply = None if event.pending else _read_result(event.result)
    return ObservedCall(tool=event.function, arguments=event.arguments, reply=reply)


def _read_result(result: Any) -> tuple[ReplyPart, ...] | None:
    """Return a result that is text; None if it has anything else, which the trace cannot replay."""
    if isinstance(result, list):
        texts = [part.text for part in result if isinstance(part, ContentText)]
        return make_text("\n".join(texts)) if len(texts) == len(result) else None
    if isinstance(result, ContentText):
        return make_text(result.text)
    return make_text(str(result)) if isinstance(result, str | int | float) else None


def _read_messages(messages: Sequence[ChatMessage]) -> Iterator[ObservedCall]:
    """Yield the calls of a dialogue, each with the message that answers it."""
    replies = {
        message.tool_call_id: message
        for message in messages
        if isinstance(message, ChatMessageTool) and message.tool_call_id
    }
    for message in messages:
        for call in message.tool_calls or () if isinstance(message, ChatMessageAssistant) else ():
            arguments = None if call.parse_error else call.arguments
            made = ObservedCall(tool=call.function, arguments=arguments)
            reply = replies.get(call.id)
            if reply is None:
                yield made
            elif reply.error is not None:
                yield made.model_copy(update={"error": reply.error.message or reply.error.type})
            else:
                content = reply.content
                yield made.model_copy(update={"reply": _read_result(content)})


def _read_files(message: ChatMessageUser) -> Iterator[ObservedFile]:
    for part in message.content if isinstance(message.content, list) else ():
        address = _find_address(part)
        if address is None:
            continue
        data = read_data_address(address)
        kind = address[len(DATA_ADDRESS) :].partition("/")[0] if data is not None else ""
        yield ObservedFile(name=kind or address, data=data)


def _find_address(part: Content) -> str | None:
    match part:
        case ContentImage():
            return part.image
        case ContentAudio():
            return part.audio
        case ContentVideo():
            return part.video
        case ContentDocument():
            return part.document
        case _:
            return None
