"""Good code in the jail: values, drivers, files, errors that help, many at once."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailLimits, SnippetResult
from gta_bench.confine.walls import Python
from gta_bench.errors import ConfinedError, ToolError, ToolUnavailable
from tests.confine.corpus import marked_limits, processes_with, wait_until_gone
from tests.confine.users import environment

QUICK = JailLimits(wall_seconds=20.0, cpu_seconds=10, memory_bytes=512 * MIB)

BYTES_DRIVER = """
def prepare():
    return {"base": 40}

def finish(names):
    return bytes([names["base"] + names["more"]])
"""


def run(jail: Jail, code: str, **options: object) -> SnippetResult:
    limits = options.pop("limits", QUICK)
    return asyncio.run(jail.run_snippet(code, limits=limits, **options))  # type: ignore[arg-type]


def failure(jail: Jail, code: str, **options: object) -> ConfinedError:
    with pytest.raises(ConfinedError) as caught:
        run(jail, code, **options)
    return caught.value


class TestResults:
    def test_the_value_of_solution_comes_back_as_text(self, jail: Jail) -> None:
        result = run(jail, "def solution():\n    return [1, 2.5, 'ä€😀']")
        assert result.value == "[1, 2.5, 'ä€😀']"

    def test_the_result_says_which_jail_it_was_and_how_long_it_took(self, jail: Jail) -> None:
        report = run(jail, "def solution(): return 1").report
        assert report.jail == jail.kind
        assert report.exit_status == 0
        assert 0 < report.seconds < 60

    def test_a_driver_gives_names_and_makes_bytes_of_what_the_code_defined(
        self, jail: Jail
    ) -> None:
        assert run(jail, "more = 2", driver=BYTES_DRIVER).value == b"*"

    def test_half_a_character_in_a_text_becomes_a_question_mark(self, jail: Jail) -> None:
        assert run(jail, r"def solution(): return 'a\ud800b'").value == "a?b"

    def test_what_the_code_prints_is_kept_apart_from_its_value(self, jail: Jail) -> None:
        result = run(jail, "print('hello')\ndef solution(): return 1")
        assert (result.value, result.printed) == ("1", "hello\n")

    def test_files_of_the_driver_lie_in_the_current_folder(self, jail: Jail) -> None:
        code = "def solution(): return open('cache/fonts.json').read()"
        assert run(jail, code, files={"cache/fonts.json": b"[]"}).value == "[]"

    def test_code_may_write_to_its_scratch_folder(self, jail: Jail) -> None:
        code = """
import tempfile
def solution():
    with open("a.txt", "w") as f: f.write("kept")
    with tempfile.TemporaryFile() as t: t.write(b"x")
    return open("a.txt").read()
"""
        assert run(jail, code).value == "kept"

    def test_one_call_sees_nothing_of_the_call_before(self, jail: Jail) -> None:
        run(jail, "open('a.txt', 'w').write('x')\ndef solution(): return 1")
        code = "import os\ndef solution(): return os.path.exists('a.txt')"
        assert run(jail, code).value == "False"

    def test_the_order_of_sets_is_the_same_in_every_call(self, jail: Jail) -> None:
        code = "def solution(): return list({'a', 'b', 'c', 'd', 'e', 'f', 'g'})"
        assert len({run(jail, code).value for _ in range(3)}) == 1

    def test_a_few_threads_are_allowed(self, jail: Jail) -> None:
        code = """
from concurrent.futures import ThreadPoolExecutor
def solution():
    with ThreadPoolExecutor(4) as pool: return sum(pool.map(abs, range(10)))
"""
        assert run(jail, code).value == "45"

    def test_the_standard_library_can_still_be_imported(self, jail: Jail) -> None:
        code = "def solution():\n    import statistics, decimal, fractions\n    return 1"
        assert run(jail, code).value == "1"

    def test_a_snippet_larger_than_any_argument_list_is_run(self, jail: Jail) -> None:
        code = f"data = {'x' * 3_000_000!r}\ndef solution(): return len(data)"
        assert run(jail, code).value == "3000000"


class TestErrors:
    def test_a_syntax_error_names_the_line(self, jail: Jail) -> None:
        error = failure(jail, "x = 1\ny = = 2")
        assert error.cause == "error"
        assert "SyntaxError: invalid syntax (line 2: y = = 2)" in str(error)

    def test_an_exception_names_its_type_words_and_line(self, jail: Jail) -> None:
        error = failure(jail, "def solution():\n    return {}['key']")
        assert "KeyError: 'key' (line 2: return {}['key'])" in str(error)

    def test_code_without_solution_is_told_so(self, jail: Jail) -> None:
        assert "must define a function `solution()`" in str(failure(jail, "x = 1"))

    def test_the_message_begins_with_the_tool_that_asked(self, jail: Jail) -> None:
        error = failure(jail, "1 / 0", label="Plot: the code")
        assert str(error).startswith("Plot: the code failed: ZeroDivisionError")

    def test_an_error_is_a_tool_error_and_says_which_jail_it_was(self, jail: Jail) -> None:
        error = failure(jail, "1 / 0")
        assert isinstance(error, ToolError)
        assert error.jail == jail.kind
        assert error.seconds > 0

    def test_a_missing_package_is_not_blamed_on_the_code(self, jail: Jail) -> None:
        driver = "import no_such_package_anywhere\n"
        with pytest.raises(ToolUnavailable, match="no_such_package_anywhere"):
            run(jail, "def solution(): return 1", driver=driver)

    def test_slow_imports_are_not_blamed_on_the_code(self, jail: Jail) -> None:
        driver = "import time\ntime.sleep(60)\n"
        with pytest.raises(ToolUnavailable, match=r"not ready within 0\.5 s"):
            run(jail, "", driver=driver, limits=JailLimits(start_seconds=0.5))

    def test_an_interpreter_that_is_not_there_is_not_blamed_on_the_code(self, jail: Jail) -> None:
        broken = Python("/usr/bin/no-such-python", ())
        with Jail(jail.kind, python=broken) as other, pytest.raises(ToolUnavailable):
            run(other, "def solution(): return 1")


class TestTogether:
    def test_the_event_loop_is_never_blocked(self, jail: Jail) -> None:
        async def measure() -> float:
            worst, running = 0.0, True

            async def tick() -> None:
                nonlocal worst
                while running:
                    before = time.perf_counter()
                    await asyncio.sleep(0.005)
                    worst = max(worst, time.perf_counter() - before - 0.005)

            ticking = asyncio.create_task(tick())
            code = "import time\ntime.sleep(3)\ndef solution(): return 1"
            async with asyncio.TaskGroup() as group:
                for _ in range(2):
                    group.create_task(jail.run_snippet(code, limits=QUICK))
            running = False
            await ticking
            return worst

        assert asyncio.run(measure()) < 3  # a slow machine has pauses of a second

    def test_no_more_than_the_slots_run_at_once(self) -> None:
        code = "import time\ntime.sleep(0.2)\ndef solution(): return 1"

        async def three() -> float:
            start = time.monotonic()
            with Jail("none", slots=1) as jail:
                async with asyncio.TaskGroup() as group:
                    for _ in range(3):
                        group.create_task(jail.run_snippet(code, limits=QUICK))
            return time.monotonic() - start

        assert asyncio.run(three()) > 0.6

    def test_a_cancelled_call_kills_its_process(self, jail: Jail) -> None:
        limits = marked_limits()

        async def cancel() -> bool:
            code = "import time\ntime.sleep(60)"
            call = asyncio.create_task(jail.run_snippet(code, limits=limits))
            for _ in range(100):
                await asyncio.sleep(0.2)
                if began := bool(processes_with(str(limits.memory_bytes))):
                    break
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            return began

        assert asyncio.run(cancel())
        assert wait_until_gone(str(limits.memory_bytes)) == []

    def test_a_jail_can_be_used_from_one_event_loop_after_another(self, jail: Jail) -> None:
        assert {run(jail, "def solution(): return 1").value for _ in range(2)} == {"1"}


class TestWithoutJail:
    """The user's explicit wish; the name stands in every result."""

    def test_the_result_says_that_there_was_no_jail(self) -> None:
        with Jail("none") as jail:
            assert run(jail, "def solution(): return 1").report.jail == "none"

    def test_an_error_says_so_too(self) -> None:
        with Jail("none") as jail:
            assert failure(jail, "1 / 0").jail == "none"

    def test_time_and_memory_are_bounded_all_the_same(self) -> None:
        with Jail("none") as jail:
            slow = JailLimits(wall_seconds=1.0)
            assert failure(jail, "import time; time.sleep(60)", limits=slow).cause == "timeout"
            assert failure(jail, "bytearray(8 << 30)").cause == "memory"

    def test_the_parents_environment_stays_outside(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-outside")
        code = "import os\ndef solution(): return sorted(os.environ)"
        with Jail("none") as jail:
            assert "OPENAI_API_KEY" not in run(jail, code).value


@pytest.mark.slow
class TestRealPackages:
    """What Solver and Plot do, where their packages are installed."""

    def test_sympy_solves(self, jail: Jail) -> None:
        pytest.importorskip("sympy")
        driver = """
import sympy
def prepare():
    return {"symbols": sympy.symbols, "Eq": sympy.Eq, "solve": sympy.solve}
def finish(names):
    return str(names["solution"]())
"""
        code = "def solution():\n    x = symbols('x')\n    return solve(Eq(x**2 - 4, 0), x)"
        assert run(jail, code, driver=driver, limits=JailLimits()).value == "[-2, 2]"

    def test_matplotlib_draws(self, jail: Jail) -> None:
        pytest.importorskip("matplotlib")
        driver = """
import io
import matplotlib.pyplot as plt
def prepare():
    return {"plt": plt}
def finish(names):
    picture = io.BytesIO()
    names["solution"]().savefig(picture, format="png")
    return picture.getvalue()
"""
        code = "def solution():\n    figure = plt.figure()\n    plt.plot([1, 3])\n    return figure"
        value = run(jail, code, driver=driver, limits=JailLimits()).value
        assert isinstance(value, bytes)
        assert value.startswith(b"\x89PNG")


class TestInterpreter:
    def test_of_the_current_one_its_library_is_shown_and_not_its_prefix(self) -> None:
        python = Python.current()
        assert python.executable == sys.executable
        for prefix in {sys.prefix, sys.base_prefix} - {"/usr"}:
            assert prefix not in python.roots
            assert f"{prefix}/bin" in python.roots

    def test_links_through_other_folders_are_followed(self, tmp_path: Path) -> None:
        real = tmp_path / "real" / "bin" / "python3"
        real.parent.mkdir(parents=True)
        real.touch()
        middle = tmp_path / "middle" / "python3"
        middle.parent.mkdir()
        middle.symlink_to("../real/bin/python3")
        venv = tmp_path / "venv" / "bin" / "python"
        venv.parent.mkdir(parents=True)
        venv.symlink_to(middle)
        prefixes = [str(tmp_path / "venv"), str(tmp_path / "real")]
        own = [f"{prefix}/bin" for prefix in prefixes]
        assert Python.at(str(venv), prefixes).roots == (*own, str(middle))

    def test_the_whole_file_system_is_never_a_prefix(self) -> None:
        assert Python.at("/usr/bin/python3", ["/", "/usr"]).roots == ()

    def test_a_process_dies_with_the_one_that_started_it(self, jail: Jail, tmp_path: Path) -> None:
        limits = marked_limits()
        code = (
            "import asyncio\n"
            "from gta_bench.confine.jail import Jail\n"
            "from gta_bench.confine.limits import JailLimits\n"
            f"call = Jail({jail.kind!r}).run_snippet('import time; time.sleep(60)',"
            f" limits=JailLimits(memory_bytes={limits.memory_bytes}))\n"
            "asyncio.run(call)\n"
        )
        mark = f'"memory_bytes": {limits.memory_bytes}'
        # What is killed cannot tidy up: its folder is left, so it goes where the test's files go.
        settings = {**environment(), "TMPDIR": str(tmp_path)}
        parent = subprocess.Popen([sys.executable, "-c", code], env=settings)
        end = time.monotonic() + 30
        while not processes_with(mark) and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.3)
        assert processes_with(mark)
        parent.kill()  # as a crashed run, or one that was out of memory
        parent.wait()
        assert wait_until_gone(mark, seconds=10) == []
