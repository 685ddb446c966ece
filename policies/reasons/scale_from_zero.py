"""A pod that asks for devices by claims alone where only Karpenter could make a node for it: Karpenter passes over such pods
(aws/karpenter-provider-aws#9519; its option --ignore-dra-requests is on unless switched off), so it waits for ever.

Found only where every node and NodePool is known, and no node has devices of the vendor. A node whose labels tell of GPUs while it
offers none may have a DRA driver: then not every place is known (``policies.facts.places``).
"""

from __future__ import annotations

from collections.abc import Iterator

from policies.messages import phrase
from policies.planning.plan import ReviewedPod
from policies.state.snapshot import Snapshot
from policies.verdict import Remark, Violation

RULE = "node_affinity"
CODE = "BERTH-243"


def check(subject: ReviewedPod, snapshot: Snapshot, violations: tuple[Violation, ...]) -> Iterator[Remark]:
    """Yield the remark on a created pod with claims alone for devices that no node has, unless it is denied."""
    request, places, devices = subject.request, snapshot.known_places, subject.devices
    if places is None or not places.pools or request.phase != "validate" or request.operation != "CREATE" or violations:
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
    yield Remark(code=CODE, found=phrase("text", resource=whole, count=count, served=served), rule=RULE)
