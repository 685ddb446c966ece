"""What was read of a cluster for a scan, before anything is made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from analysis.audit.assessment import Owners
from analysis.audit.stored_pod import PlainPods, StoredPod
from kube.node import Occupant
from kube.templates import RollingUpdate
from kube.tree import Raw
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_modes import Published


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What was read of a cluster. ``nodes``, ``nodepools`` and ``node_classes`` as the API server writes them, trimmed."""

    nodes: Sequence[Raw] = ()
    nodepools: Sequence[Raw] = ()
    device_classes: Sequence[Raw] = ()
    node_classes: Sequence[Raw] = ()
    daemons: Sequence[Raw] = ()
    """DaemonSets, as far as they are about nodes; () where they are not known, as no cluster is without any."""
    rolling: Mapping[tuple[str, str], RollingUpdate | None] = field(default_factory=dict)
    """(namespace, name) of a Deployment -> how it replaces its pods; None where it ends all of them first."""
    slices: Published = field(default_factory=dict)
    """What DRA drivers publish."""
    policies: Sequence[Raw] = ()
    """Berth's own policies, for what their statuses show of the server; none where they may not be read."""
    facts: ClusterFacts = field(default_factory=ClusterFacts)
    pods: Sequence[StoredPod] = ()
    plain: Mapping[PlainPods, int] = field(default_factory=Counter)
    owners: Owners = field(default_factory=dict)
    waiting: Mapping[tuple[str, str], Raw] = field(default_factory=dict)
    """(namespace, name) of a pod without a node -> the part of its spec that is about nodes; the same object for pods that are alike."""
    occupants: Sequence[Occupant] | None = None
    """What each pod takes of its node; None if not all pods were read."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Kind -> why it could not be read, in one sentence."""
    ignored: Mapping[str, int] = field(default_factory=dict)
    """Kinds of the files of which nothing is read -> how many objects."""
    age: Callable[[str], float | None] = lambda created: None
    """Seconds since a time that the API server wrote."""
