"""The workflow that makes a release: what it may do, and what it runs of others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

WORKFLOW = Path(__file__).parents[2] / ".github" / "workflows" / "release.yaml"
JOBS: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text())["jobs"]


def test_actions_are_named_by_commit() -> None:
    """A tag of somebody else's can be moved; beside each commit is the version that it is."""
    used = re.findall(r"uses: (.+)", WORKFLOW.read_text())
    assert len(used) > 5
    assert [action for action in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)] == []


@pytest.mark.parametrize("job", sorted(JOBS))
def test_a_job_may_do_only_what_it_says(job: str) -> None:
    """Nothing is allowed to all, and nobody may write the repository's contents."""
    assert yaml.safe_load(WORKFLOW.read_text())["permissions"] == {}
    assert JOBS[job]["permissions"]["contents"] == "read"


def test_nothing_is_published_before_the_tests() -> None:
    """Each job waits for them, by itself or by another."""
    assert {job: JOBS[job].get("needs") for job in JOBS} == {"test": None, "wheel": "test", "image": "test", "chart": "image"}
