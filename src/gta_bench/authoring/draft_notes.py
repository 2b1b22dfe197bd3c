"""`notes.md` of a draft: questions to its author, and what the trace shows."""

import json
import re
from collections.abc import Sequence
from typing import Final

from gta_bench.authoring.drafts import DraftFile
from gta_bench.authoring.traces.observed import ObservedCall, ObservedTrace
from gta_bench.records.tools import FILE_TYPES

MOST_SHOWN: Final = 20_000


def format_notes(trace: ObservedTrace, draft: DraftFile, taped: Sequence[bool]) -> str:
    """Return notes for the author; texts of the trace are in code blocks, where they stay texts."""
    source = draft.source
    lines = [
        "# A draft from a trace",
        "",
        f"Trace {_code(source.trace)} ({source.format}) of {_code(source.file)}.",
        "",
        "## Questions",
        "",
        *(f"- {name}: {_code_free(field.note)}" for name, field in draft.select("missing")),
        *(f"- {name}: {_code_free(field.note)}" for name, field in draft.select("inferred")),
    ]
    if trace.notes:
        lines += [
            "",
            "## What the trace lacks",
            "",
            *(f"- {_code_free(one)}" for one in trace.notes),
        ]
    parts = {
        "Answer in the trace": trace.answer,
        "Expected answer": trace.target,
        "System message": trace.system,
    }
    for heading, text in parts.items():
        if text:
            lines += ["", f"## {heading}", "", *_fence(text)]
    if trace.calls:
        shown = [
            f"{number}. {'' if kept else '(not on the tape) '}{_describe_call(call)}"
            for number, (call, kept) in enumerate(zip(trace.calls, taped, strict=True), 1)
        ]
        lines += ["", "## Calls", "", *_fence("\n".join(shown))]
    return "\n".join(lines) + "\n"


def _describe_call(call: ObservedCall) -> str:
    given = "(arguments not recorded)"
    if call.arguments is not None:
        given = shorten(json.dumps(dict(call.arguments), ensure_ascii=False))
    if call.error is not None:
        return f"{shorten(call.tool)} {given}: failed, {shorten(call.error)}"
    if call.reply is None:
        return f"{shorten(call.tool)} {given}: the reply is missing or was cut"
    if any(part.type in FILE_TYPES for part in call.reply):
        return f"{shorten(call.tool)} {given}: replied with a file, which the trace lacks"
    return f"{shorten(call.tool)} {given}: {shorten(' '.join(one.content for one in call.reply))}"


def _fence(text: str) -> list[str]:
    """Return a text in a fence that is longer than any in it."""
    shown = text[:MOST_SHOWN]
    if len(text) > MOST_SHOWN:
        shown += f"\n… ({len(text) - MOST_SHOWN:,} more characters)"
    longest = max((len(one) for one in re.findall(r"`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", shown, fence]


def _code(text: str) -> str:
    return f"`{_code_free(shorten(text))}`"


def _code_free(text: str) -> str:
    """Return a line in which no Markdown or HTML of the trace works."""
    return re.sub(r"[`<>\[\]\\]", "'", shorten(text) if len(text) > 2000 else text)


def shorten(text: str) -> str:
    """Return a text as one short line."""
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:79]}…"
