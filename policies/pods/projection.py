"""The shape of a pod as decisions read it, and its projection: the part that a decision reads; the rules see nothing else.

Two pods with the same projection get the same decision, whatever their names, images, commands and
environments are, so the decision on one may be cached for the other (``webhook.admission.decision_cache``).
Paths do not change: an edit's path in the projection is its path in the pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, NamedTuple, get_args

from catalog import Catalog
from catalog.reserved_keys import Where
from kube.pod import DEADLINE, GRACE, MIRROR, OF_NO_CLASS, PREFERRED, PROBES, REQUIRED
from kube.tree import Path, Raw
from policies.pods import mounts
from policies.pods.actors import KUEUE_LABELS
from policies.pods.fractions import FRACTION_DEVICES, FRACTION_ENDS, FRACTIONS, SHARING_WORDS
from policies.pods.queue_systems import ANNOTATIONS as QUEUE_ANNOTATIONS
from policies.pods.queue_systems import FORMER_KEYS
from policies.pods.queue_systems import LABELS as QUEUE_LABELS
from policies.policy import GROUP, Policy

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


# --- the shape of a pod ----------------------------------------------------------------------------------------------


class PodField(NamedTuple):
    """A part of a pod of which more is to be said than its type."""

    shape: Shape
    part: Part | None = None
    """What it is read for; None: every decision reads it."""
    read: Callable[[Any, Reads], Any] | None = None
    """Returns what is read of its value, which is not null; None: all that its shape names."""
    written: bool = False
    """True if policies may write it."""


Shape = Any
"""``str``, ``int``, ``object`` for any type, a PodField, a map of field -> Shape, or a list of one Shape. What a map does not name may be
anything, and is not read."""
ANY_KEY = "*"
"""In a map: stands for every key."""


def _labels_read(labels: Any, read: Reads) -> Any:
    wanted = read.labels | read.workload_labels if "neighbours" in read.parts else read.labels
    wanted = wanted | QUEUE_LABELS if "queues" in read.parts else wanted
    reserved, right = read.reserved, read.right["labels"]
    if not isinstance(labels, dict):
        return labels
    return {
        key: labels[key]
        for key in labels
        if key in wanted or (key.startswith(reserved) and key not in right) or FORMER_KEYS.get(key, key) not in labels
    }


def _annotations_read(annotations: Any, read: Reads) -> Any:
    keys = read.annotations | QUEUE_ANNOTATIONS if "queues" in read.parts else read.annotations
    reserved, right = read.reserved, read.right["annotations"]
    if not isinstance(annotations, dict):
        return annotations
    return {
        key: annotations[key]
        for key in annotations
        if key in keys or key.startswith(READ) or key.endswith(FRACTION_ENDS) or (key.startswith(reserved) and key not in right)
    }


def _amounts_read(amounts: Any, read: Reads) -> Any:
    if "ordinary" in read.parts or not isinstance(amounts, dict):
        return amounts
    return {name: amounts[name] for name in amounts if name not in ORDINARY or ("mounts" in read.parts and name == "memory")}


def _probe_read(probe: Any, read: Reads) -> Any:
    """Return a probe's grace period; null tells a probe without one from an empty probe, which is none."""
    return {GRACE: probe.get(GRACE)} if probe and isinstance(probe, dict) else probe


def _whole(value: Any, read: Reads) -> Any:
    return value


_TEXTS: Shape = {ANY_KEY: str}
_EXPRESSION: Shape = {"key": str, "operator": str, "values": [str]}
_TERM: Shape = {"matchExpressions": [_EXPRESSION], "matchFields": [_EXPRESSION]}
_WRITTEN_TERM: Shape = {
    "matchExpressions": PodField([PodField(_EXPRESSION, written=True)], written=True),
    "matchFields": [_EXPRESSION],
}
_AMOUNTS = PodField({ANY_KEY: PodField(object, written=True)}, read=_amounts_read)
_OWN_AMOUNTS = PodField({}, read=_amounts_read)
"""Of the pod as a whole."""
_PROBE = PodField({GRACE: PodField(int, written=True)}, read=_probe_read)
_CONTAINERS: Shape = [
    {
        "name": str,
        "restartPolicy": str,
        "volumeMounts": PodField([PodField({"name": str, "mountPath": str}, read=mounts.mount_read, written=True)], part="mounts"),
        "resources": {"limits": _AMOUNTS, "requests": _AMOUNTS, "claims": PodField([{"name": str}], part="mounts", read=_whole)},
        **dict.fromkeys(PROBES, _PROBE),
    }
]
POD: Shape = {
    "metadata": {
        "labels": PodField(_TEXTS, read=_labels_read),
        "annotations": PodField(_TEXTS, read=_annotations_read),
        "ownerReferences": [{"apiVersion": str, "kind": str, "controller": object}],
    },
    "spec": {
        "nodeName": str,
        "nodeSelector": PodField(_TEXTS, read=_whole),
        "tolerations": PodField([PodField({"key": str, "operator": str, "value": str, "effect": str}, written=True)], read=_whole),
        "schedulerName": PodField(str, written=True),
        "resourceClaims": PodField([{"name": str, "resourceClaimName": str, "resourceClaimTemplateName": str}], read=_whole),
        "schedulingGates": PodField([{"name": str}], read=_whole),
        GRACE: PodField(int, written=True),
        DEADLINE: PodField(int, written=True),
        "runtimeClassName": PodField(str, written=True),
        "priorityClassName": PodField(str, written=True),
        **dict.fromkeys(OF_NO_CLASS, object),
        "hostIPC": PodField(object, part="mounts"),
        "os": PodField({"name": str}, read=_whole),
        "volumes": PodField([PodField({"name": str}, read=mounts.volume_read, written=True)], part="mounts"),
        "schedulingGroup": PodField(object, part="queues"),
        "resources": PodField({"limits": _OWN_AMOUNTS, "requests": _OWN_AMOUNTS}, part="ordinary"),
        "initContainers": _CONTAINERS,
        "containers": _CONTAINERS,
        "affinity": {
            "nodeAffinity": PodField(
                {
                    REQUIRED: PodField({"nodeSelectorTerms": [PodField(_WRITTEN_TERM, written=True)]}, written=True),
                    PREFERRED: [{"preference": _TERM}],
                },
                read=_whole,
            ),
            "podAffinity": PodField({PREFERRED: [PodField(object, written=True)]}, part="neighbours", read=_whole),
        },
    },
}
"""What is read of a pod (k8s.io/api/core/v1), for what, and what policies write."""


def is_written(path: Path) -> bool:
    """Return whether policies may write a path of a pod."""
    field = PodField(POD)
    for step in path:
        shape = field.shape
        if isinstance(shape, list) and isinstance(step, int):
            inner = shape[0]
        elif isinstance(shape, dict) and isinstance(step, str):
            inner = shape.get(step, shape.get(ANY_KEY))
        else:
            return False
        field = inner if isinstance(inner, PodField) else PodField(inner)
    return field.written


_Reader = Callable[[Any, Reads], Any]


def extract(pod: Raw, read: Reads) -> Raw:
    """Return the part of ``pod`` that is read. Values of a wrong type are copied as they are, so that
    ``Pod`` reports them."""
    out: Raw = _reader_for(read.parts)(pod, read)
    return out


@cache
def _reader_for(parts: frozenset[Part]) -> _Reader:
    return _reader(POD, parts)


def _reader(shape: Shape, parts: frozenset[Part]) -> _Reader:
    """Return the function that reads a value of this shape."""
    field = shape if isinstance(shape, PodField) else PodField(shape)
    if field.read is not None:
        return field.read
    if isinstance(field.shape, list):
        return _list_reader(_reader(field.shape[0], parts))
    if isinstance(field.shape, dict):
        inner = {name: value for name, value in field.shape.items() if not isinstance(value, PodField) or value.part in (None, *parts)}
        return _map_reader({name: _reader(value, parts) for name, value in inner.items()})
    return _whole


def _list_reader(read_item: _Reader) -> _Reader:
    def read_list(value: Any, read: Reads) -> Any:
        return [read_item(item, read) for item in value] if isinstance(value, list) else value

    return read_list


def _map_reader(fields: Mapping[str, _Reader]) -> _Reader:
    whole = tuple(name for name, reader in fields.items() if reader is _whole)
    others = tuple((name, reader) for name, reader in fields.items() if reader is not _whole)

    def read_map(value: Any, read: Reads) -> Any:
        if not isinstance(value, dict):
            return value
        out = {name: value[name] for name in whole if name in value}
        for name, reader in others:
            item = value.get(name)
            if item is not None:
                out[name] = reader(item, read)
        return out

    return read_map
