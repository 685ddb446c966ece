"""Public manifests whose outcomes a reader foretold: the form of the table, and the outcomes where copies are at hand."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from tests.public_manifests.compare import find_differences, observe_scan, observe_try, parse, read_table

ROWS = read_table()
COPIES = os.environ.get("BERTH_PUBLIC_MANIFESTS")
FIELDS = {"pods", "total", "verdict", "edits", "codes", "not", "findings"}


def test_table_lists_three_hundred_files_of_eighty_repositories() -> None:
    """The table has 300 different files from at least 80 repositories; a reader judged 100 of them closely."""
    assert [row["number"] for row in ROWS] == [str(number) for number in range(1, 301)]
    assert len({row["sha256"] for row in ROWS}) == 300
    assert len({row["repository"] for row in ROWS}) >= 80
    assert sum(row["judged"] == "yes" for row in ROWS) == 100


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["number"])
def test_row_has_an_address_and_known_fields(row: dict[str, str]) -> None:
    """A row names a commit, a digest and a command; its outcomes have known fields only."""
    assert len(row["commit"]) == 40
    assert len(row["sha256"]) == 64
    assert row["command"] in {"try", "scan"}
    assert set(parse(row["expected"])) <= FIELDS
    assert row["corrected"] == "-" or set(parse(row["corrected"])) <= FIELDS


def test_differences_are_found_in_each_field() -> None:
    """An outcome differs in count, verdict, lacking or extra edit, lacking code and forbidden code."""
    expected = "pods=1,2; verdict=admitted|unchecked; edits=toleration,grace?; codes=221; not=117"
    assert find_differences(expected, "pods=1,2; verdict=admitted; edits=grace,toleration; codes=221") == []
    observed = "pods=1; verdict=denied; edits=affinity,toleration; codes=117"
    assert find_differences(expected, observed) == ["pods", "verdict", "edits", "codes", "not"]
    assert find_differences("findings=pool-expires", "findings=-") == ["findings"]


@pytest.mark.skipif(not COPIES, reason="BERTH_PUBLIC_MANIFESTS names no folder with copies of the files")
@pytest.mark.parametrize("row", [row for row in ROWS if row["now"].startswith("as expected")], ids=lambda row: row["number"])
def test_outcome_stays_as_expected(row: dict[str, str]) -> None:
    """A file whose outcome was as expected still has that outcome."""
    path = Path(COPIES or "") / f"{row['sha256'][:16]}.yaml"
    assert sha256(path.read_bytes()).hexdigest() == row["sha256"]
    observed, _ = observe_try(path, row["platforms"]) if row["command"] == "try" else observe_scan(path)
    assert find_differences(row["expected"] if row["corrected"] == "-" else row["corrected"], observed) == []
