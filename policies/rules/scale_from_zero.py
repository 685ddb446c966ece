"""Scale from zero: the author of a pod that requests devices only by claims learns that Karpenter makes no node for it.

Reads   readable claims, the resource names of every node and NodePool
Writes  nothing
Judges  nothing: a remark names the resource to request. Karpenter ignores pods with claims (aws/karpenter-provider-aws#9519; its option
        --ignore-dra-requests is on by default), so the pod waits for ever if no node has devices of the vendor
Never   remarks unless every node and NodePool is known (``policies.facts.places``): a node with labels of GPUs that offers none may have
        a DRA driver
"""

from __future__ import annotations

from collections.abc import Iterator

from policies.messages import phrase
from policies.planning.plan import ReviewedPod
from policies.rules.node_affinity import NAME
from policies.state.snapshot import Snapshot
from policies.verdict import Remark

CODE = "BERTH-243"


def check_admitted(subject: ReviewedPod, snapshot: Snapshot) -> Iterator[Remark]:
    """Yield the remark on a created pod with claims alone for devices that no node has."""
    places, devices = snapshot.known_places, subject.devices
    if places is None or not places.pools:
        return
    vendors = {vendor for claim in devices.claimed for vendor in claim.vendors}
    if devices.asked or len(vendors) != 1:
        return
    (vendor,) = vendors
    known = (snapshot.catalog.resource(name) for name in places.resources)
    whole = snapshot.catalog.whole.get(vendor)
    if whole is None or any(one is not None and one.vendor == vendor for one in known):
        return
    count = max(1, sum(claim.count.least for claim in devices.claimed))
    classes = sorted(name for name, one in snapshot.cluster.device_classes.items() if one.extended == whole)
    served = phrase("by class", device_class=classes[0]) if classes else phrase("by plugin")
    yield Remark(code=CODE, found=phrase("text", resource=whole, count=count, served=served), rule=NAME)
