"""The examples in docstrings are run; those of the API, which need runs, by tests/test_api.py."""

import doctest
import importlib
from pathlib import Path

import pytest

from tests.docs.examples import modules_with_examples


@pytest.mark.parametrize("name", [one for one in modules_with_examples() if one != "gta_bench.api"])
def test_the_examples_of_a_module_work(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.attempted > 0 and found.failed == 0
