"""The projection of a pod: the part that a decision reads; the rules see nothing else.

Two pods with the same projection get the same decision, whatever their names, images, commands and
environments are, so the decision on one may be cached for the other (``webhook.admission.decision_cache``).
Paths do not change: an edit's path in the projection is its path in the pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from catalog import Catalog
from catalog.reserved_keys import Where
from kube.pod import DEADLINE, GRACE, MIRROR, PROBES
from kube.tree import Raw
from policies.pods import mounts
from policies.pods.permissions import FRACTION_DEVICES, FRACTION_ENDS, FRACTIONS, KUEUE_LABELS, SHARING_WORDS
from policies.pods.queue_systems import ANNOTATIONS as QUEUE_ANNOTATIONS
from policies.pods.queue_systems import LABELS as QUEUE_LABELS
from policies.policy import GROUP, Policy

SPEC = (
    "nodeName",
    "nodeSelector",
    "tolerations",
    "schedulerName",
    "resourceClaims",
    "schedulingGates",
    GRACE,
    DEADLINE,
    "runtimeClassName",
    "priorityClassName",
    "priority",
    "preemptionPolicy",
)
"""Fields of spec that are copied whole."""
CONTAINER = ("name", "restartPolicy")
"""Fields of a container that are copied whole."""
OWNER = ("apiVersion", "kind", "controller")
OWN = f"{GROUP}/"
READ = (OWN, *SHARING_WORDS)
"""Prefixes of the annotations that are read whatever policies there are."""
ORDINARY = ("cpu", "memory", "ephemeral-storage")
"""Resource names that only ``requestsEqualLimits: [cpuAndMemory]`` reads; it is also the only reader of
``spec.resources``."""


Part = Literal["ordinary", "mounts", "neighbours", "queues"]
"""``ordinary``: cpu and memory, which a policy compares. ``mounts``: what is mounted at shared memory, and memory
limits. ``neighbours``: pod affinity, and the labels of one workload's pods. ``queues``: what queue systems read."""
PARTS: frozenset[Part] = frozenset(get_args(Part))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """The labels, annotations and resources that policies and their catalog read: the cluster's policies,
    or a namespace's own too."""

    labels: frozenset[str]
    annotations: frozenset[str]
    """Annotations beside those of Berth's own group and of sharing schedulers, which are all read."""
    parts: frozenset[Part]
    """What is read of pods for few policies alone."""
    users: frozenset[str]
    """The users that some policy excludes, and with the part ``queues`` those of ``makers``."""
    workload_labels: frozenset[str]
    """The labels that pods of one workload share, which are read with the part ``neighbours``."""
    makers: frozenset[str]
    """The users that make the pods of workloads."""
    reserved: tuple[str, ...]
    """Prefixes beneath which every key is read of which something may be said: not those of ``right``."""
    right: Mapping[Where, frozenset[str]]

    def wider(self, policies: Sequence[Policy]) -> Reads:
        """Return these reads with those of the policies added: this very object if nothing is added."""
        labels = self.labels.union(*(_labels(policy) for policy in policies))
        parts = self.parts.union(*(_parts(policy) for policy in policies))
        users = self.users.union(*(policy.exclude_users for policy in policies), self.makers if "queues" in parts else ())
        if (labels, users, parts) == (self.labels, self.users, self.parts):
            return self
        return replace(self, labels=labels, users=users, parts=parts)


def reads(policies: Iterable[Policy], catalog: Catalog) -> Reads:
    """Return what the cluster's policies among these read; those may be in force in any namespace."""
    readers = Readers(catalog)
    for policy in policies:
        if policy.namespace is None:
            readers.count(policy, 1)
    return readers.reads()


def _labels(policy: Policy) -> frozenset[str]:
    selector = policy.match.pod_selector
    return selector.keys if selector is not None else frozenset()


def _parts(policy: Policy) -> Iterator[Part]:
    if "cpuAndMemory" in policy.require.requests_equal_limits:
        yield "ordinary"
    if policy.default.shared_memory is not None:
        yield "mounts"
    if policy.default.topology is not None:
        yield "neighbours"
    if policy.default.queue is not None or policy.require.queue is not None:
        yield "queues"


class Readers:
    """Counts of the cluster's policies that read each thing, for callers with ten thousand policies of
    which one changes."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._labels: Counter[str] = Counter()
        self._users: Counter[str] = Counter()
        self._parts: Counter[Part] = Counter()

    def count(self, policy: Policy, sign: int) -> None:
        """Count a policy that comes into force (1) or is removed (-1)."""
        for key in _labels(policy):
            self._labels[key] += sign
        for user in policy.exclude_users:
            self._users[user] += sign
        for part in _parts(policy):
            self._parts[part] += sign

    def copied(self) -> Readers:
        """Return a copy that counts by itself."""
        copied = copy(self)
        copied._labels, copied._users, copied._parts = Counter(self._labels), Counter(self._users), Counter(self._parts)
        return copied

    def reads(self) -> Reads:
        """Return what all counted policies read together."""
        self._labels, self._users, self._parts = +self._labels, +self._users, +self._parts
        protections, makers = self._catalog.protections, self._catalog.pod_makers
        listed = [(one.where, one.key) for one in protections] + [(one.where, one.key) for one in self._catalog.words]
        labels = {key for where, key in listed if where == "labels"}
        annotations = {key for where, key in listed if where == "annotations"}
        return Reads(
            labels=frozenset({*labels, *self._catalog.signatures, *KUEUE_LABELS, *self._labels}),
            annotations=frozenset({*annotations, *FRACTIONS, FRACTION_DEVICES, MIRROR}),
            parts=frozenset(self._parts),
            users=frozenset(self._users) | (makers if "queues" in self._parts else frozenset()),
            workload_labels=frozenset(self._catalog.workload_labels),
            makers=makers,
            reserved=self._catalog.reserved_prefixes,
            right=self._catalog.right_keys,
        )


def extract(pod: Raw, read: Reads) -> Raw:
    """Return the part of ``pod`` that is read. Values of a wrong type are copied as they are, so that
    ``Pod`` reports them."""
    out: Raw = {}
    metadata, spec = pod.get("metadata"), pod.get("spec")
    if metadata is not None:
        out["metadata"] = _metadata(metadata, read) if isinstance(metadata, dict) else metadata
    if spec is not None:
        out["spec"] = _spec(spec, read) if isinstance(spec, dict) else spec
    return out


def _metadata(metadata: Raw, read: Reads) -> Raw:
    out: Raw = {}
    labels, annotations = metadata.get("labels"), metadata.get("annotations")
    if labels is not None:
        wanted = read.labels | read.workload_labels if "neighbours" in read.parts else read.labels
        wanted = wanted | QUEUE_LABELS if "queues" in read.parts else wanted
        reserved, right = read.reserved, read.right["labels"]
        out["labels"] = (
            {key: labels[key] for key in labels if key in wanted or (key.startswith(reserved) and key not in right)}
            if isinstance(labels, dict)
            else labels
        )
    if annotations is not None:
        keys = read.annotations | QUEUE_ANNOTATIONS if "queues" in read.parts else read.annotations
        out["annotations"] = _annotations(annotations, keys, read) if isinstance(annotations, dict) else annotations
    owners = metadata.get("ownerReferences")
    if owners is not None:
        out["ownerReferences"] = [_taken(owner, OWNER) for owner in owners] if isinstance(owners, list) else owners
    return out


def _annotations(annotations: Raw, keys: frozenset[str], read: Reads) -> Raw:
    reserved, right = read.reserved, read.right["annotations"]
    return {
        key: annotations[key]
        for key in annotations
        if key in keys or key.startswith(READ) or key.endswith(FRACTION_ENDS) or (key.startswith(reserved) and key not in right)
    }


def _spec(spec: Raw, read: Reads) -> Raw:
    out = {field: spec[field] for field in SPEC if field in spec}
    if "mounts" in read.parts:
        out |= _taken(spec, ("hostIPC", "os"))
        mounts.projected(spec, out)
    if "queues" in read.parts:
        out |= _taken(spec, ("schedulingGroup",))
    own = spec.get("resources")
    if own is not None and "ordinary" in read.parts:
        out["resources"] = _resources(own, read) if isinstance(own, dict) else own
    for field in ("initContainers", "containers"):
        containers = spec.get(field)
        if containers is not None:
            out[field] = [_container(c, read) for c in containers] if isinstance(containers, list) else containers
    affinity = spec.get("affinity")
    if affinity is not None:
        out["affinity"] = _taken(affinity, ("nodeAffinity", "podAffinity") if "neighbours" in read.parts else ("nodeAffinity",))
    return out


def _container(container: Any, read: Reads) -> Any:
    if not isinstance(container, dict):
        return container
    out = {field: container[field] for field in CONTAINER if field in container}
    if "mounts" in read.parts:
        mounts.projected_mounts(container, out)
    resources = container.get("resources")
    if resources is not None:
        out["resources"] = _resources(resources, read) if isinstance(resources, dict) else resources
    for field in PROBES:
        probe = container.get(field)
        if probe is not None:
            out[field] = {GRACE: probe.get(GRACE)} if probe and isinstance(probe, dict) else probe
    return out


def _resources(resources: Raw, read: Reads) -> Raw:
    out: Raw = {}
    for side in ("limits", "requests"):
        amounts = resources.get(side)
        if amounts is not None:
            out[side] = amounts if "ordinary" in read.parts or not isinstance(amounts, dict) else _accelerators(amounts, read)
    if "mounts" in read.parts and "claims" in resources:
        out["claims"] = resources["claims"]
    return out


def _accelerators(amounts: Mapping[str, Any], read: Reads) -> Raw:
    return {name: amounts[name] for name in amounts if name not in ORDINARY or ("mounts" in read.parts and name == "memory")}


def _taken(value: Any, fields: Iterable[str]) -> Any:
    return {field: value[field] for field in fields if field in value} if isinstance(value, dict) else value
