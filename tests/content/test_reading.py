import asyncio
import threading
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import JailKind, JailLimits
from gta_bench.content import driver, images, needs, pdf, pptx, xlsx
from gta_bench.content.driver import Driver
from gta_bench.content.tables import format_csv, format_markdown_table
from gta_bench.errors import ConfinedError, ToolError, ToolUnavailable
from tests.confine.conftest import KINDS as KINDS_OF_JAIL
from tests.confine.conftest import require
from tests.content import samples
from tests.content.readers import read_words, words


@pytest.mark.parametrize("kind", KINDS_OF_JAIL)
def test_the_parsers_run_in_every_kind_of_jail(kind: JailKind) -> None:
    require(kind)
    files = {
        "a.docx": (samples.docx(samples.paragraph("hello")), "hello"),
        "a.xlsx": (samples.workbook(), "tea,2.5,4"),
        "a.pptx": (samples.deck(), "Notes: Say hello."),
        "a.pdf": (samples.pdf([samples.words("Hello PDF file."), ""]), "Hello PDF file."),
        "a.png": (samples.image(3, 4), "width=3, height=4"),
    }
    with Jail(kind, slots=1) as one:
        for name, (data, shown) in files.items():
            assert shown in words(name, data, one)


@pytest.mark.parametrize("made", [images.DRIVER, pdf.READ, pdf.RENDER, pptx.DRIVER, xlsx.DRIVER])
def test_every_parser_is_sent_without_importing_this_package(made: Driver[object]) -> None:
    source = driver.read_inside(f"{made.module}.py")
    assert "def prepare()" in source
    assert "def finish(names" in source
    assert "gta_bench" not in source


def test_several_files_are_read_at_the_same_time(jail: Jail) -> None:
    async def both() -> list[str]:
        data = samples.workbook()
        return await asyncio.gather(*(read_words("a.xlsx", data, jail) for _ in range(4)))

    assert len(set(asyncio.run(both()))) == 1


def test_a_cancelled_reading_ends_its_process(jail: Jail) -> None:
    async def cancel() -> None:
        task = asyncio.create_task(read_words("a.xlsx", samples.workbook(), jail))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    before = threading.active_count()
    asyncio.run(cancel())
    assert threading.active_count() <= before + 2


class TestDrivers:
    """Replies from the jail are validated."""

    def run(self, jail: Jail, source: str, monkeypatch: pytest.MonkeyPatch) -> object:
        monkeypatch.setattr(driver, "read_inside", lambda name: source)
        limits = JailLimits(wall_seconds=5.0, cpu_seconds=2, memory_bytes=256 << 20)
        made = Driver("none", "The reader", (), TypeAdapter(dict[str, int]), limits)
        return asyncio.run(made.read(jail, b"data", most=3))

    def source(self, body: str) -> str:
        return f"def prepare(): return {{}}\ndef finish(names):\n    {body}\n"

    def test_a_reply_is_checked_against_its_type(
        self, jail: Jail, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        body = "import json; return json.dumps({'n': json.load(open('options.json'))['most']})"
        assert self.run(jail, self.source(body), monkeypatch) == {"n": 3}
        with pytest.raises(ToolError, match="cannot be read"):
            self.run(jail, self.source('return \'{"n": "many"}\''), monkeypatch)

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ("return 'It is locked.'", "refused the file: It is locked"),
            ("return b'bytes'", "refused the file"),
            ("raise ValueError('odd')", "failed: ValueError: odd"),
            ("return '{' + 'x' * 10", "cannot be read"),
        ],
    )
    def test_every_other_reply_is_a_typed_error(
        self, body: str, said: str, jail: Jail, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(ToolError, match=said):
            self.run(jail, self.source(body), monkeypatch)

    @pytest.mark.parametrize(
        ("body", "cause"),
        [
            ("while True: pass", "timeout|killed"),
            ("x = bytearray(1 << 30)", "memory"),
            ("import os; os.abort()", "crashed"),
        ],
    )
    def test_a_parser_that_runs_away_is_stopped(
        self, body: str, cause: str, jail: Jail, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(ConfinedError) as caught:
            self.run(jail, self.source(body), monkeypatch)
        assert caught.value.cause in cause

    def test_a_file_that_is_too_large_is_refused_at_once(
        self, jail: Jail, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(driver, "MOST_BYTES", 3)
        with pytest.raises(ToolError, match="has 4 bytes; The reader reads at most 3"):
            self.run(jail, "", monkeypatch)


class TestNeeds:
    def test_a_missing_package_is_named_with_the_command_that_installs_it(self) -> None:
        missing = needs.missing_modules("json", "no_such_package_here")
        assert missing is not None
        assert missing.reason == "Python packages are missing: no_such_package_here."
        assert "pip install 'gta-bench[documents]'" in missing.fix
        with pytest.raises(ToolUnavailable, match="no_such_package_here"):
            needs.require(missing)

    def test_nothing_is_missing_where_all_is_there(self) -> None:
        assert needs.missing_modules("json", "csv") is None
        needs.require(None)

    def test_without_ffmpeg_its_package_is_named(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        missing = needs.missing_ffmpeg()
        assert missing is not None
        assert missing.reason == "ffmpeg and ffprobe not found."
        assert "apt install ffmpeg" in missing.fix

    def test_versions_name_what_ran(self) -> None:
        assert needs.describe_versions("pydantic").startswith("pydantic 2.")
        assert needs.describe_versions("no-such-thing") == "no-such-thing (not installed)"


def test_a_markdown_table_survives_bars_lines_and_ragged_rows() -> None:
    rows = [["a|b", "c"], ["one\ntwo"], ["\\", "3", "4"]]
    assert format_markdown_table(rows).splitlines() == [
        "| a\\|b | c |  |",
        "| --- | --- | --- |",
        "| one<br>two |  |  |",
        "| \\\\ | 3 | 4 |",
    ]
    assert format_markdown_table([]) == ""


def test_csv_quotes_only_where_it_must() -> None:
    assert format_csv([["a", "b,c", 'd"', "e\nf"], []]) == 'a,"b,c","d""","e\nf"\n\n'
