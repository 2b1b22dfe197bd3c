"""Which programs a test needs, and what happens to tests that are skipped.

`needs("ffmpeg")` marks a test, a class or a module. Where one of the programs is missing, the test
is skipped before its fixtures run, and the reason names the program. The outcome of a test that
ran is never changed. `--no-skips` turns every skip into a failure: continuous integration installs
every program, so a skip there is a gap.
"""

import asyncio
import shutil
from collections.abc import Generator
from functools import cache
from typing import Any

import pytest

from gta_bench.errors import EnvironmentProblem

# The names under which a program may be installed, and the Debian packages that bring it.
PROGRAMS = {
    "bwrap": (("bwrap",), "bubblewrap"),
    "chromium": (("chromium",), "chromium"),
    "ffmpeg": (("ffmpeg",), "ffmpeg"),
    "flite": (("flite",), "flite"),
    "npm": (("npm",), "nodejs npm"),
    "pasta": (("pasta",), "iproute2 nftables passt"),
    "soffice": (("soffice", "libreoffice"), "libreoffice-{calc,impress,math,writer}-nogui"),
}


def needs(*programs: str) -> pytest.MarkDecorator:
    """A mark for tests that cannot run without these programs."""
    _check_names(programs)
    return pytest.mark.needs(*programs)


def require_programs(*programs: str) -> None:
    """Skip the running test unless all programs are here; for fixtures and helpers."""
    _check_names(programs)
    for name in programs:
        problem = _problem(name)
        if problem is not None:
            pytest.skip(problem)


def _check_names(programs: tuple[str, ...]) -> None:
    unknown = sorted(set(programs) - PROGRAMS.keys())
    if unknown:
        known = ", ".join(sorted(PROGRAMS))
        raise ValueError(f"needs(): unknown programs {unknown}. Known programs: {known}.")


@cache
def _problem(name: str) -> str | None:
    """Why tests cannot use a program on this machine, or None if they can."""
    files, packages = PROGRAMS[name]
    if not any(map(shutil.which, files)):
        return f"{name} is not installed: apt install {packages}"
    if name == "pasta":
        return _pasta_problem()
    return _bwrap_problem() if name == "bwrap" else None


def _bwrap_problem() -> str | None:
    """Some containers and kernels have the program and forbid what it does."""
    from gta_bench.confine.probe import probe

    (found,) = (one for one in asyncio.run(probe()) if one.kind == "bubblewrap")
    return None if found.works else f"bwrap does not work here: {found.reason}"


def _pasta_problem() -> str | None:
    from gta_bench.confine.network import require_network

    try:
        asyncio.run(require_network())
    except EnvironmentProblem as exc:
        return str(exc)
    return None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="a skipped test is a failure")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*programs): skip where one of them is missing")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        require_programs(*mark.args)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Under `--no-skips`, a skipped test fails with the reason it gave.

    One that is expected to fail is a skip by another name: whether it ran says nothing.
    """
    report = yield
    if item.config.getoption("--no-skips"):
        if hasattr(report, "wasxfail"):
            report.outcome = "failed"
            report.longrepr = f"--no-skips: expected to fail: {report.wasxfail}"
            del report.wasxfail
        else:
            _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a module that skips itself while it is imported."""
    report = yield
    if collector.config.getoption("--no-skips"):
        _refuse_skip(report)
    return report


def _refuse_skip(report: Any) -> None:
    if report.outcome == "skipped":
        path, line, reason = report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{path}:{line}: --no-skips: {reason}"
