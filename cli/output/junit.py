"""Results for CI as JUnit XML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.etree import ElementTree as xml

from documents.printable import printable


class JUnitCase(NamedTuple):
    """One test: passed unless it has a failure or an error."""

    classname: str
    name: str
    file: str = ""
    failure: str | None = None
    """Its message."""
    type: str = ""
    """Of the failure."""
    details: Sequence[str] = ()
    """Lines beneath the failure."""
    error: str | None = None
    """The message of bad input."""


def format_junit(name: str, suites: Mapping[str, Sequence[JUnitCase]], said: Sequence[str] = ()) -> str:
    """Return JUnit XML. ``suites``: name -> its tests; ``said``: what was printed beside them."""
    root = xml.Element("testsuites", {"name": name, **_counts([case for cases in suites.values() for case in cases])})
    for suite, cases in suites.items():
        element = xml.SubElement(root, "testsuite", {"name": printable(suite), **_counts(cases)})
        for case in cases:
            _add_case(element, case)
    if said:
        xml.SubElement(root, "system-out").text = _lines(said)
    xml.indent(root)
    return xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _counts(cases: Sequence[JUnitCase]) -> dict[str, str]:
    counts = {
        "tests": len(cases),
        "failures": sum(case.failure is not None for case in cases),
        "errors": sum(case.error is not None for case in cases),
    }
    return {name: str(count) for name, count in counts.items()}


def _add_case(suite: xml.Element, case: JUnitCase) -> None:
    names = {"classname": case.classname, "name": case.name, "file": case.file}
    element = xml.SubElement(suite, "testcase", {key: printable(text) for key, text in names.items() if text or key != "file"})
    if case.failure is not None:
        failure = xml.SubElement(element, "failure", {"message": printable(case.failure), **({"type": case.type} if case.type else {})})
        failure.text = _lines(case.details)
    if case.error is not None:
        xml.SubElement(element, "error", {"message": printable(case.error)})


def _lines(texts: Sequence[str]) -> str:
    """Return lines that XML 1.0 can hold, which has no way to write control characters (section 2.2, Char)."""
    return "\n".join(printable(line) for text in texts for line in text.split("\n"))
