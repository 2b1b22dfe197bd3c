"""Remove secrets from a trace before anything of it is written or shown."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from pydantic import JsonValue

from gta_bench.authoring.traces.observed import ObservedTrace
from gta_bench.redaction import (
    Redactor,
    current_redactor,
    find_text_secrets,
    is_secret,
    protect,
)

SOURCE: Final = "trace"  # in the marks of secrets
LONGEST_LINE: Final = 2_000
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
# Names of values that are secrets. A mere `key` is rather that of a ticket or a table, and a token
# may be that of the next page.
_SECRET_FIELD: Final = re.compile(
    r"(api|access|private|auth)[_-]?key|secret|passw(or)?d|passphrase|authorization"
    r"|(?<!next)(?<!page)(?<!next[_-])(?<!page[_-])token$",
    re.IGNORECASE,
)
# The same in sentences, such as "password: …".
_SAID: Final = re.compile(
    r"(?:passw(?:or)?d|passphrase|secret|api[ _-]?key)\W{0,3}(?:is\b|[:=])\s*[\"'`]?([^\s\"'`]+)",
    re.IGNORECASE,
)
_MAY_HAVE_SECRET: Final = re.compile(
    r"://|bearer|basic|key|token|secret|passw|passphrase|sk[-_]|[pr]k_|gh[po]_|github_pat|glpat"
    r"|hf_|xai-|xox|AKIA|AIza|eyJ",
    re.IGNORECASE,
)


def redact_trace(trace: ObservedTrace) -> ObservedTrace:
    """Return the trace without secrets, those of this process and those that look like secrets.

    What was found is kept out of everything that this process writes from now on.
    """
    dumped: JsonValue = trace.model_dump(mode="json", exclude={"files": {"__all__": {"data"}}})
    found: dict[str, str] = {}
    for text in iter_texts(dumped):
        found |= dict.fromkeys(_PRIVATE_KEY.findall(text), SOURCE)
        for line in text.splitlines() if _MAY_HAVE_SECRET.search(text) else ():
            for start in range(0, len(line), LONGEST_LINE):
                part = line[start : start + 2 * LONGEST_LINE]
                found |= find_text_secrets(part, SOURCE)
                said = (one.rstrip(".,;:!?)") for one in _SAID.findall(part))
                found |= {one: SOURCE for one in said if is_secret(one)}
    found |= dict.fromkeys(_iter_named_secrets(dumped), SOURCE)
    protect(found)
    redactor = current_redactor()
    clean = _map_texts(dumped, redactor)
    files = [
        one.model_copy(
            update={
                "name": redactor.text(encodable(one.name)),
                "data": None if one.data is None else redactor.data(one.data),
            }
        )
        for one in trace.files
    ]
    read = ObservedTrace.model_validate(clean)
    notes = read.notes
    if clean != _map_texts(dumped, Redactor({})):
        notes = (*notes, "Secrets were removed: `[redacted:…]` stands for each.")
    return read.model_copy(update={"files": tuple(files), "notes": notes})


def iter_texts(value: JsonValue) -> Iterator[str]:
    """Yield every text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from iter_texts(one)


def _iter_named_secrets(value: JsonValue) -> Iterator[str]:
    """Yield values whose key is the name of a secret, also in JSON that is written as text."""
    if isinstance(value, dict):
        for key, one in value.items():
            if isinstance(one, str) and _SECRET_FIELD.search(key) and is_secret(one):
                yield one
            yield from _iter_named_secrets(one)
    elif isinstance(value, list):
        for one in value:
            yield from _iter_named_secrets(one)
    elif isinstance(value, str) and value[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            yield from _iter_named_secrets(json.loads(value))


def _map_texts(value: JsonValue, redactor: Redactor) -> JsonValue:
    if isinstance(value, str):
        return redactor.text(encodable(value))
    if isinstance(value, list):
        return [_map_texts(one, redactor) for one in value]
    if isinstance(value, dict):
        return {
            redactor.text(encodable(key)): _map_texts(one, redactor) for key, one in value.items()
        }
    return value


def encodable(text: str) -> str:
    """Return a text without lone surrogates, which no file can have."""
    return text.encode("utf-8", "replace").decode()
