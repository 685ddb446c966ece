"""Wishes: what annotations mean, and how the demands and defaults of several policies become one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from policies import wishes
from policies.actor import PLAIN, SERVICE, Actor
from policies.pod import Pod
from policies.policy import LongRuns, TolerationPattern
from policies.snapshot import build
from policies.wishes import FOREVER, Limit, Wishes, grants, is_long
from tests import golden

CATALOG = golden.catalog_with()


def cluster(name: str, **spec: Any) -> dict[str, Any]:
    return {"kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": {"mode": "Enforce", **spec}}


def read(*objects: Any, actor: Actor = PLAIN, spec: Any = None, said: Mapping[str, str] | None = None) -> Wishes:
    snapshot = build(golden.policies_of(objects, CATALOG), CATALOG)
    written = {f"berth.dev/{key}": text for key, text in (said or {}).items()}
    raw = {"metadata": {"annotations": written}, "spec": spec or {}}
    return wishes.read(Pod(raw), snapshot.facts_for("ml").policies, snapshot, actor)


@pytest.mark.parametrize(
    ("spec", "annotation", "seconds"),
    [
        ({}, None, None),
        ({"activeDeadlineSeconds": 60}, None, 60),
        ({"activeDeadlineSeconds": 60}, "2h", 7200),
        ({"activeDeadlineSeconds": "x"}, None, None),
    ],
    ids=str,
)
def test_how_long_a_pod_runs(spec: dict[str, Any], annotation: str | None, seconds: int | None) -> None:
    """The annotation, else the pod's own deadline, else unknown."""
    said = {} if annotation is None else {"expected-duration": annotation}
    assert read(spec=spec, said=said).seconds == seconds


@pytest.mark.parametrize(
    ("seconds", "unknown", "long"), [(7201, False, True), (7200, True, False), (None, True, True), (None, False, False)]
)
def test_a_run_is_long_over_the_bound(seconds: int | None, unknown: bool, long: bool) -> None:
    """Unknown counts as the policy says."""
    assert is_long(seconds, LongRuns(over=7200, capacity=("spot",), unknown_is_long=unknown)) is long


@pytest.mark.parametrize(
    ("key", "text", "hint"),
    [
        ("expected-duration", "2 days", "write a duration such as 90m"),
        ("mig-slice", "10GB", "such as 10gb"),
        ("mig-slice", "70", "such as 10gb"),
        ("mig-slice", "11gb", "such as 10gb"),
        ("opt-out", "grace, protection", "write grace"),
    ],
)
def test_bad_syntax_is_refused_with_what_to_write(key: str, text: str, hint: str) -> None:
    """Each annotation on its own."""
    (violation,) = read(said={key: text}).violations
    assert violation.code == "BERTH-151"
    assert hint in violation.fix


def test_a_long_value_is_cut() -> None:
    """So that the fix stays within the first 200 characters."""
    (violation,) = read(said={"expected-duration": "x" * 500}).violations
    assert len(f"{violation.code}: {violation.fact}; {violation.fix}.") < 200


@pytest.mark.parametrize(("text", "out"), [("grace", True), (" grace ,", True), ("", False)])
def test_opting_out_of_grace(text: str, out: bool) -> None:
    """A list with commas; an empty one opts out of nothing."""
    assert read(said={"opt-out": text}).opt_out_grace is out


def test_the_longest_default_and_the_shortest_maximum_hold() -> None:
    """With all who say so, sorted."""
    found = read(
        cluster(
            "a", require={"gracePeriod": {"max": "1h"}, "protection": {"max": "24h"}}, default={"gracePeriod": "5m", "protectFor": "12h"}
        ),
        cluster(
            "b",
            require={"gracePeriod": {"max": "30m"}, "protection": {"max": "24h"}},
            default={"gracePeriod": "10m", "protectFor": "Always"},
        ),
        cluster("c", default={"gracePeriod": "10m"}),
    )
    assert found.grace == Limit(600, ("ClusterGPUPolicy/b", "ClusterGPUPolicy/c"))
    assert found.grace_max == Limit(1800, ("ClusterGPUPolicy/b",))
    assert found.protect == Limit(FOREVER, ("ClusterGPUPolicy/b",))
    assert found.protect_max == Limit(86400, ("ClusterGPUPolicy/a", "ClusterGPUPolicy/b"))


def test_a_services_grace_is_of_the_policies_that_name_it() -> None:
    """A longer one of a policy for everybody does not act on it."""
    objects = (
        cluster("all", default={"gracePeriod": "1h"}),
        cluster("named", match={"workloads": ["Deployment"]}, default={"gracePeriod": "5m"}),
    )
    assert read(*objects, actor=SERVICE).grace == Limit(300, ("ClusterGPUPolicy/named",))
    assert read(*objects).grace == Limit(3600, ("ClusterGPUPolicy/all",))


def test_counts_meet() -> None:
    """The smallest maximum, and what every list allows."""
    found = read(
        cluster("a", require={"gpusPerPod": {"max": 8, "oneOf": [1, 2, 4]}}), cluster("b", require={"gpusPerPod": {"oneOf": [2, 4, 8]}})
    )
    assert found.gpus_max == Limit(8, ("ClusterGPUPolicy/a",))
    assert found.one_of == (2, 4)
    assert read().one_of is None


@pytest.mark.parametrize(
    ("grant", "wish", "granted"),
    [
        ({"key": "team"}, {"key": "team"}, True),
        ({"key": "team"}, {"key": "team", "value": "a", "effect": "NoSchedule"}, True),
        ({"key": "team", "value": "a"}, {"key": "team", "value": "a"}, True),
        ({"key": "team", "value": "a"}, {"key": "team"}, False),
        ({"key": "team", "value": "a"}, {"key": "team", "value": "b"}, False),
        ({"key": "team", "effect": "NoSchedule"}, {"key": "team"}, False),
        ({"key": "team", "effect": "NoSchedule"}, {"key": "team", "effect": "NoSchedule"}, True),
        ({"key": "team"}, {"key": "pool"}, False),
    ],
    ids=str,
)
def test_a_grant_covers_what_is_no_wider(grant: Any, wish: Any, granted: bool) -> None:
    """What is left open in a grant means any, in a wish all."""
    assert grants(TolerationPattern(**grant), TolerationPattern(**wish)) is granted


def test_a_namespaces_tolerations_are_split_by_grant() -> None:
    """What is granted unites with the cluster's own; the rest is kept to be said."""
    own = {
        "kind": "GPUPolicy", "metadata": {"name": "own", "namespace": "ml"},
        "spec": {"mode": "Enforce", "default": {"tolerate": [{"key": "team", "value": "a"}, {"key": "other"}]}},
    }  # fmt: skip
    found = read(cluster("c", allow={"tolerations": [{"key": "team"}]}, default={"tolerate": [{"key": "team", "value": "a"}]}), own)
    assert found.tolerate == ((TolerationPattern(key="team", value="a"), ("ClusterGPUPolicy/c", "GPUPolicy/ml/own")),)
    assert found.ungranted == ((TolerationPattern(key="other"), "GPUPolicy/ml/own"),)
