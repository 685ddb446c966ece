"""All that is read to explain one pod or workload: itself, its pods, its owners, what is told of them, the places of the
cluster, and the policies of its namespace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from analysis.admission import manifests
from analysis.admission.manifests import Manifest
from catalog import Catalog
from kube.node import Occupant
from kube.tree import Raw
from policies.document import Document, InputError
from policies.state.objects import Change, Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What was read."""

    namespace: str
    value: Raw
    """The object that was asked about; {} if it is in a file."""
    pods: Sequence[Raw] = ()
    """Itself, or those that it owns."""
    owners: Sequence[Raw] = ()
    """Of the object: the nearest first."""
    siblings: Sequence[Raw] = ()
    """Of a pod: all pods of the Deployment that makes it."""
    events: Sequence[Raw] = ()
    """About the object, its pods, and what lies between."""
    queued: Sequence[Raw] = ()
    """Kueue's Workloads of the namespace."""
    places: Sequence[Raw] = ()
    """The objects by which places are known (``policies.placement.fleet.KINDS``)."""
    occupants: Sequence[Occupant] | None = None
    """None if not all pods could be read."""
    objects: Mapping[Key, Change] = field(default_factory=dict)
    """Policies and facts."""
    installed: bool = False
    """True if the cluster has Berth's kinds."""
    ignored: Mapping[str, int] = field(default_factory=dict)
    """Kinds of the files of which nothing is read -> how many objects."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """What could not be read -> why."""


def made_of(asked: Surroundings, catalog: Catalog) -> Manifest | None:
    """Return the topmost object that the pods are made of and that Berth can read; None for a bare pod."""
    for value in (*reversed(asked.owners), asked.value):
        if value.get("kind") == "Pod":
            continue
        try:
            manifest = manifests.read_manifest(Document(file=str(value.get("kind")), value=value), catalog, asked.namespace)
        except InputError:
            continue
        if manifest.subjects:
            return manifest
    return None
