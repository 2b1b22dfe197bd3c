"""Plugins imported beside a stand-in for the package that they extend."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import REPOSITORY


@contextmanager
def imported(
    name: str,
    package: Mapping[str, Mapping[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    *,
    plugin: str | None = None,
) -> Iterator[Any]:
    """The plugin of that package, which has modules with this content; forgotten at the end."""
    plugin = plugin or f"gta_bench_{name}"
    for module, content in package.items():
        made = ModuleType(module)
        vars(made).update(content)
        monkeypatch.setitem(sys.modules, module, made)
    monkeypatch.syspath_prepend(str(REPOSITORY / "plugins" / name / "src"))
    _forget(plugin)
    yield import_module(plugin)
    _forget(plugin)


def _forget(plugin: str) -> None:
    for name in [name for name in sys.modules if name.startswith(plugin)]:
        del sys.modules[name]
