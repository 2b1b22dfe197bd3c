"""Prompt files of a package, rendered with exactly the fields that they declare."""

from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template


class Prompts:
    """The prompt files of one package, by name.

    >>> prompts = Prompts("gta_bench.exports.templates", ("instruction.md",))
    >>> prompts.render("instruction.md", request="Hello", inputs="")[:5]
    'Hello'
    """

    def __init__(self, package: str, names: tuple[str, ...]) -> None:
        self.package = package
        self.names = names

    def render(self, name: str, **fields: str) -> str:
        """Fill every `$field`; raise ValueError for a missing or an unknown field."""
        template = Template(self._source(name).decode("utf-8").removesuffix("\n"))
        wanted = set(template.get_identifiers())
        if wanted != set(fields):
            raise ValueError(
                f"Prompt {name!r} has the fields {sorted(wanted)}, but got {sorted(fields)}."
            )
        return template.substitute(fields)

    def digests(self) -> dict[str, str]:
        """Return the sha256 of every prompt file, for the manifest of a run."""
        return {name: sha256(self._source(name)).hexdigest() for name in self.names}

    def _source(self, name: str) -> bytes:
        if name not in self.names:
            raise ValueError(f"Unknown prompt {name!r}. Known prompts: {', '.join(self.names)}.")
        return _read(self.package, name)


@cache
def _read(package: str, name: str) -> bytes:
    return files(package).joinpath(name).read_bytes()
