"""Print how much disk the core and each extra take, from what is installed in this environment."""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution, requires
from pathlib import Path

from packaging.requirements import Requirement

MEGABYTE = 1_000_000


def main() -> None:
    """A row for the core, and one for what each extra adds to it."""
    core = closure("gta-bench", "")
    print(f"| core | {size(core):,.0f} | {len(core)} |")
    text = "\n".join(requires("gta-bench") or ())
    for extra in sorted(set(re.findall(r"extra == '([\w-]+)'|extra == \"([\w-]+)\"", text))):
        name = "".join(extra)
        added = closure("gta-bench", name)
        missing = sorted(one for one, found in added.items() if found is None)
        more = {one: found for one, found in added.items() if one not in core}
        note = f" (not installed here: {', '.join(missing)})" if missing else ""
        print(f"| `{name}` | + {size(more):,.0f} | + {len(more)} |{note}")


def closure(name: str, extra: str) -> dict[str, Distribution | None]:
    """The distributions that one needs with an extra; None where one is not installed."""
    found: dict[str, Distribution | None] = {}
    open_ = [(name, extra)]
    while open_:
        wanted, own = open_.pop()
        key = re.sub(r"[-_.]+", "-", wanted).lower()
        if key in found and not own:
            continue
        try:
            found[key] = distribution(wanted)
        except PackageNotFoundError:
            found[key] = None
            continue
        for line in requires(wanted) or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": own}):
                open_ += [(needed.name, one) for one in (needed.extras or {""})]
                open_ += [(needed.name, "")] if needed.extras else []
    return found


def size(found: dict[str, Distribution | None]) -> float:
    """Megabytes of all files that these distributions brought."""
    paths = {
        Path(str(path.locate()))
        for one in found.values()
        for path in (one.files if one is not None and one.files else ())
    }
    return sum(path.stat().st_size for path in paths if path.is_file()) / MEGABYTE


if __name__ == "__main__":
    main()
