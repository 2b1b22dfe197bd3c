"""All families by name."""

from collections.abc import Mapping, Sequence
from typing import Final

from gta_bench.errors import UsageError, suggest_name
from gta_bench.forge.atomic import AtomicFamily
from gta_bench.forge.draft import TaskFamily
from gta_bench.forge.families import (
    annotate,
    atomic_bars,
    atomic_equation,
    atomic_graph,
    atomic_label,
    atomic_prices,
    atomic_receipt,
    atomic_sign,
    budget,
    bundle,
    chart,
    clean,
    clip,
    cut,
    deck,
    invoices,
    page,
    report,
    sales,
    schedule,
    terms,
)

FAMILIES: Final[Mapping[str, TaskFamily]] = {
    one.name: one
    for one in (
        annotate.FAMILY,
        budget.FAMILY,
        bundle.FAMILY,
        chart.FAMILY,
        clean.FAMILY,
        clip.FAMILY,
        cut.FAMILY,
        deck.FAMILY,
        invoices.FAMILY,
        page.FAMILY,
        report.FAMILY,
        sales.FAMILY,
        schedule.FAMILY,
        terms.FAMILY,
    )
}

ATOMIC_FAMILIES: Final[Mapping[str, AtomicFamily]] = {
    one.name: one
    for one in (
        atomic_bars.FAMILY,
        atomic_equation.FAMILY,
        atomic_graph.FAMILY,
        atomic_label.FAMILY,
        atomic_prices.FAMILY,
        atomic_receipt.FAMILY,
        atomic_sign.FAMILY,
    )
}


def find_families(names: Sequence[str]) -> list[TaskFamily]:
    """Return the families with these names; `all` means every one."""
    if "all" in names:
        return [*FAMILIES.values()]
    for name in names:
        if name in ATOMIC_FAMILIES:
            raise UsageError(
                f"{name} is an atomic family: `gta forge {name}` writes its tasks, which cannot "
                "be used here."
            )
        if name not in FAMILIES:
            known = [*FAMILIES, *ATOMIC_FAMILIES]
            raise UsageError(
                f"There is no family {name!r}{suggest_name(name, known)} "
                "`gta forge --list` shows all."
            )
    return [FAMILIES[name] for name in dict.fromkeys(names)]


def find_atomic_families(names: Sequence[str]) -> list[AtomicFamily]:
    """Return the atomic families with these names; `all-atomic` means every one.

    An empty list means that none of the names is atomic; both kinds together are refused.
    """
    others = [name for name in names if name not in (*ATOMIC_FAMILIES, "all-atomic")]
    every = "all-atomic" in names
    atomic = [name for name in (ATOMIC_FAMILIES if every else names) if name in ATOMIC_FAMILIES]
    if atomic and others:
        raise UsageError(
            f"{atomic[0]} is an atomic family and {others[0]} is not: forge them separately, each "
            "into its own folder."
        )
    return [ATOMIC_FAMILIES[name] for name in dict.fromkeys(atomic)]
