"""All families by name."""

from collections.abc import Mapping, Sequence
from typing import Final

from gta_bench.errors import UsageError, suggest_name
from gta_bench.forge.draft import Family
from gta_bench.forge.families import budget, deck, page, report, sales

FAMILIES: Final[Mapping[str, Family]] = {
    one.name: one for one in (budget.FAMILY, deck.FAMILY, page.FAMILY, report.FAMILY, sales.FAMILY)
}


def find_families(names: Sequence[str]) -> list[Family]:
    """Return the families with these names; `all` means every one."""
    if "all" in names:
        return [*FAMILIES.values()]
    for name in names:
        if name not in FAMILIES:
            raise UsageError(
                f"There is no family {name!r}{suggest_name(name, [*FAMILIES])} "
                "`gta forge --list` shows all."
            )
    return [FAMILIES[name] for name in dict.fromkeys(names)]
