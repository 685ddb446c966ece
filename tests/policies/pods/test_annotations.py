"""What the author of a pod says by annotation."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from kube.pod import Pod
from policies.pods import annotations as author
from policies.pods.annotations import Author, is_long
from policies.policy import LongRuns
from tests.support.cases import golden

CATALOG = golden.catalog_with()


def read(*, spec: Any = None, settings: Mapping[str, str] | None = None) -> Author:
    written = {f"berth.dev/{key}": text for key, text in (settings or {}).items()}
    return author.read_author_settings(Pod({"metadata": {"annotations": written}, "spec": spec or {}}), CATALOG)


@pytest.mark.parametrize(
    ("spec", "annotation", "seconds", "longest"),
    [
        ({}, None, None, None),
        ({"activeDeadlineSeconds": 60}, None, 60, 60),
        ({"activeDeadlineSeconds": 60}, "2h", 7200, 7200),
        ({"activeDeadlineSeconds": 604800}, "1m", 60, 604800),
        ({"activeDeadlineSeconds": 60}, "+.5h", 1800, 1800),
        ({"activeDeadlineSeconds": 60}, "-1h", 60, 60),
        ({"activeDeadlineSeconds": "x"}, None, None, None),
        ({}, "500ms", Fraction(1, 2), Fraction(1, 2)),
    ],
    ids=str,
)
def test_how_long_a_pod_runs(spec: dict[str, Any], annotation: str | None, seconds: int | None, longest: int | None) -> None:
    """For defaults the annotation, else the pod's own deadline, else unknown; for requirements the longer of the two."""
    settings = {} if annotation is None else {"expected-duration": annotation}
    found = read(spec=spec, settings=settings)
    assert (found.seconds, found.longest) == (seconds, longest)


@pytest.mark.parametrize(
    ("seconds", "unknown", "long"), [(7201, False, True), (7200, True, False), (None, True, True), (None, False, False)]
)
def test_a_run_is_long_over_the_bound(seconds: int | None, *, unknown: bool, long: bool) -> None:
    """Unknown counts as the policy says."""
    assert is_long(seconds, LongRuns(over=7200, capacity=("spot",), unknown_is_long=unknown)) is long


@pytest.mark.parametrize(("text", "gigabytes", "none"), [("20gb", 20, False), ("none", None, True), (None, None, False)])
def test_a_slice_or_none(text: str | None, gigabytes: int | None, *, none: bool) -> None:
    """``none`` is a wish too: for a whole GPU."""
    found = read(settings={} if text is None else {"mig-slice": text})
    assert (found.slice_gb, found.no_slice, found.violations) == (gigabytes, none, ())


@pytest.mark.parametrize(
    ("key", "text", "hint"),
    [
        ("expected-duration", "2 days", "write a duration such as 90m"),
        ("expected-duration", "0s", "write a duration such as 90m"),
        ("expected-duration", "-1h", "write a duration such as 90m"),
        ("mig-slice", "10GB", "such as 10gb"),
        ("mig-slice", "70", "such as 10gb"),
        ("mig-slice", "11gb", "such as 10gb"),
        ("opt-out", "grace, protection", "write grace"),
    ],
)
def test_bad_syntax_is_denied_with_what_to_write(key: str, text: str, hint: str) -> None:
    """Each annotation on its own."""
    (violation,) = read(settings={key: text}).violations
    assert violation.code == "BERTH-151"
    assert hint in violation.fix


def test_a_long_value_is_cut() -> None:
    """So that the fix stays within the first 200 characters."""
    (violation,) = read(settings={"expected-duration": "x" * 500}).violations
    assert len(f"{violation.code}: {violation.fact}; {violation.fix}.") < 200


@pytest.mark.parametrize(("text", "out"), [("grace", True), (" grace ,", True), ("", False)])
def test_opting_out_of_grace(text: str, *, out: bool) -> None:
    """A list with commas; an empty one opts out of nothing."""
    assert read(settings={"opt-out": text}).opt_out_grace is out
