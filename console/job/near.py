"""One object of a dump with what is around it, as ``sources.surroundings`` reads it of a cluster."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from analysis.why.surroundings import Surroundings
from analysis.world.world import World
from catalog import Catalog
from cluster.watch.kinds import KUEUE_WORKLOADS
from console.server.page import Visit
from console.world.derived import Derived
from console.world.scope import ListedKind
from console.world.view import View
from kube.tree import Raw, text_of
from policies.document import InputError
from policies.workloads.templates import workload_of
from sources.surroundings import Dump, kind_of

QUEUED = ListedKind(KUEUE_WORKLOADS.group, KUEUE_WORKLOADS.plural)


def _dump(world: World) -> Dump:
    return Dump(world.dumped or {})


DUMPS = Derived(_dump)


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
