"""Hosts: machines as kinds, and what their labels show."""

from __future__ import annotations

from policies.offers.build import hosts_of
from tests.support.cases import golden
from tests.support.snapshots import build

CATALOG = golden.catalog_with()
TYPE = "node.kubernetes.io/instance-type"


def test_types_have_the_platforms_prefix() -> None:
    """HyperPod's labels say ml.p5.48xlarge of what Karpenter's say p5.48xlarge."""
    named = {
        name: {host.name: host.attributes["type"] for host in hosts_of(CATALOG.platforms[name], CATALOG, frozenset()) if host.count}
        for name in ("karpenter-aws", "hyperpod")
    }
    assert named["karpenter-aws"]["p5.48xlarge"] == ("p5.48xlarge",)
    assert named["hyperpod"]["ml.p5.48xlarge"] == ("ml.p5.48xlarge",)


def test_n1_machines_are_known_by_how_their_names_begin() -> None:
    """Any size of N1 may have a T4; a machine of another series is unknown, and may be anything."""
    table = build(golden.policies_of([], CATALOG), CATALOG, platforms=("gke",)).tables["gke"]
    rows, undecided = table.select(TYPE, "In", ("n1-highmem-8",))
    rows &= table.by_resource["nvidia.com/gpu"]
    found = {offer.host.gpu.model for i, offer in enumerate(table.offers) if rows >> i & 1 and offer.host.gpu is not None}
    assert found == {"T4", "V100-16GB", "P100", "P4", "K80"}
    assert not undecided
    assert table.select(TYPE, "In", ("custom-8-30720",))[1] is False
    assert table.select(TYPE, "In", ("a9-highgpu-8g",)) == (table.all, True)
    assert table.knows(TYPE, "n1-standard-4")
    assert not table.knows(TYPE, "n9-standard-4")
