"""Tools with several backends: gta.toml chooses one, otherwise the first that works is used."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from gta_bench.confine.workspace import Workspace
from gta_bench.tools.backends.client import Client, find_endpoint
from gta_bench.tools.contract import (
    Availability,
    Available,
    Equipment,
    Input,
    Made,
    Tool,
    Unavailable,
    require,
    text,
)
from gta_bench.tools.packages import find_missing
from gta_bench.tools.pictures import to_send

if TYPE_CHECKING:
    from PIL.Image import Image

ENDPOINT = "endpoint"


class ToolBackend(ABC, Generic[Input]):
    """One implementation of a tool; `name` is its value of `backend` in gta.toml."""

    name: ClassVar[str]

    def __init__(self, equipment: Equipment, tool: str) -> None:
        self.equipment = equipment
        self.tool = tool

    @abstractmethod
    def check(self) -> Availability:
        """Return whether it works here; fast, no network calls."""

    @property
    def label(self) -> str:
        """Return what results record; raises ToolUnavailable if the backend does not work."""
        return require(self.check()).backend

    @abstractmethod
    async def run(self, workspace: Workspace, given: Input) -> Made:
        """Do the work."""


class EndpointBackend(ToolBackend[Input]):
    """The endpoint that gta.toml gives to the tool; a subclass implements `run`."""

    name = ENDPOINT

    def check(self) -> Availability:
        """Return whether an endpoint is set, with its key."""
        found = find_missing("PIL") or find_endpoint(self.equipment, self.tool)
        return found if isinstance(found, Unavailable) else Available(found.label())

    def client(self) -> Client:
        """Return a client of the endpoint."""
        return Client(require(find_endpoint(self.equipment, self.tool)))

    async def ask(self, prompt: str, picture: "Image") -> Made:
        """Return the model's answer to a question about a picture, unchanged."""
        client = self.client()
        sent = await self.equipment.in_thread(to_send, picture)
        answer = await client.chat(prompt, [sent.picture])
        return Made((text(answer.text),), backend=client.endpoint.label(answer.model))


class BackedTool(Tool[Input]):
    """A tool with several `backends`, the preferred one first."""

    backends: ClassVar[tuple[type[ToolBackend[Any]], ...]]

    def __init__(self, equipment: Equipment) -> None:
        super().__init__(equipment)
        self._options: dict[str, ToolBackend[Input]] = {
            kind.name: kind(equipment, self.name) for kind in self.backends
        }

    def check(self) -> Availability:
        """Return whether the chosen backend works."""
        chosen = self._choose()
        return chosen if isinstance(chosen, Unavailable) else chosen.check()

    async def apply(self, workspace: Workspace, given: Input) -> Made:
        """Run the chosen backend."""
        return await require(self._choose()).run(workspace, given)

    def _choose(self) -> ToolBackend[Input] | Unavailable:
        """Return the backend of gta.toml, or the first that works. The former has no fallback."""
        settings = self.equipment.settings.tools.get(self.name)
        wanted = settings.backend if settings else None
        if wanted is None and settings and settings.endpoint:
            wanted = ENDPOINT
        if wanted in self._options:
            return self._options[wanted]
        if wanted is not None:
            known = ", ".join(self._options)
            fix = f"Set `backend` of [tools.{self.name}] in gta.toml to one of these: {known}."
            return Unavailable(f"it has no backend {wanted!r}.", fix)
        missing: list[Unavailable] = []
        for option in self._options.values():
            state = option.check()
            if isinstance(state, Available):
                return option
            missing.append(state)
        reasons = " ".join(state.reason for state in missing)
        return Unavailable(reasons, " Or: ".join(state.fix for state in missing))
