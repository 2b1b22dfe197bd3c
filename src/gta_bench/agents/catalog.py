"""The agents by name; importing this table imports none of them."""

from importlib import import_module
from typing import cast

from gta_bench.agents.contract import AgentFactory
from gta_bench.errors import UsageError

CATALOG = {
    "toolcalling": "gta_bench.agents.toolcalling:toolcalling",
    "react": "gta_bench.agents.react:react",
    "react-upstream": "gta_bench.agents.react:react_upstream",
    "gold": "gta_bench.agents.bounds:gold",
    "silent": "gta_bench.agents.bounds:silent",
}
DEFAULT_AGENT = "toolcalling"
WITHOUT_MODEL = frozenset({"gold", "silent"})
NEED_REFERENCES = frozenset({"gold"})


def load_agent(name: str) -> AgentFactory:
    """The factory of a known agent, or of a user's own one given as `pkg.mod:function`."""
    target = CATALOG.get(name, name)
    module_name, colon, attribute = target.partition(":")
    if not (module_name and colon and attribute) or module_name.startswith("."):
        known = ", ".join(CATALOG)
        raise UsageError(f"Unknown agent {name!r}. Known agents: {known}, or `pkg.mod:function`.")
    try:
        factory = getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError) as exc:
        raise UsageError(
            f"Cannot load agent {name!r}: {exc}. Known agents: {', '.join(CATALOG)}."
        ) from exc
    if not callable(factory):
        raise UsageError(f"Agent {name!r} is not a function that takes a Setup.")
    return cast(AgentFactory, factory)
