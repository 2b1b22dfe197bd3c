"""The recorded call that a refused one may have meant."""

from difflib import SequenceMatcher

from gta_bench.records.tape import TapeCall
from gta_bench.tape.canonical import call_text
from gta_bench.tape.storage import Tape

# Enough for every call of a tool in GTA-Atomic, and bounded on a tape of any size.
LOOKED_AT = 300
COMPARED = 300


def nearest_call(tape: Tape, call: TapeCall) -> str:
    """The most similar call of the same tool, the task's own before others', in words."""
    candidates = tape.candidates(call, LOOKED_AT)
    if not candidates:
        return f"none of {call.tool}"
    best = max(candidates, key=lambda other: _similarity(call, other))
    text = f"{call_text(best)} in task {best.task}"
    changed = [
        path for path, digest in call.files.items() if best.files.get(path, digest) != digest
    ]
    return f"{text}, with other content of {', '.join(changed)}" if changed else text


def _similarity(call: TapeCall, other: TapeCall) -> float:
    one, two = call_text(call)[:COMPARED], call_text(other)[:COMPARED]
    return SequenceMatcher(None, one, two, autojunk=False).ratio() + (call.files == other.files)
