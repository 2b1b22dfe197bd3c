"""Read a judge's reply strictly: a score that was asked for, or the reason why there is none.

A reply must be one JSON object, bare or alone inside one code fence. Nothing is searched for in
prose, rounded, clamped or filled in.
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
    """NaN or an infinity, which JSON does not allow but some models write."""

    text: str


def reply_schema(leaves: Sequence[str], *, several: bool) -> ResponseSchema:
    """Return the schema of a reply; `leaves` are all ids of the task, so that calls share a prefix.

    Providers put the schema before the prompt, so a schema with only the asked leaf would defeat
    their prefix caches. The score comes last, after the reason that it follows from.
    """
    fields = {
        "leaf": JSONSchema(type="string", enum=list(leaves)),
        "used": JSONSchema(type="array", items=JSONSchema(type="string")),
        "reason": JSONSchema(type="string"),
        "score": JSONSchema(type="integer", enum=list(SCALE)),
    }
    verdict = _object_schema(fields)
    if several:
        verdict = _object_schema({VERDICTS: JSONSchema(type="array", items=verdict)})
    return ResponseSchema(name="verdict", json_schema=verdict, strict=True)


def _object_schema(fields: dict[str, JSONSchema]) -> JSONSchema:
    return JSONSchema(
        type="object", properties=fields, required=list(fields), additionalProperties=False
    )


def read_reply(
    text: str, leaves: Sequence[str], *, several: bool, bound: bool = True
) -> Mapping[str, Scored | Unscored]:
    """Return a verdict for every asked leaf; unless `bound`, a single one may have any name."""
    try:
        reply = _parse_object(text)
        entries = _entries(reply) if several else [reply]
        if not bound and len(entries) == len(leaves) == 1:
            entries = [{**entries[0], "leaf": leaves[0]}]
    except _Broken as broken:
        return dict.fromkeys(leaves, broken.verdict)
    return {leaf: _verdict_of(leaf, entries, leaves) for leaf in leaves}


def read_published(text: str, leaves: Sequence[str], *, several: bool) -> dict[str, float]:
    """Return the score of every leaf as the published evaluator reads it in the raw reply.

    That evaluator asks for one leaf at a time and gives it no name, so our names and their digits
    are removed. In a reply for several leaves each verdict is read as a reply of its own, and a
    leaf without a verdict as a reply without a score.
    """
    entries = _published_entries(text) if several else None
    texts = dict.fromkeys(leaves, text)
    if entries is not None:
        for leaf in leaves:
            own = next((entry for entry in entries if entry.get("leaf") == leaf), {})
            texts[leaf] = json.dumps(own)
    return {leaf: parse_reply(_remove_names(own, leaves)).score for leaf, own in texts.items()}


def _remove_names(text: str, leaves: Sequence[str]) -> str:
    """Remove the names of leaves and the value of the field for one; JSON stays JSON."""
    text = _NAMED.sub('"leaf": ""', text)
    for leaf in leaves:
        text = re.sub(rf"(?<!\w){re.escape(leaf)}(?!\w)", "", text)
    return text


def _published_entries(text: str) -> list[dict[str, Any]] | None:
    """Return the verdicts of a reply for several leaves, as the published reader parses JSON."""
    try:
        entries = json.loads(text)[VERDICTS]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    known = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
    return entries if known else None


def _parse_object(text: str) -> dict[str, Any]:
    bare = text.strip()
    if not bare:
        raise _Broken("empty", "The reply is empty.")
    fenced = _FENCED.fullmatch(bare)
    if fenced is not None:
        bare = fenced.group(1).strip()
    decoder = json.JSONDecoder(parse_constant=_NotANumber, object_pairs_hook=_reject_doubles)
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


def _reject_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object; raise if a name has two values, as either could be meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Broken("reply_two_objects", f"A name occurs twice in {names}.")
    return found


def _entries(reply: dict[str, Any]) -> list[dict[str, Any]]:
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
            raise _no_verdict(leaf, entries, asked)
        return _read_score(own[0])
    except _Broken as broken:
        return broken.verdict


def _no_verdict(leaf: str, entries: Sequence[dict[str, Any]], asked: Sequence[str]) -> _Broken:
    others = [entry.get("leaf") for entry in entries if entry.get("leaf") not in asked]
    if others == [None]:
        came = next(entry for entry in entries if entry.get("leaf") is None)
        return _Broken("reply_other_shape", f"No leaf is named in {_excerpt(repr(came))}")
    if others:
        return _Broken("other_leaf", f"Asked for {leaf!r}, the reply is for {others[0]!r}.")
    return _Broken("score_missing", f"No verdict for {leaf!r}.")


def _read_score(entry: dict[str, Any]) -> Scored:
    score, reason, used = entry.get("score"), entry.get("reason", ""), entry.get("used", [])
    if "score" not in entry:
        raise _Broken("score_missing", f"No score in {_excerpt(repr(entry))}")
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise _Broken("score_not_a_number", f"The score is {score!r}.")
    if not SCALE[0] <= score <= SCALE[-1]:
        raise _Broken("score_out_of_range", f"The score is {score!r}.")
    if not isinstance(reason, str):
        raise _Broken("reply_other_shape", f"The reason is not a text: {_excerpt(repr(reason))}")
    if others := sorted(set(entry) - set(_FIELDS)):
        raise _Broken("reply_other_shape", f"Unknown fields {others} in {_excerpt(repr(entry))}")
    if not isinstance(used, list) or not all(isinstance(name, str) for name in used):
        raise _Broken("reply_other_shape", f"`used` is not a list of names: {_excerpt(repr(used))}")
    names = dict.fromkeys(make_writable(name) for name in used)
    return Scored(value=float(score), reason=make_writable(reason).strip(), used=tuple(names))


def make_writable(text: str) -> str:
    """Replace lone surrogates, which JSON can write but UTF-8 cannot, by question marks."""
    return text.encode("utf-8", "replace").decode()


def _excerpt(text: str) -> str:
    bare = text.strip()
    return bare if len(bare) <= _SHOWN else f"{bare[:_SHOWN]}…"
