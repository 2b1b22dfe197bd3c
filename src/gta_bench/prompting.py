"""Prompt files of a package, filled by a template that accepts exactly their fields."""

from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template


class Prompts:
    """The prompt files of one package, by name."""

    def __init__(self, package: str, names: tuple[str, ...]) -> None:
        self.package = package
        self.names = names

    def render(self, name: str, **fields: str) -> str:
        """The prompt with every `$field` filled; a missing or an extra field fails."""
        template = Template(self._source(name).decode("utf-8").removesuffix("\n"))
        wanted = set(template.get_identifiers())
        if wanted != set(fields):
            raise ValueError(
                f"Prompt {name!r} takes the fields {sorted(wanted)}, got {sorted(fields)}."
            )
        return template.substitute(fields)

    def digests(self) -> dict[str, str]:
        """The sha256 of every prompt file, for the manifest of a run."""
        return {name: sha256(self._source(name)).hexdigest() for name in self.names}

    def _source(self, name: str) -> bytes:
        if name not in self.names:
            raise ValueError(f"Unknown prompt {name!r}. Known prompts: {', '.join(self.names)}.")
        return _read(self.package, name)


@cache
def _read(package: str, name: str) -> bytes:
    return files(package).joinpath(name).read_bytes()
