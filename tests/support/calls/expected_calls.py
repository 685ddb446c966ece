"""Which webhooks ought to be called, by the engine's own criterion."""

from __future__ import annotations

from typing import Any

from kube.pod import MIRROR, Pod
from policies.engine import evaluate
from policies.planning.devices import requested_names
from policies.pods.fractions import annotated_fraction
from policies.policy import PolicySet
from policies.request import Request
from policies.state.snapshot import Snapshot
from tests.support.calls.webhook_dispatch import NAMESPACE
from tests.support.generators.random_worlds import catalog
from tests.support.snapshots import build

Raw = dict[str, Any]
SNAPSHOT = build(PolicySet(policies=(), templates=()), catalog())
NAMED = frozenset({"mutate.pods", "validate.pods"})
BY_CLAIM = frozenset({"mutate.claims", "validate.claims"})
"""Entries for pods with claims where these are at Ignore."""
CHANGED = frozenset({"validate.updates"})
MADE = frozenset({"mutate.claims-made", "validate.claims-made"})
NODE = ("system:nodes", "system:authenticated")
"""groups of a kubelet"""
ADVICE = frozenset({"advise.workloads"})
OPERATORS = frozenset({"advise.operators"})
NOTHING = frozenset[str]()


def judged(pod: Raw, snapshot: Snapshot = SNAPSHOT) -> bool:
    """Whether the engine has anything to do with it."""
    return evaluate(Request(namespace=NAMESPACE, pod=pod), snapshot.facts_for(NAMESPACE)).is_evaluated


BEGINNINGS = (
    "nvidia.com/mig-", "amd.com/", "aws.amazon.com/neuron", "cloud-tpus.google.com/", "huawei.com/", "deviceclass.resource.kubernetes.io/",
)  # fmt: skip
"""A condition compares names with these, and is wider than the engine there."""


def may_be_judged(raw: Raw) -> bool:
    """Whether a name begins as one of a pattern does, at an amount that is not zero, or there are too many to look."""
    pod = Pod(raw)
    lists = (pod.spec.get("initContainers") or (), pod.spec.get("containers") or ())
    amounts = [found for container in pod.containers for found in (container.limits, container.requests)]
    begins = any(name.startswith(BEGINNINGS) and amount != "0" for found in amounts for name, amount in found.items())
    return begins or any(len(found) > 16 for found in amounts) or any(len(found) > 200 for found in lists)


def wanted(pod: Raw, snapshot: Snapshot = SNAPSHOT, groups: tuple[str, ...] = ()) -> frozenset[str]:
    """The webhooks for a new pod, made by somebody of these groups. A mirror pod is one that a node makes."""
    plain = without_mark(pod) if NODE[0] not in groups else pod
    if MIRROR in Pod(plain).annotations:
        return NOTHING
    return NAMED if may_be_judged(plain) or (judged(plain, snapshot) and _is_told(plain, snapshot)) else NOTHING


def _is_told(raw: Raw, snapshot: Snapshot) -> bool:
    """Whether a condition can tell that it is judged: a name that looks like an accelerator's and is in no list is in no condition."""
    pod = Pod(raw)
    names = {name for container in pod.containers for name in container.resource_names}
    by_name = any(snapshot.catalog.resource(one.resource.name) for one in requested_names(pod, snapshot))
    return by_name or bool(pod.claims) or annotated_fraction(pod) or not names.isdisjoint(snapshot.catalog.misspellings)


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
"""celconfig.PerCallLimit: cost of an expression."""
