"""JUnit files, read back by junitparser."""

from datetime import UTC, datetime
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped

from gta_bench.exports.junit import JUnitCase, format_junit

CASES = [
    JUnitCase(classname="tasks", name="1", text="fine", properties={"tokens": "7"}),
    JUnitCase(classname="tasks", name="2", outcome="failure", kind="worse", message="It fell."),
    JUnitCase(classname="tasks", name="3", outcome="error", message="No score.", text="a timeout"),
    JUnitCase(classname="tasks", name="4", outcome="skipped", message="Not decided."),
]


def test_junitparser_reads_every_outcome(tmp_path: Path) -> None:
    file = tmp_path / "gta.xml"
    when = datetime(2026, 11, 17, 8, tzinfo=UTC)
    file.write_bytes(format_junit("gate", CASES, when=when, properties={"metric": "root_sr"}))
    read = JUnitXml.fromfile(str(file))
    assert (read.tests, read.failures, read.errors, read.skipped) == (4, 1, 1, 1)
    (suite,) = read
    assert (suite.name, suite.timestamp) == ("gate", "2026-11-17T08:00:00+00:00")
    assert b'<property name="metric" value="root_sr" />' in file.read_bytes()
    good, bad, broken, skipped = suite
    assert (good.classname, good.name, good.system_out) == ("tasks", "1", "fine")
    assert good.is_passed
    [failure], [error], [skip] = bad.result, broken.result, skipped.result
    assert isinstance(failure, Failure) and failure.type == "worse"
    assert failure.message == failure.text == "It fell."
    assert isinstance(error, Error) and error.text == "No score.\na timeout"
    assert isinstance(skip, Skipped) and skip.message == "Not decided."


def test_control_characters_do_not_break_the_file() -> None:
    case = JUnitCase(classname="a", name="\x1b[31m1", outcome="error", message="\x00<&\ud800é")
    data = format_junit("x", [case], when=datetime(2026, 11, 17, tzinfo=UTC))
    (suite,) = JUnitXml.fromstring(data)
    (read,) = suite
    assert (read.name, read.result[0].text) == ("[31m1", "<&é")
