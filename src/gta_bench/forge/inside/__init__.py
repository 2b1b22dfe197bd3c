"""Python checks of families. They run in the jail, with the truth appended as constants."""

import re
from collections.abc import Iterable
from importlib.resources import files

_SHARED = re.compile(r"^from gta_bench\.forge\.inside\.(\w+) import .+\n", re.MULTILINE)
_CHECK = re.compile(r"^def ([a-z]\w*)\(work: Any\)", re.MULTILINE)
_WRAP = "globals().update({name: _guard(globals()[name]) for name in FUNCTIONS})\n"


def write_check(module: str, **truth: object) -> bytes:
    """Return the source of a module of this folder that ends with the truth of a task.

    What it imports from this folder is written out, because the jail does not have the package.
    """
    source = _SHARED.sub(lambda found: _read(found[1]).partition('"""\n')[2], _read(module))
    constants = "".join(f"{name} = {value!r}\n" for name, value in truth.items())
    return guard_check(f"{source}\n\n{constants}", _CHECK.findall(source))


def guard_check(source: str, functions: Iterable[str]) -> bytes:
    """Return the source of checks whose functions decide every work.

    A work could otherwise replace its zeros by a check that failed, which gives no score.
    """
    guard = _read("guard").partition('"""\n')[2]
    return f"{source.rstrip()}\n\n{guard}\n\nFUNCTIONS = {[*functions]!r}\n{_WRAP}".encode()


def _read(module: str) -> str:
    return files(__name__).joinpath(f"{module}.py").read_text(encoding="utf-8")
