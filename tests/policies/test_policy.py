"""policies.policy: how policies are named."""

from __future__ import annotations

from policies.policy import Policy


def test_id_names_kind_and_namespace() -> None:
    """A policy is named in messages by kind, namespace and name."""
    assert Policy(name="a").id == "ClusterGPUPolicy/a"
    assert Policy(name="a", namespace="ml").id == "GPUPolicy/ml/a"
