"""A log line: JSON, ASCII, one line, whatever is in it."""

from __future__ import annotations

import contextlib
import io
import json
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from documents.printable import cut
from telemetry import log


def written(**fields: object) -> str:
    with contextlib.redirect_stderr(io.StringIO()) as stream:
        log.write("decision", **fields)
    return stream.getvalue()


def test_an_event_has_time_level_and_name_first() -> None:
    """The time is UTC with milliseconds."""
    fields = json.loads(written(pod="a"))
    assert list(fields) == ["time", "level", "event", "pod"]
    assert datetime.now(UTC) - datetime.fromisoformat(fields["time"]) < timedelta(minutes=1)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_stays_in_one_line_and_comes_back(text: str) -> None:
    """No character ends a line, steers a terminal or is lost."""
    line = written(pod=text)
    assert line.isascii()
    assert not any(ord(character) < 32 for character in line[:-1])
    assert line.splitlines() == [line[:-1]]
    assert json.loads(line)["pod"] == text


def test_a_long_text_is_cut() -> None:
    """At 256 characters, and seen to be."""
    assert cut("x" * 256) == "x" * 256
    assert cut("x" * 257) == "x" * 253 + "..."


def test_an_error_is_told_with_its_place() -> None:
    """Type, sentence, file and line of where it was raised."""
    try:
        raise LookupError("what\nwas lost")
    except LookupError as error:
        trace = log.trace(error)
    assert trace.startswith("LookupError: what\nwas lost at ")
    assert "test_log.py:" in trace
