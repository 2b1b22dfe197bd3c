"""Keys and passwords: what counts as one, and where they stand in addresses and commands."""

import re
import shlex
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote, urlsplit

MARK: Final = "[redacted:{}]"
# Names that hold secrets: OPENAI_API_KEY, HF_TOKEN, AWS_SECRET_ACCESS_KEY, PGPASSWORD, --api-key.
SECRET_NAME: Final = re.compile(
    r"(^|[_-])(KEY|TOKEN)([_-]|$)|API[_-]?KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE", re.IGNORECASE
)
# Options and assignments of a command whose value is hidden: --api-key, but not --token-limit.
SECRET_OPTION: Final = re.compile(
    r"(^|[_-])(API)?(KEY|TOKEN)$|(SECRET|PASSWORD|PASSWD|PASSPHRASE)$", re.IGNORECASE
)
# Names of variables that hold no secret themselves; a password inside an address still is one.
PLAIN_NAME: Final = re.compile(
    r"(^|_)(MODEL|URL|URI|HOST|PORT|NAME|REGION|PROXY|DIR|PATH|HOME|LANG|LEVEL|VERSION|MODE)S?$",
    re.IGNORECASE,
)
# Parameters of an address that hold secrets besides those whose names say so.
SECRET_PARAMETERS: Final = frozenset({"auth", "code", "pass", "pwd", "sig", "signature"})
ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>`]+")
BEARER: Final = re.compile(r"\b(?:Bearer|Basic)\s+([^\s'\"]+)", re.IGNORECASE)
# How the keys of widely used services begin.
WELL_KNOWN: Final = re.compile(
    r"\b(?:sk-|sk_|pk_|rk_|gsk_|ghp_|gho_|github_pat_|glpat-|hf_|xai-|xox[abps]-|AKIA|AIza|eyJ)"
    r"[A-Za-z0-9_.+/=-]{12,}"
)
SHORTEST: Final = 8
LONG: Final = 16


def is_secret(value: str) -> bool:
    """Whether a value can be told from ordinary words, so that replacing it corrupts no text.

    At least 8 characters, 5 of them different, with two of: digits, small letters, capitals (one
    at the beginning does not count). Or at least 16 characters, 8 of them different.

    >>> [is_secret(value) for value in ("none", "local-key", "Barcelona", "sk-live-7f3a", "0" * 40)]
    [False, False, False, True, False]
    """
    if len(value) < SHORTEST:
        return False
    inner = value[0].lower() + value[1:]
    kinds = sum(re.search(kind, inner) is not None for kind in ("[a-z]", "[A-Z]", "[0-9]"))
    different = len(set(value))
    return (different >= 5 and kinds >= 2) or (len(value) >= LONG and different >= 8)


def secrets_in_address(address: str, name: str) -> dict[str, str]:
    """The password and the secret parameters of an address, as values with the name of its place.

    Where one of them is too plain to be replaced everywhere, the whole address is a secret.
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return {}
    user, at, _ = parts.netloc.rpartition("@")
    values = [user.partition(":")[2] or user] if at else []
    for pair in parts.query.split("&"):
        key, _, value = pair.partition("=")
        if value and (SECRET_NAME.search(key) or key.lower() in SECRET_PARAMETERS):
            values.append(value)
    spelled = {form for value in values for form in (value, unquote(value)) if is_secret(form)}
    if any(not is_secret(value) for value in values):
        spelled.add(address.partition("://")[2])
    return dict.fromkeys(sorted(spelled), name)


def secrets_in_text(text: str, name: str) -> dict[str, str]:
    """Secrets in a command: in addresses, after `--api-key`, as NAME=VALUE, by their form."""
    found: dict[str, str] = {}
    for address in ADDRESS.findall(text):
        found |= secrets_in_address(address, name)
    candidates = [*BEARER.findall(text), *WELL_KNOWN.findall(text), *_named_words(text)]
    return found | {value: name for value in candidates if is_secret(value)}


def mask_text(text: str, name: str) -> str:
    """A command as it may be shown: without its secrets, however plain they are."""
    found = secrets_in_text(text, name) | dict.fromkeys(_named_words(text), name)
    for value in sorted(found, key=len, reverse=True):
        # A plain value may be a part of other words.
        text = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", MARK.format(name), text)
    return text


def _named_words(text: str) -> Iterator[str]:
    """The values of options and assignments whose names say that they are secret."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if not SECRET_OPTION.search(option.lstrip("-")):
            continue
        if not equals and option.startswith("-") and not following.startswith("-"):
            value = following
        # A number such as --max-token 100 is a setting, in which runs can differ.
        if value and not value.isdecimal() and not value.startswith(("{", "$")):
            yield value
