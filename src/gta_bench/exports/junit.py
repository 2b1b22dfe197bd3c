"""JUnit XML, which CI systems show as test results.

GitLab shows the text of a failure but not its message, and Jenkins the message: both are written.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal
from xml.etree import ElementTree

CaseOutcome = Literal["passed", "failure", "error", "skipped"]
# Characters that XML 1.0 does not allow; a parser refuses the whole file because of one.
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, kw_only=True)
class JUnitCase:
    """A test case: its suite's class name, its name, its outcome with a message, and a text.

    `seconds` is how long it took.
    """

    classname: str
    name: str
    outcome: CaseOutcome = "passed"
    kind: str = ""
    message: str = ""
    text: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def format_junit(
    name: str,
    cases: Sequence[JUnitCase],
    *,
    when: datetime,
    properties: Mapping[str, str] | None = None,
) -> bytes:
    """Return the cases as a JUnit file with one suite.

    >>> from datetime import UTC, datetime
    >>> case = JUnitCase(classname="tasks", name="7", outcome="failure", message="worse")
    >>> b'<testsuite name="gate" tests="1" failures="1"' in format_junit(
    ...     "gate", [case], when=datetime(2026, 11, 17, tzinfo=UTC)
    ... )
    True
    """
    counts = {
        "tests": len(cases),
        "failures": sum(case.outcome == "failure" for case in cases),
        "errors": sum(case.outcome == "error" for case in cases),
        "skipped": sum(case.outcome == "skipped" for case in cases),
    }
    shown = {"name": name, **{key: str(count) for key, count in counts.items()}}
    shown["time"] = _format_time(sum(case.seconds for case in cases))
    root = ElementTree.Element("testsuites", _clean(shown))
    suite = ElementTree.SubElement(
        root, "testsuite", _clean({**shown, "timestamp": when.isoformat(timespec="seconds")})
    )
    _add_properties(suite, properties or {})
    for case in cases:
        _add_case(suite, case)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _add_case(suite: ElementTree.Element, case: JUnitCase) -> None:
    found = ElementTree.SubElement(
        suite,
        "testcase",
        _clean(
            {
                "classname": case.classname,
                "name": case.name,
                "time": _format_time(case.seconds),
            }
        ),
    )
    _add_properties(found, case.properties)
    if case.outcome != "passed":
        said = {"message": case.message, "type": case.kind or case.outcome}
        reason = ElementTree.SubElement(found, case.outcome, _clean(said))
        reason.text = _strip(f"{case.message}\n{case.text}".strip())
    elif case.text:
        ElementTree.SubElement(found, "system-out").text = _strip(case.text)


def _format_time(seconds: float) -> str:
    return f"{seconds:.3f}" if seconds else "0"


def _add_properties(element: ElementTree.Element, properties: Mapping[str, str]) -> None:
    if properties:
        group = ElementTree.SubElement(element, "properties")
        for key, value in properties.items():
            ElementTree.SubElement(group, "property", _clean({"name": key, "value": value}))


def _clean(attributes: Mapping[str, str]) -> dict[str, str]:
    return {key: _strip(value) for key, value in attributes.items()}


def _strip(text: str) -> str:
    return _FORBIDDEN.sub("", text)
