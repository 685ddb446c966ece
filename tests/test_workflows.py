"""The workflows: what each may do, and what it runs of others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

FILES = sorted((Path(__file__).parents[1] / ".github" / "workflows").glob("*.yaml"))
WORKFLOWS: dict[str, dict[Any, Any]] = {file.stem: yaml.safe_load(file.read_text()) for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_actions_are_named_by_commit(file: Path) -> None:
    """A tag of somebody else's can be moved; beside each commit is the version that it is."""
    used = re.findall(r"uses: (.+)", file.read_text())
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)] == []


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_a_job_may_do_only_what_it_says(workflow: str) -> None:
    """Nothing is allowed to all, and nobody may write the repository's contents; only a release may do more than read."""
    jobs = WORKFLOWS[workflow]["jobs"]
    assert WORKFLOWS[workflow]["permissions"] == {}
    assert {job["permissions"]["contents"] for job in jobs.values()} == {"read"}
    assert workflow == "release" or all(len(job["permissions"]) == 1 for job in jobs.values())


def test_nothing_is_published_before_the_tests() -> None:
    """Each job of a release waits for them, by itself or by another."""
    jobs = WORKFLOWS["release"]["jobs"]
    assert {job: jobs[job].get("needs") for job in jobs} == {"test": None, "wheel": "test", "image": "test", "chart": "image"}


def test_a_pull_request_is_checked_and_tested_each_night_proves_and_each_week_compares() -> None:
    """By the commands that people type; the catalog is compared with its sources each week."""
    commands = {
        name: [step["run"] for job in flow["jobs"].values() for step in job["steps"] if "run" in step] for name, flow in WORKFLOWS.items()
    }
    assert commands["pull-request"] == ["make check", "sudo --preserve-env .ci/run"]
    assert commands["night"] == ["sudo --preserve-env .ci/run prove"]
    assert commands["catalog"] == ["make catalog"]
    assert [entry["cron"].split()[4] for entry in WORKFLOWS["catalog"][True]["schedule"]] == ["1"]
