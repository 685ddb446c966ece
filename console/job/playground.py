"""Snapshots of one world with a few objects replaced: what would be decided, were a policy another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import NamedTuple

from analysis.world.world import World
from cluster.watch.kinds import key_of
from console.world.derived import Derived
from console.world.view import View
from documents.yaml_reader import documents
from kube.tree import Raw, map_at, text_of
from policies.document import Document, InputError, objects
from policies.facts.cluster_facts import KINDS
from policies.objects import definition
from policies.objects.parse import parse_objects
from policies.state.objects import Change, Key
from policies.state.snapshot import Snapshot
from policies.state.updater import Updater

FILE = "policy"
"""What errors call the text in the field of that name."""
MOST_HELD = 4
"""Sets of changes whose snapshots are held: a manifest is edited many times under one."""
MOST_POLICIES = 10
"""Policies that are tried at once."""


class Snapshots(NamedTuple):
    """What decisions are made by."""

    every: Snapshot
    enforced: Snapshot
    """With the policies in Enforce alone: in a search what others would do is not asked."""


class Playground:
    """Makes them, one at a time, on any thread: nothing but the objects that are replaced is compiled again."""

    def __init__(self, world: World) -> None:
        self._catalog, self._options, self._objects = world.snapshot.catalog, world.options, world.objects
        self._all_nodes = not {"Node", "NodePool"} & world.unread.keys()
        self._lock = Lock()
        self._updater: Updater | None = None
        self._own = _both(world.snapshot)
        self._made: list[tuple[Mapping[Key, Change], Snapshots]] = []

    def snapshots(self, changes: Mapping[Key, Change]) -> Snapshots:
        """Return the world's snapshot with these objects in place of those with the same keys, and beside the others."""
        if not changes:
            return self._own
        with self._lock:
            found = next((one for known, one in self._made if known == changes), None)
            if found is None:
                found = self._snapshots(changes)
                self._made = [(changes, found), *self._made[: MOST_HELD - 1]]
            return found

    def _snapshots(self, changes: Mapping[Key, Change]) -> Snapshots:
        if self._updater is None:
            self._updater = Updater(self._catalog, self._options)
            self._updater.apply(self._objects, all_nodes=self._all_nodes)
        try:
            return _both(self._updater.apply(changes, all_nodes=self._all_nodes).snapshot)
        finally:
            self._updater.apply({key: self._objects.get(key) for key in changes}, all_nodes=self._all_nodes)


def _both(snapshot: Snapshot) -> Snapshots:
    return Snapshots(snapshot, snapshot.with_policies(one for one in snapshot.policies if one.mode == "Enforce"))


PLAYGROUNDS = Derived(Playground)


def supposed(text: str, view: View) -> tuple[Mapping[Key, Change], Sequence[InputError]]:
    """Return the policies that somebody typed as changes of a world, and what is wrong with them; where one is wrong none is tried.

    Those of a kind that the viewer may not list are denied, whether or not there is one of that name.
    """
    if not text.strip():
        return {}, []
    found, errors = documents(text, FILE)
    items = [item for document in found for item in objects(document)]
    errors += [item for item in items if isinstance(item, InputError)]
    read = [item for item in items if isinstance(item, Document)]
    errors += [error for item in read if (error := _denied(item, view)) is not None]
    if len(read) > MOST_POLICIES:
        errors.append(InputError(file=FILE, message=f"has {len(read)} objects; at most {MOST_POLICIES} can be tried at once"))
    if not errors:
        known = [Document(file="", value=value) for key, value in view.world.objects.items() if key[0] == "GPUNodeTemplate" and value]
        own = {key_of("GPUNodeTemplate", one.value) for one in read if one.value["kind"] == "GPUNodeTemplate"}
        beside = [one for one in known if key_of("GPUNodeTemplate", one.value) not in own]
        _, wrong, _ = parse_objects([*read, *beside], view.world.snapshot.catalog)
        errors += [error for error in wrong if error.file == FILE]
    changes: dict[Key, Change] = {} if errors else {key_of(item.value["kind"], item.value): item.value for item in read}
    return changes, errors


def _denied(item: Document, view: View) -> InputError | None:
    value = item.value
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind not in definition.KINDS:
        return item.error(("kind",), f"must be one of {', '.join(definition.KINDS)}; put other objects into the manifest field")
    namespace = text_of(map_at(value, "metadata").get("namespace"))
    if kind == "GPUPolicy" and namespace not in view.scope.own_policies:
        return item.error(("metadata", "namespace"), f'you may not list them in namespace "{namespace}": ask for the role "view" there')
    if kind == "ClusterGPUPolicy" and not view.scope.cluster_policies:
        return item.error((), "you may not list ClusterGPUPolicies: ask for the ClusterRole berth-guardrails-view")
    if kind == "GPUNodeTemplate" and not view.scope.node_templates:
        return item.error((), "you may not list GPUNodeTemplates: ask for the ClusterRole berth-guardrails-view")
    return None


def facts(values: Sequence[Raw]) -> dict[Key, Change]:
    """Return facts that stand beside a manifest as changes of a world."""
    return {key_of(value["kind"], value): value for value in values if value.get("kind") in KINDS and map_at(value, "metadata").get("name")}
