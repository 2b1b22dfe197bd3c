"""Keys and passwords taken out of whatever is about to be kept."""

from collections.abc import Mapping
from urllib.parse import quote

from pydantic import JsonValue

MARK = "[redacted:{}]"


class Redactor:
    """Puts a mark in place of every secret; secrets are values with the names of their places."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        spelled = {
            form: MARK.format(name)
            for value, name in secrets.items()
            for form in (value, quote(value, safe=""))
        }
        # The longest first: one secret may be the beginning of another.
        self._marks = sorted(spelled.items(), key=lambda item: -len(item[0]))

    def text(self, text: str) -> str:
        """The text without secrets."""
        for secret, mark in self._marks:
            text = text.replace(secret, mark)
        return text

    def data(self, data: bytes) -> bytes:
        """The bytes with stars over secrets: the length stays, so most file kinds stay readable."""
        for secret, _ in self._marks:
            found = secret.encode()
            data = data.replace(found, b"*" * len(found))
        return data

    def value(self, value: JsonValue) -> JsonValue:
        """The value without secrets, in keys as well."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        return value
