"""One object of a dump with what is around it, as ``sources.surroundings`` reads it of a cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace

from analysis.why.surroundings import Surroundings
from analysis.world.world import World
from catalog import Catalog
from console.server.page import Visit
from console.world.derived import Derived
from console.world.scope import ListedKind
from console.world.view import View
from kube.pod import controlling_owner
from kube.tree import Raw, map_at, text_of
from policies.document import InputError
from policies.workloads.templates import workload_of
from sources.surroundings import kind_of

QUEUED = ListedKind("kueue.x-k8s.io", "workloads")
MOST_OWNERS = 8
"""As in ``cluster.survey.neighbours``."""
MOST_PODS = 500
"""Pods of one workload that are looked at."""


class Dump:
    """The objects of a dump, by what leads to them."""

    def __init__(self, world: World) -> None:
        self._objects = world.dumped or {}
        self._by_uid: dict[str, Raw] = {}
        self._owned: dict[str, list[Raw]] = defaultdict(list)
        self._events: dict[str, list[Raw]] = defaultdict(list)
        self._queued: dict[str, list[Raw]] = defaultdict(list)
        for (kind, namespace, _), value in self._objects.items():
            if kind == "Event":
                self._events[_about(value)].append(value)
                continue
            metadata = map_at(value, "metadata")
            self._by_uid[text_of(metadata.get("uid"))] = value
            if owner := controlling_owner(metadata):
                self._owned[text_of(owner.get("uid"))].append(value)
            if text_of(value.get("apiVersion")).startswith("kueue.x-k8s.io/"):
                self._queued[namespace].append(value)
        self._by_uid.pop("", None)
        self._owned.pop("", None)

    def near(self, namespace: str, type_: str, name: str, catalog: Catalog) -> Surroundings | None:
        """Return TYPE/NAME with its pods, owners, events and Kueue's Workloads; None if the dump does not have it. Raises InputError
        for a type that nobody knows."""
        kinds = [one.kind for one in kind_of(type_, catalog)]
        value = next((found for kind in kinds if (found := self._objects.get((kind, namespace, name))) is not None), None)
        if value is None:
            return None
        below = [] if value.get("kind") == "Pod" else list(self._below(value))
        pods = [value] if value.get("kind") == "Pod" else [one for one in below if one.get("kind") == "Pod"][:MOST_PODS]
        owners = list(self._owners(value))
        events = [event for one in (value, *below, *owners) for event in self._events.get(_self(one), ())]
        return Surroundings(
            namespace=namespace, value=value, pods=pods, owners=owners, events=events, queued=self._queued.get(namespace, [])
        )

    def _owners(self, value: Raw) -> Iterator[Raw]:
        for _ in range(MOST_OWNERS):
            above = self._by_uid.get(text_of(controlling_owner(map_at(value, "metadata")).get("uid")))
            if above is None:
                return
            yield above
            value = above

    def _below(self, value: Raw, depth: int = MOST_OWNERS) -> Iterator[Raw]:
        for one in self._owned.get(text_of(map_at(value, "metadata").get("uid")), ()) if depth else ():
            yield one
            yield from self._below(one, depth - 1)


def _self(value: Raw) -> str:
    metadata = map_at(value, "metadata")
    return f"{value.get('kind')}/{text_of(metadata.get('namespace'))}/{text_of(metadata.get('name'))}"


def _about(event: Raw) -> str:
    regarding = map_at(event, "involvedObject") or map_at(event, "regarding")
    return f"{regarding.get('kind')}/{text_of(regarding.get('namespace'))}/{text_of(regarding.get('name'))}"


DUMPS = Derived(Dump)


def surroundings_in_dump(world: World, namespace: str, type_: str, name: str) -> Surroundings:
    """Return an object of a world of files with what is around it. Raises InputError if it is not there."""
    found = DUMPS.of(world).near(namespace, type_, name, world.snapshot.catalog)
    if found is None:
        raise InputError(file=f"{type_}/{name}", message=f"is not in namespace {namespace}; see the list of pods")
    return found


async def looked_for(visit: Visit, namespace: str, type_: str) -> Collection[ListedKind]:
    """Return the kinds of a type that the viewer may list there. Raises InputError if there is none, and for a type that nobody knows."""
    named = kind_of(type_, visit.view.world.snapshot.catalog)
    kinds = {ListedKind(version.rpartition("/")[0], one.resource) for one in named for version in one.api_version}
    allowed = await visit.may_list(kinds, namespace)
    if not allowed:
        names = " and ".join(sorted({kind.plural for kind in kinds}))
        message = f'is not shown: you may not list {names} in namespace {namespace}. Ask for the role "view" there'
        raise InputError(file=type_, message=message)
    return allowed


async def as_listed(visit: Visit, asked: Surroundings) -> Surroundings:
    """Return what was read, without owners and Workloads of Kueue's that the viewer may not list."""
    catalog = visit.view.world.snapshot.catalog
    kinds = [_kind(one, catalog) for one in asked.owners]
    allowed = await visit.may_list({QUEUED, *kinds}, asked.namespace)
    lacking = dict.fromkeys(kind.plural for kind in kinds if kind not in allowed)
    unread = {name: f'you may not list {name} in namespace {asked.namespace}: ask for the role "view" there' for name in lacking}
    owners = [one for one, kind in zip(asked.owners, kinds, strict=True) if kind in allowed]
    return replace(asked, owners=owners, queued=asked.queued if QUEUED in allowed else (), unread={**asked.unread, **unread})


def _kind(value: Raw, catalog: Catalog) -> ListedKind:
    found = workload_of(catalog, text_of(value.get("apiVersion")), text_of(value.get("kind")))
    plural = found.resource if found is not None and found.resource else text_of(value.get("kind")).lower()
    return ListedKind(text_of(value.get("apiVersion")).rpartition("/")[0], plural)


def permitted(asked: Surroundings, view: View) -> Surroundings:
    """Return what the viewer may see of it: events are a right of their own."""
    if asked.namespace in view.scope.events:
        return asked
    unread = {**asked.unread, "events": f'you may not list events in namespace {asked.namespace}: ask for the role "view" there'}
    return replace(asked, events=(), unread=unread)
