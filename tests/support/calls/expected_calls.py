"""Which webhooks ought to be called, by the engine's own criterion."""

from __future__ import annotations

from typing import Any

from policies.engine import evaluate
from policies.planning.devices import asked
from policies.pods.permissions import annotated_fraction
from policies.pods.view import MIRROR, Pod
from policies.policy import PolicySet
from policies.request import Request
from policies.state.snapshot import Snapshot
from tests.support.calls.webhook_dispatch import NAMESPACE
from tests.support.generators.random_worlds import catalog
from tests.support.snapshots import build

Raw = dict[str, Any]
SNAPSHOT = build(PolicySet(policies=(), templates=()), catalog())
NAMED = frozenset({"mutate.pods", "validate.pods"})
OTHERS = frozenset({"mutate.claims", "validate.claims"})
CHANGED = frozenset({"validate.updates"})
MADE = frozenset({"mutate.claims-made", "validate.claims-made"})
NODE = ("system:nodes", "system:authenticated")
"""groups of a kubelet"""
ADVICE = frozenset({"advise.workloads"})
NOTHING = frozenset[str]()


def judged(pod: Raw, snapshot: Snapshot = SNAPSHOT) -> bool:
    """Whether the engine has anything to do with it."""
    return evaluate(Request(namespace=NAMESPACE, pod=pod), snapshot.facts_for(NAMESPACE)).judged


def by_name(raw: Raw, snapshot: Snapshot = SNAPSHOT) -> bool:
    """Whether it asks for an accelerator, or a misspelling of one, by resource name."""
    pod = Pod(raw)
    names = {name for container in pod.containers for name in container.resource_names}
    return any(snapshot.catalog.resource(one.resource.name) for one in asked(pod, snapshot)) or not names.isdisjoint(
        snapshot.catalog.misspellings
    )


def wanted(pod: Raw, snapshot: Snapshot = SNAPSHOT, groups: tuple[str, ...] = ()) -> frozenset[str]:
    """The webhooks for a new pod, made by somebody of these groups. A mirror pod is one that a node makes."""
    plain = without_mark(pod) if NODE[0] not in groups else pod
    if not judged(plain, snapshot) or MIRROR in Pod(plain).annotations:
        return NOTHING
    if by_name(pod, snapshot):
        return NAMED
    found = Pod(plain)  # a name that looks like an accelerator and stands in no list is in no condition
    return OTHERS if found.claims or annotated_fraction(found) else NOTHING


def without_mark(pod: Raw) -> Raw:
    """The same pod without the annotation of mirror pods, which anybody may write."""
    annotations = {key: value for key, value in Pod(pod).annotations.items() if key != MIRROR}
    return {**pod, "metadata": {**Pod(pod).metadata, "annotations": annotations}}


def pod_with(containers: int, names: list[str], **spec: object) -> Raw:
    """A pod of so many containers, each with one of each resource, as limit and as request."""
    amounts = dict.fromkeys(names, "1")
    made = [{"name": f"c{i}", "image": "x", "resources": {"limits": amounts, "requests": amounts}} for i in range(containers)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": made, **spec}}


GPU_POD = pod_with(1, ["nvidia.com/gpu"])
LIMIT_OF_ONE = 1_000_000
"""celconfig.PerCallLimit: cost of one expression"""
