"""A judge's reply read as verdicts, strictly: a score that was asked for, or the reason why not.

Accepted is one JSON object, bare or alone inside one code fence. Nothing is searched for in prose,
nothing is rounded, clamped or filled in.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inspect_ai.model import ResponseSchema
from inspect_ai.util import JSONSchema

from gta_bench.metrics.compat.workflow import parse_reply
from gta_bench.records.verdicts import Cause, Scored, Unscored

SCALE = tuple(range(11))
VERDICTS = "verdicts"
_FIELDS = ("leaf", "used", "reason", "score")
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
_NAMED = re.compile(r'"leaf"\s*:\s*"[^"]*"')
_SHOWN = 200


class _Broken(Exception):
    """A reply, or one verdict in it, that cannot be used."""

    def __init__(self, cause: Cause, detail: str) -> None:
        self.verdict = Unscored(cause=cause, detail=detail)


class _NotANumber(NamedTuple):
    """NaN or an infinity, which JSON does not have but some models write."""

    text: str


def reply_schema(leaves: Sequence[str], *, several: bool) -> ResponseSchema:
    """What the judge may reply: `leaves` are all ids of the task, so that its calls share a prefix.

    Providers put the schema before the prompt, so one that named the asked leaf only would spoil
    their prefix caches. The score comes last, after the reason that it follows from.
    """
    verdict = JSONSchema(
        type="object",
        properties={
            "leaf": JSONSchema(type="string", enum=list(leaves)),
            "used": JSONSchema(type="array", items=JSONSchema(type="string")),
            "reason": JSONSchema(type="string"),
            "score": JSONSchema(type="integer", enum=list(SCALE)),
        },
        required=list(_FIELDS),
        additionalProperties=False,
    )
    if several:
        verdict = JSONSchema(
            type="object",
            properties={VERDICTS: JSONSchema(type="array", items=verdict)},
            required=[VERDICTS],
            additionalProperties=False,
        )
    return ResponseSchema(name="verdict", json_schema=verdict, strict=True)


def read_reply(
    text: str, leaves: Sequence[str], *, several: bool, bound: bool = True
) -> Mapping[str, Scored | Unscored]:
    """A verdict for every leaf that was asked; one alone may have any name where not `bound`."""
    try:
        reply = _one_object(text)
        entries = _listed(reply) if several else [reply]
        if not bound and len(entries) == len(leaves) == 1:
            entries = [{**entries[0], "leaf": leaves[0]}]
    except _Broken as broken:
        return dict.fromkeys(leaves, broken.verdict)
    return {leaf: _verdict_of(leaf, entries, leaves) for leaf in leaves}


def read_published(text: str, leaves: Sequence[str], *, several: bool) -> dict[str, float]:
    """The score of every leaf as the published evaluator reads it in the raw reply.

    It asks for one leaf at a time and gives it no name, so digits of ours are taken out. Of a reply
    for several, each verdict is read as a reply of its own, and a leaf without one as a reply
    without a score.
    """
    entries = _listed_entries(text) if several else None
    if entries is None:
        return dict.fromkeys(leaves, parse_reply(_without_names(text, leaves)).score)
    own = {
        leaf: next((entry for entry in entries if entry.get("leaf") == leaf), {}) for leaf in leaves
    }
    return {
        leaf: parse_reply(_without_names(json.dumps(entry), leaves)).score
        for leaf, entry in own.items()
    }


def _without_names(text: str, leaves: Sequence[str]) -> str:
    """The reply without the names of leaves, and without the field for one; JSON stays JSON."""
    text = _NAMED.sub('"leaf": ""', text)
    for leaf in leaves:
        text = re.sub(rf"(?<!\w){re.escape(leaf)}(?!\w)", "", text)
    return text


def _listed_entries(text: str) -> list[dict[str, Any]] | None:
    """The verdicts of a reply for several leaves, by the published reader of JSON."""
    try:
        entries = json.loads(text)[VERDICTS]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    known = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
    return entries if known else None


def _one_object(text: str) -> dict[str, Any]:
    bare = text.strip()
    if not bare:
        raise _Broken("empty", "The reply is empty.")
    fenced = _FENCED.fullmatch(bare)
    if fenced is not None:
        bare = fenced.group(1).strip()
    decoder = json.JSONDecoder(parse_constant=_NotANumber, object_pairs_hook=_without_doubles)
    try:
        value, end = decoder.raw_decode(bare)
    except (ValueError, RecursionError) as exc:
        raise _Broken("reply_not_json", _excerpt(text)) from exc
    rest = bare[end:].lstrip()
    if rest:
        raise _Broken("reply_two_objects" if rest[0] in "{[" else "reply_not_json", _excerpt(text))
    if not isinstance(value, dict):
        raise _Broken("reply_other_shape", f"Not an object: {_excerpt(text)}")
    return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; two values under one name leave open which one is meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Broken(
            "reply_two_objects", f"A name stands twice among {[name for name, _ in pairs]}."
        )
    return found


def _listed(reply: dict[str, Any]) -> list[dict[str, Any]]:
    entries = reply.get(VERDICTS)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        came = _excerpt(repr(reply))
        raise _Broken("reply_other_shape", f"`{VERDICTS}` is not a list of objects in {came}")
    return entries


def _verdict_of(
    leaf: str, entries: Sequence[dict[str, Any]], asked: Sequence[str]
) -> Scored | Unscored:
    own = [entry for entry in entries if entry.get("leaf") == leaf]
    if len(own) > 1:
        return Unscored(cause="reply_two_objects", detail=f"{len(own)} verdicts for {leaf!r}.")
    try:
        if not own:
            raise _missing(leaf, entries, asked)
        return _scored(own[0])
    except _Broken as broken:
        return broken.verdict


def _missing(leaf: str, entries: Sequence[dict[str, Any]], asked: Sequence[str]) -> _Broken:
    others = [entry.get("leaf") for entry in entries if entry.get("leaf") not in asked]
    if others == [None]:
        came = next(entry for entry in entries if entry.get("leaf") is None)
        return _Broken("reply_other_shape", f"No leaf is named in {_excerpt(repr(came))}")
    if others:
        return _Broken("other_leaf", f"Asked for {leaf!r}, the reply is for {others[0]!r}.")
    return _Broken("score_missing", f"No verdict for {leaf!r}.")


def _scored(entry: dict[str, Any]) -> Scored:
    score, reason, used = entry.get("score"), entry.get("reason", ""), entry.get("used", [])
    if "score" not in entry:
        raise _Broken("score_missing", f"No score in {_excerpt(repr(entry))}")
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise _Broken("score_not_a_number", f"The score is {score!r}.")
    if not SCALE[0] <= score <= SCALE[-1]:
        raise _Broken("score_out_of_range", f"The score is {score!r}.")
    if not isinstance(reason, str):
        raise _Broken("reply_other_shape", f"The reason is no text: {_excerpt(repr(reason))}")
    if others := sorted(set(entry) - set(_FIELDS)):
        raise _Broken("reply_other_shape", f"Fields {others} too, in {_excerpt(repr(entry))}")
    if not isinstance(used, list) or not all(isinstance(name, str) for name in used):
        raise _Broken("reply_other_shape", f"`used` is not a list of names: {_excerpt(repr(used))}")
    names = dict.fromkeys(_writable(name) for name in used)
    return Scored(value=float(score), reason=_writable(reason).strip(), used=tuple(names))


def _writable(text: str) -> str:
    """Half of a character, which JSON can name and no file can hold, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def _excerpt(text: str) -> str:
    bare = text.strip()
    return bare if len(bare) <= _SHOWN else f"{bare[:_SHOWN]}…"
