"""Tools with several backends: the settings choose one, or the first that works here does."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolUnavailable
from gta_bench.tools.contract import (
    Availability,
    Available,
    Equipment,
    Input,
    Made,
    Tool,
    Unavailable,
)

ENDPOINT = "endpoint"


class ToolBackend(ABC, Generic[Input]):
    """One way to do a tool's work; `name` is what `backend` in gta.toml may say."""

    name: ClassVar[str]

    def __init__(self, equipment: Equipment, tool: str) -> None:
        self.equipment = equipment
        self.tool = tool

    @abstractmethod
    def check(self) -> Availability:
        """Whether it works here; cheap, and without a network call."""

    @property
    def label(self) -> str:
        """What results record of this backend; raises where it does not work."""
        state = self.check()
        if isinstance(state, Unavailable):
            raise ToolUnavailable(state.reason, mend=state.mend)
        return state.backend

    @abstractmethod
    async def run(self, workspace: Workspace, given: Input) -> Made:
        """Do the work."""


class BackedTool(Tool[Input]):
    """A tool whose work is done by one of its `backends`, the preferred one first."""

    backends: ClassVar[tuple[type[ToolBackend[Any]], ...]]

    def __init__(self, equipment: Equipment) -> None:
        super().__init__(equipment)
        self._options: dict[str, ToolBackend[Input]] = {
            kind.name: kind(equipment, self.name) for kind in self.backends
        }

    def check(self) -> Availability:
        """The chosen backend's state."""
        chosen = self._chosen()
        return chosen if isinstance(chosen, Unavailable) else chosen.check()

    async def apply(self, workspace: Workspace, given: Input) -> Made:
        """Let the chosen backend do the work."""
        chosen = self._chosen()
        if isinstance(chosen, Unavailable):
            raise ToolUnavailable(chosen.reason, mend=chosen.mend)
        return await chosen.run(workspace, given)

    def _chosen(self) -> ToolBackend[Input] | Unavailable:
        """What gta.toml names; else the first that works. A named one is never replaced."""
        settings = self.equipment.settings.tools.get(self.name)
        wanted = settings.backend if settings else None
        if wanted is None and settings and settings.endpoint:
            wanted = ENDPOINT
        if wanted is None:
            return self._first()
        if wanted in self._options:
            return self._options[wanted]
        known = ", ".join(self._options)
        mend = f"Write one of these as `backend` of [tools.{self.name}] in gta.toml: {known}."
        return Unavailable(f"it has no backend {wanted!r}.", mend)

    def _first(self) -> ToolBackend[Input] | Unavailable:
        states = {name: option.check() for name, option in self._options.items()}
        for name, state in states.items():
            if isinstance(state, Available):
                return self._options[name]
        lacks = [state for state in states.values() if isinstance(state, Unavailable)]
        return Unavailable(
            " ".join(state.reason for state in lacks), " Or: ".join(state.mend for state in lacks)
        )
