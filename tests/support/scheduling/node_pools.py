"""NodePools as manifests, and a reader of them with the machines of AWS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from policies.offers.build import tables_of
from policies.offers.table import Table
from policies.placement.pools import Pool, PoolReader
from tests.support.generators.random_worlds import catalog

Raw = dict[str, Any]
AWS = "karpenter-aws"
CATEGORY, FAMILY = "karpenter.k8s.aws/instance-category", "karpenter.k8s.aws/instance-family"


def node_pool(
    name: str,
    *,
    requirements: Sequence[Raw] = (),
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Raw] = (),
    startup: Sequence[Raw] = (),
    limits: Raw | None = None,
    resources: Raw | None = None,
    group: str = "karpenter.k8s.aws",
    **spec: Any,
) -> Raw:
    """A NodePool of EC2 machines, or of another group's. ``resources``: what its nodes have together."""
    template = {
        "metadata": {"labels": dict(labels or {})},
        "spec": {
            "nodeClassRef": {"group": group, "kind": "EC2NodeClass", "name": "default"},
            "requirements": [*requirements],
            "taints": [*taints],
            "startupTaints": [*startup],
        },
    }
    metadata = {"name": name}
    spec = {"template": template, **({} if limits is None else {"limits": limits}), **spec}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": metadata,
        "spec": spec,
        "status": {"resources": resources or {}},
    }


def of_families(*families: str) -> Raw:
    """A requirement on the instance family."""
    return {"key": FAMILY, "operator": "In", "values": [*families]}


@lru_cache(1)
def tables() -> Mapping[str, Table]:
    """Of the platform karpenter-aws."""
    return tables_of(catalog(), (AWS,), "mixed", frozenset(), (), frozenset())


@lru_cache(1)
def reader() -> PoolReader:
    """Of NodePools on AWS."""
    return PoolReader(catalog(), tables())


def pool(name: str = "gpu", **parts: Any) -> Pool:
    """``node_pool``, read."""
    found = reader().read(node_pool(name, **parts))
    assert found is not None
    return found
