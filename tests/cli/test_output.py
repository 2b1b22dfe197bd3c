import json

import pytest

from gta_bench.cli.output import download_bar, say, write_json, write_rows, write_table
from gta_bench.reports.tables import Table


def test_rows_are_aligned_and_the_last_column_is_free(capsys: pytest.CaptureFixture[str]) -> None:
    write_rows([("a", "bb", "a long end"), ("aaa", "b", "")])
    assert capsys.readouterr().out == "a    bb  a long end\naaa  b\n"


def test_json_keeps_every_letter(capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"price": "7 元"})
    out = capsys.readouterr().out
    assert "元" in out
    assert json.loads(out) == {"price": "7 元"}


def test_half_a_character_survives_every_way_out(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A model's answer with a lone surrogate ended `gta score --json` with a traceback."""
    half = "half \ud800 of it"
    write_json({"answer": half})
    assert json.loads(capfdbinary.readouterr().out) == {"answer": half}
    write_rows([("a", half)])
    write_table(Table(("x",), ((half,),)), (0,))
    say(half)
    assert capfdbinary.readouterr() == (
        b"a  half \\ud800 of it\nx\nhalf \\ud800 of it\n",
        b"half \\ud800 of it\n",
    )


def test_words_for_people_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    say("done")
    assert capsys.readouterr() == ("", "done\n")


def test_a_bar_says_nothing_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    with download_bar("a.zip") as report:
        report(1, None)
        report(5, 10)
    assert capsys.readouterr().out == ""
