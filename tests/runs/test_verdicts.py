import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gta_bench.errors import RunError
from gta_bench.records.verdicts import Scored, Unscored, VerdictKey, VerdictRow
from gta_bench.runs import verdicts
from gta_bench.runs.store import PARTS
from gta_bench.runs.verdicts import (
    VERDICTS,
    StoredUnitRows,
    append_verdicts,
    read_unit_rows,
    read_verdicts,
)


def row(
    leaf: str = "cp1", value: float | None = 8, evidence: str = "e", **key: object
) -> VerdictRow:
    verdict = Unscored(cause="timeout") if value is None else Scored(value=value)
    place = VerdictKey.model_validate({"task": "7", "leaf": leaf, "judge": "j", **key})
    return VerdictRow(key=place, verdict=verdict, evidence=evidence)


def kept(run: Path) -> list[VerdictRow]:
    return list(read_verdicts(run).values())


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    assert kept(tmp_path) == []
    rows = [row("a"), row("b", None), row("a", judge="k"), row("a", repeat=2), row("a", epoch=2)]
    append_verdicts(tmp_path, rows[:1])
    append_verdicts(tmp_path, rows[1:])
    append_verdicts(tmp_path, [])
    assert kept(tmp_path) == rows


@pytest.mark.parametrize(
    ("first", "then", "holds"),
    [
        (row(value=None), row(value=3), "then"),
        (row(value=3), row(value=5), "then"),
        (row(value=3), row(value=None), "first"),
        (row(value=3), row(value=None, evidence="other"), "then"),
    ],
)
def test_on_the_same_evidence_a_score_outlasts_the_lack_of_one(
    tmp_path: Path, first: VerdictRow, then: VerdictRow, holds: str
) -> None:
    append_verdicts(tmp_path, [first])
    append_verdicts(tmp_path, [then])
    assert kept(tmp_path) == [then if holds == "then" else first]


@pytest.mark.parametrize("part", [b"{", b'{"key": {"task": "7"', b"x" * 200_000])
def test_a_half_written_last_line_is_passed_over_and_then_removed(
    tmp_path: Path, part: bytes
) -> None:
    append_verdicts(tmp_path, [row("a")])
    file = tmp_path / VERDICTS
    whole = file.read_bytes()
    file.write_bytes(whole + part)
    assert kept(tmp_path) == [row("a")]
    append_verdicts(tmp_path, [row("b")])
    assert file.read_bytes().startswith(whole + b'{"key"')
    assert kept(tmp_path) == [row("a"), row("b")]


def test_a_file_of_half_a_line_begins_anew(tmp_path: Path) -> None:
    (tmp_path / VERDICTS).write_bytes(b'{"key"')
    append_verdicts(tmp_path, [row("a")])
    assert kept(tmp_path) == [row("a")]


def test_a_broken_line_elsewhere_is_an_error_that_names_it(tmp_path: Path) -> None:
    append_verdicts(tmp_path, [row("a")])
    with (tmp_path / VERDICTS).open("ab") as stream:
        stream.write(b"{}\n")
    append_verdicts(tmp_path, [row("b")])
    with pytest.raises(RunError, match="line 2: not a verdict"):
        read_verdicts(tmp_path)


def _append_many(folder: Path, writer: int) -> None:
    for number in range(40):
        append_verdicts(folder, [row(f"{writer}-{number}")])


def test_several_processes_append_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append_many, args=(tmp_path, number)) for number in (1, 2)]
    for writer in writers:
        writer.start()
    _append_many(tmp_path, 3)
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    wanted = {f"{writer}-{number}" for writer in (1, 2, 3) for number in range(40)}
    assert {one.key.leaf for one in kept(tmp_path)} == wanted


def test_a_hundred_thousand_rows_are_read_in_seconds(tmp_path: Path) -> None:
    lines = [row(f"cp{number}").model_dump_json() for number in range(1000)]
    text = "\n".join(lines) + "\n"
    with (tmp_path / VERDICTS).open("w", encoding="utf-8") as stream:
        for judge in range(100):
            stream.write(text.replace('"judge":"j"', f'"judge":"j{judge}"'))
    start = time.process_time()
    assert len(read_verdicts(tmp_path)) == 100_000
    assert time.process_time() - start < 20
    start = time.process_time()
    append_verdicts(tmp_path, [row("last")])
    assert time.process_time() - start < 0.5


def test_a_whole_row_without_its_line_end_is_kept(tmp_path: Path) -> None:
    append_verdicts(tmp_path, [row("a"), row("b")])
    file = tmp_path / VERDICTS
    file.write_bytes(file.read_bytes().rstrip(b"\n"))
    append_verdicts(tmp_path, [row("c")])
    assert kept(tmp_path) == [row("a"), row("b"), row("c")]


def test_parts_from_a_store_are_folded_once_when_many_append(tmp_path: Path) -> None:
    parts = tmp_path / f"{VERDICTS}{PARTS}"
    parts.mkdir()
    for number in range(50):
        (parts / f"{number:03}").write_bytes(row(f"old{number}").model_dump_json().encode() + b"\n")
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda name: append_verdicts(tmp_path, [row(name)]), map(str, range(40))))
    assert len(kept(tmp_path)) == 90
    assert not parts.exists()


def test_rows_of_a_long_run_know_their_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "LONGEST", 0)
    first, second = row("a"), row("b")
    again = first.model_copy(update={"key": first.key.model_copy(update={"repeat": 3})})
    append_verdicts(tmp_path, [again, first, second])
    found = read_unit_rows(tmp_path)
    assert isinstance(found, StoredUnitRows)
    assert found.repeats == {first.key.judge: 3}
    assert [*found.values()] == [(again, first, second)]
