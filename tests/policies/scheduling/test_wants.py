"""What is read of a pod before its place is judged."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policies.pods.view import DEFAULT_SCHEDULER
from policies.scheduling.wants import wants

KEYS = st.sampled_from(
    [
        "spec",
        "containers",
        "initContainers",
        "resources",
        "requests",
        "limits",
        "ports",
        "hostPort",
        "nodeSelector",
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
        "matchExpressions",
        "tolerations",
        "topologySpreadConstraints",
        "volumes",
        "overhead",
    ]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(KEYS, ANYTHING))
def test_no_content_makes_it_raise(pod: dict[str, Any]) -> None:
    """A pod need not have passed the API server."""
    assert wants({"spec": pod}).scheduler == DEFAULT_SCHEDULER


def test_expressions_know_where_they_stand() -> None:
    """So that a patch can change them."""
    terms = [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}]}, {"matchFields": [{"key": "metadata.name"}]}, {}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    found = wants({"spec": {"nodeSelector": {"zone": "b"}, "affinity": affinity}})
    assert [(one.key, one.operator, one.values, one.path[-1]) for one in found.selector] == [("zone", "In", ("b",), "zone")]
    assert found.terms is not None
    assert [term.empty for term in found.terms] == [False, False, True]
    assert found.terms[0].labels[0].path[-3:] == (0, "matchExpressions", 0)


def test_what_other_filters_read_is_named() -> None:
    """They are not judged; preferences are nobody's reason."""
    spec = {
        "affinity": {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]},
            "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]},
        },
        "topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "persistentVolumeClaim": {"claimName": "c"}}],
        "schedulingGates": [{"name": "g"}],
    }
    assert wants({"spec": spec}).unjudged == ("podAntiAffinity", "volumes", "schedulingGates")
    assert wants({"spec": {"topologySpreadConstraints": [{"maxSkew": 1}], "resourceClaims": [{"name": "c"}]}}).unjudged == (
        "topologySpreadConstraints",
        "resourceClaims",
    )
