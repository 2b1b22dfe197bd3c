import json

import pytest

from gta_bench.cli.output import download_bar, say, write_json, write_rows


def test_rows_are_aligned_and_the_last_column_is_free(capsys: pytest.CaptureFixture[str]) -> None:
    write_rows([("a", "bb", "a long end"), ("aaa", "b", "")])
    assert capsys.readouterr().out == "a    bb  a long end\naaa  b\n"


def test_json_keeps_every_letter(capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"price": "7 元"})
    out = capsys.readouterr().out
    assert "元" in out
    assert json.loads(out) == {"price": "7 元"}


def test_words_for_people_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    say("done")
    assert capsys.readouterr() == ("", "done\n")


def test_a_bar_says_nothing_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    with download_bar("a.zip") as report:
        report(1, None)
        report(5, 10)
    assert capsys.readouterr().out == ""
