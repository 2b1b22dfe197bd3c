"""Python checks of families. They run in the jail, with the truth appended as constants."""

import re
from importlib.resources import files

_SHARED = re.compile(r"^from gta_bench\.forge\.inside\.(\w+) import .+\n", re.MULTILINE)


def write_check(module: str, **truth: object) -> bytes:
    """Return the source of a module of this folder that ends with the truth of a task.

    What it imports from this folder is written out, because the jail does not have the package.
    """
    source = _SHARED.sub(lambda found: _read(found[1]).partition('"""\n')[2], _read(module))
    constants = "".join(f"{name} = {value!r}\n" for name, value in truth.items())
    return f"{source}\n\n{constants}".encode()


def _read(module: str) -> str:
    return files(__name__).joinpath(f"{module}.py").read_text(encoding="utf-8")
