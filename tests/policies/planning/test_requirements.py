"""MergedSettings: how the demands and defaults of several policies become one."""

from __future__ import annotations

from typing import Any

import pytest

from kube.taints import TolerationPattern
from policies.offers.merging import TightestLimit
from policies.planning import requirements
from policies.planning.requirements import FOREVER, MergedSettings, grants
from policies.pods.actors import PLAIN, SERVICE, Actor
from tests.support.cases import golden
from tests.support.snapshots import build

CATALOG = golden.catalog_with()


def cluster(name: str, **spec: Any) -> dict[str, Any]:
    return {"kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": {"mode": "Enforce", **spec}}


def read(*objects: Any, actor: Actor = PLAIN, doubtful: tuple[str, ...] = ()) -> MergedSettings:
    snapshot = build(golden.policies_of(objects, CATALOG), CATALOG)
    policies = snapshot.facts_for("ml").policies
    certain = [c for c in policies if c.policy.name not in doubtful]
    return requirements.merge_settings(policies, certain, actor.grace, actor.disruption)


def test_the_longest_default_and_the_shortest_maximum_hold() -> None:
    """With all who say so, sorted."""
    found = read(
        cluster(
            "a",
            require={"gracePeriod": {"min": "5m", "max": "1h"}, "protection": {"max": "24h"}},
            default={"gracePeriod": "5m", "protectFor": "12h"},
        ),
        cluster(
            "b",
            require={"gracePeriod": {"min": "10m", "max": "30m"}, "protection": {"max": "24h"}},
            default={"gracePeriod": "10m", "protectFor": "Always"},
        ),
        cluster("c", default={"gracePeriod": "10m"}),
    )
    assert found.grace == TightestLimit(600, ("ClusterGPUPolicy/b", "ClusterGPUPolicy/c"))
    assert found.grace_max == TightestLimit(1800, ("ClusterGPUPolicy/b",))
    assert found.grace_min == TightestLimit(600, ("ClusterGPUPolicy/b",))
    assert found.protect == TightestLimit(FOREVER, ("ClusterGPUPolicy/b",))
    assert found.protect_max == TightestLimit(86400, ("ClusterGPUPolicy/a", "ClusterGPUPolicy/b"))


def test_a_services_grace_is_of_the_policies_that_name_it() -> None:
    """A longer one of a policy for everybody does not act on it."""
    objects = (
        cluster("all", default={"gracePeriod": "1h"}),
        cluster("named", match={"workloads": ["Deployment"]}, default={"gracePeriod": "5m"}),
    )
    assert read(*objects, actor=SERVICE).grace == TightestLimit(300, ("ClusterGPUPolicy/named",))
    assert read(*objects).grace == TightestLimit(3600, ("ClusterGPUPolicy/all",))


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
def test_a_grant_covers_what_is_no_wider(grant: Any, wish: Any, *, granted: bool) -> None:
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


def test_of_a_policy_that_may_not_be_for_the_pod_only_demands_hold() -> None:
    """What it demands is judged, what it would give or change is not: no default, no grant."""
    doubtful = cluster(
        "doubtful",
        require={"gracePeriod": {"max": "1h"}},
        default={"gracePeriod": "5m", "protectFor": "1h", "repair": ["accelerators"], "acceleratorTaints": "Tolerate"},
        allow={"tolerations": [{"key": "team"}]},
    )
    found, certain = read(doubtful, doubtful=("doubtful",)), read(doubtful)
    assert found.grace_max == certain.grace_max == TightestLimit(3600, ("ClusterGPUPolicy/doubtful",))
    for gift in ("grace", "protect", "repair", "taints", "granted"):
        assert not getattr(found, gift)
        assert getattr(certain, gift)
