"""Digests of users' functions: what changes them, what does not, and what has none."""

import asyncio
import functools
import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gta_bench.errors import UsageError
from gta_bench.own_code import call_function, digest_code, name_function

BASE = """
import math
from functools import cache, partial

LIMIT = 3
TABLE = {"a": [1, 2], "b": {"x"}}


def helper(x):
    return x + LIMIT


@cache
def stored(x):
    return helper(x)


def unrelated():
    return 1


class Scale:
    factor = 2

    def apply(self, x):
        return helper(x) * self.factor


def make(power):
    def raised(x, *, shift=1):
        return x**power + shift
    return raised


def main(x, start=0):
    return helper(x) + stored(x) + math.floor(start) + len(TABLE) + Scale().apply(x)


closed = make(2)
fixed = partial(main, start=1)
method = Scale().apply
short = lambda x: helper(x)
"""

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Write a text as a module of the user's, and load it anew."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text: str, name: str = "users_code") -> ModuleType:
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield write
    for name in ("users_code", "users_other"):
        sys.modules.pop(name, None)


def digest(module: ModuleType, name: str = "main") -> dict[str, str]:
    found = digest_code(getattr(module, name), "agent")
    return {key.removeprefix("users_code:"): one for key, one in found.items()}


def find_changed(one: dict[str, str], two: dict[str, str]) -> set[str]:
    return {name for name in {*one, *two} if one.get(name) != two.get(name)}


def test_a_digest_has_everything_of_the_users_that_the_function_uses(load: Load) -> None:
    parts = digest(load(BASE))
    assert {*parts} == {"main", "helper", "stored", "LIMIT", "TABLE", "Scale", "Scale.apply"}
    assert all(len(one) == 64 for one in parts.values())


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("return x + LIMIT", "return x - LIMIT", {"helper"}),
        ("LIMIT = 3", "LIMIT = 4", {"LIMIT"}),
        ('{"x"}', '{"y"}', {"TABLE"}),
        ("start=0", "start=5", {"main"}),
        ("factor = 2", "factor = 3", {"Scale"}),
        ("* self.factor", "/ self.factor", {"Scale", "Scale.apply"}),
        ("math.floor", "math.ceil", {"main"}),
        ("def main(x, start=0):", 'def main(x, start=0):\n    "Doc."', {"main"}),
        ("return 1", "return 2", set()),
        ("return x + LIMIT", "return (x\n        +  LIMIT)  # a comment", set()),
        ("LIMIT = 3", "# a comment that moves lines\n\nLIMIT = 3", set()),
    ],
)
def test_a_change_is_named_and_layout_is_none(
    load: Load, old: str, new: str, changed: set[str]
) -> None:
    assert old in BASE
    before = digest(load(BASE))
    assert find_changed(before, digest(load(BASE.replace(old, new)))) == changed


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("closed", "make(2)", "make(3)"),
        ("closed", "shift=1", "shift=2"),
        ("fixed", "start=1", "start=2"),
        ("fixed", "x + LIMIT", "x - LIMIT"),
        ("method", "method = Scale()", "method = Scale()\nmethod.factor = 7\nmethod = method"),
        ("method", "helper(x) * self", "helper(x) / self"),
        ("short", "lambda x: helper(x)", "lambda x: -helper(x)"),
        ("short", "lambda x: helper(x)", "(lambda x: 1, lambda x: helper(x + 1))[1]"),
        ("stored", "return helper(x)\n", "return -helper(x)\n"),
    ],
)
def test_closures_partials_methods_and_lambdas_have_digests(
    load: Load, name: str, old: str, new: str
) -> None:
    assert old in BASE
    found = [
        digest_code(getattr(load(text), name), "agent")
        for text in (BASE, BASE.replace(old, new), BASE)
    ]
    assert found[0] == found[2] != found[1]


def test_names_that_swap_their_functions_are_a_change(load: Load) -> None:
    text = "def a(): return 1\ndef b(): return 2\nx, y = a, b\ndef main(): return x() - y()\n"
    one, two = digest(load(text)), digest(load(text.replace("a, b\n", "b, a\n")))
    assert find_changed(one, two) == {"main"}


def test_a_value_that_was_assigned_later_counts(load: Load) -> None:
    module = load(BASE)
    before = digest(module)
    module.__dict__["LIMIT"] = 9
    assert find_changed(before, digest(module)) == {"LIMIT"}


CHANGED = """
class A:
    def apply(self, x):
        return x

    @property
    def size(self):
        return 1


def good(x):
    return x


def evil(x):
    return -x


A.size = property(lambda self: 1)
A.apply = lambda self, x: x
short = lambda x: x
A_CLASS, A = A, A()


def main(x):
    return good(x) + short(x) + A.apply(x) + A_CLASS().size
"""


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("property(lambda self: 1)", "property(lambda self: 2)", "A.size"),
        ("lambda self, x: x", "lambda self, x: -x", "A.apply"),
        ("short = lambda x: x", "short = lambda x: -x", "short"),
        ("A_CLASS, A =", "good.__code__ = evil.__code__\nA_CLASS, A =", "good"),
        ("A, A()", "A, A()\nA.level = 3", "A (value)"),
    ],
)
def test_a_change_has_the_name_that_the_user_knows(
    load: Load, old: str, new: str, changed: str
) -> None:
    """Not `<lambda>` for what was assigned to a class, nor the name of swapped code."""
    assert old in CHANGED
    before = digest(load(CHANGED))
    assert find_changed(before, digest(load(CHANGED.replace(old, new)))) == {changed}


def test_a_decorated_function_keeps_its_name(load: Load) -> None:
    text = """
from functools import wraps

def twice(function):
    @wraps(function)
    def wrapper(x):
        return 2 * function(x)
    return wrapper

@twice
def helper(x):
    return x + 1

def main(x):
    return helper(x)
"""
    before = digest(load(text))
    assert find_changed(before, digest(load(text.replace("x + 1", "x + 2")))) == {"helper"}
    assert find_changed(before, digest(load(text.replace("2 * f", "3 * f")))) == {
        "twice.<locals>.wrapper"
    }


SHELL = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from gta_bench.own_code import NoDigestError, digest_code

shell, found = InteractiveShell(), []
for cell in json.load(sys.stdin):
    shell.run_cell(cell, store_history=True).raise_error()
    try:
        found.append(digest_code(shell.user_ns["agent"], "agent"))
    except NoDigestError as exc:
        found.append(str(exc))
print(json.dumps(found))
"""


def test_cells_of_a_notebook_have_digests(tmp_path: Path) -> None:
    """IPython compiles each statement of a cell by itself, and other bytecode comes out."""
    agent = "def agent(history, tools): return str(math.floor(2.5))"
    cells = [
        agent,
        f"import math\n{agent}",
        f"import math\nfrom __future__ import annotations\n{agent}",
        f"%%capture\nimport math\n{agent}",
        f"%%time\n{agent}",
        f"%%prun -q\n{agent}",
    ]
    done = subprocess.run(
        [sys.executable, "-c", SHELL],
        input=json.dumps(cells),
        env={**os.environ, "IPYTHONDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert [{*one} for one in found[:4]] == [{"agent"}] * 4
    assert found[1] == found[2] == found[3]
    assert found[4] == (
        "The agent 'agent' has no digest: 'agent' was defined in a cell with a magic such as "
        "%%time, which hides its source; define it in a cell without one."
    )
    assert found[5].endswith("in a cell of a notebook without a magic such as %%prun.")


def test_functions_that_name_each_other_and_values_that_contain_themselves(load: Load) -> None:
    text = "LOOP = []\nLOOP.append(LOOP)\ndef a(n): return b(n)\ndef b(n): return LOOP or a(n)\n"
    assert {*digest(load(text), "a")} == {"a", "b", "LOOP"}


def test_another_module_of_the_user_is_followed_by_what_is_used(load: Load) -> None:
    other = "def used(): return {}\ndef unused(): return 3\n"
    text = "import users_other\ndef main(): return users_other.used()\n"
    load(other.format(1), name="users_other")  # type: ignore[call-arg]
    before = digest(load(text))
    load(other.format(2), name="users_other")  # type: ignore[call-arg]
    assert find_changed(before, digest(load(text))) == {"users_other:used"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import threading\nlock = threading.Lock()\ndef main(): return lock",
         r"it uses 'lock', and a lock cannot be compared .*inside the function"),
        ("import users_code\ndef main(): return vars(users_code)", "'users_code' is your own"),
        ("def main():\n    from .other import x\n    return x", "imports your own '.other'"),
        ("exec('def main(): return 1')", "source of 'main' is not known"),
        ("def make(lock):\n    return lambda: lock\nimport threading as t\nmain = make(t.Lock())",
         "it uses 'lock'"),
    ],
)  # fmt: skip
def test_what_has_no_sound_digest_is_refused_in_one_line(
    load: Load, text: str, problem: str
) -> None:
    with pytest.raises(UsageError, match=f"^The agent .* has no digest: .*{problem}") as raised:
        digest(load(text))
    assert "\n" not in str(raised.value)


def test_a_file_that_changed_after_it_was_loaded_is_refused(load: Load, tmp_path: Path) -> None:
    """Otherwise the digest would be one of code that did not run."""
    module = load(BASE)
    changed = BASE.replace("x + LIMIT", "x * LIMIT")
    (tmp_path / "users_code.py").write_text(changed, encoding="utf-8")
    with pytest.raises(UsageError, match="was changed after 'helper' was loaded; load it"):
        digest(module)


def test_code_that_has_run_has_the_same_digest(load: Load) -> None:
    module = load(BASE)
    before = digest(module)
    for number in range(50):
        module.main(number)
    assert digest(module) == before


def test_functions_of_installed_packages_count_by_name() -> None:
    assert digest_code(len, "metric").keys() == {"len"}
    assert digest_code(functools.reduce, "metric") != digest_code(len, "metric")


def test_names_of_functions(load: Load) -> None:
    module = load(BASE)
    functions: list[Any] = [module.main, module.fixed, module.method, module.Scale()]
    assert [name_function(one) for one in functions] == ["main", "main", "apply", "Scale"]


def test_plain_functions_run_in_a_thread_and_coroutines_do_not() -> None:
    async def where() -> str:
        return threading.current_thread().name

    def plain() -> str:
        return threading.current_thread().name

    here = threading.current_thread().name
    assert asyncio.run(call_function(where)) == here
    assert asyncio.run(call_function(plain)) == "gta-own-code"
    assert asyncio.run(call_function(lambda: where())) == here
