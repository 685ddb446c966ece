"""What is written under ``expect``, and that nothing else of a file is touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.policy_cases import expectation_writer
from documents.files import read_documents
from policies.document import InputError

ODD = ["n", "1e3", "0o7", "12:30", "~", "1_000", ".5", "yes", 1, None, True]
"""Words that YAML or kubectl takes for something else where they stand without quotes."""
FOUND = {"edits": [{"op": "add", "path": "/spec/x", "value": {"y": ODD}, "rule": "r", "by": "p"}], "remarks": ["BERTH-1: \x1b é"]}
EMPTY = st.sampled_from(
    ["expect: {}", "expect:", "expect: {}  # none yet", "expect: null", "expect:\n  edits: []\n  remarks: [a]", '"expect": {}']
)
BEFORE = st.lists(st.sampled_from(["why: w", "# a comment", "", "pod: {a: [1, 2]}", "text: |\n  expect: {}\n", "é: ü"]), max_size=4)
AFTER = st.lists(st.sampled_from(["user: alice", "# at the margin", "", "groups:\n  - a"]), max_size=3)
TEXT = st.tuples(BEFORE, EMPTY, AFTER)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(TEXT, min_size=1, max_size=3), end=st.sampled_from(["\n", "\r\n"]), number=st.integers(0, 2), mark=st.booleans())
def test_only_the_expectation_changes(tmp_path: Path, parts: list[Any], end: str, number: int, *, mark: bool) -> None:
    """Of any document of a file, wherever the key stands: it reads back as what came, and every other key and comment is as it was."""
    number %= len(parts)
    whole = "\n---\n".join("\n".join((*unique(before), expect, *unique(after))) for before, expect, after in parts) + "\n"
    file = tmp_path / "c.yaml"
    file.write_text(("\ufeff" if mark else "") + whole.replace("\n", end), encoding="utf-8", newline="")
    before, errors = read_documents([str(file)])
    assert errors == []
    comments = [line for line in whole.splitlines() if line.startswith("#")]
    expectation_writer.write(before[number], FOUND)
    after, errors = read_documents([str(file)])
    assert errors == []
    assert [one.value for one in after] == [{**one.value, **({"expect": FOUND} if at == number else {})} for at, one in enumerate(before)]
    text = file.read_text(encoding="utf-8-sig")
    assert [line for line in text.splitlines() if line.startswith("#")] == comments
    written = file.read_bytes()
    expectation_writer.write(after[number], FOUND)
    assert "none yet" in text or file.read_bytes() == written


def unique(lines: list[str]) -> list[str]:
    """No key twice."""
    return [line for at, line in enumerate(lines) if line.startswith("#") or line not in lines[:at]]


def test_flow_style_has_no_place_for_it(tmp_path: Path) -> None:
    """JSON and a map on one line are left as they are, with advice."""
    file = tmp_path / "c.yaml"
    file.write_text('{"why": "w", "expect": {}}')
    (document,), _ = read_documents([str(file)])
    with pytest.raises(InputError, match="write the case as block YAML"):
        expectation_writer.write(document, FOUND)
    assert file.read_text() == '{"why": "w", "expect": {}}'


def test_nothing_is_written_as_nothing() -> None:
    """An outcome without parts is an empty map, which YAML's nothing is not."""
    assert expectation_writer.format_outcome({}) == "expect: {}"
