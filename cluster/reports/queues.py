"""The changes of pods and of their owners that were not taken yet. Of a pod nothing is queued, and nothing is
remembered, unless it may hold devices."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import orjson

from analysis.audit.ledger import PodKey
from analysis.audit.stored_pod import Controller, StoredPod
from analysis.audit.templates import STAND_IN
from kube.templates import group_of
from kube.tree import Raw
from policies.document import Document


class PodQueue:
    """The store of a reflector of pods, see ``cluster.watch.trims.PodTrim``. ``filled`` is set while there are changes to
    take; ``owners`` takes the pods that own others."""

    def __init__(self, filled: asyncio.Event, owners: OwnerQueue | None = None) -> None:
        self._filled = filled
        self._owners = owners or OwnerQueue(filled)
        self._known: set[PodKey] = set()
        self._waiting: dict[PodKey, StoredPod | None] = {}

    async def replace(self, kind: str, objects: Sequence[Raw]) -> None:
        """Take a full list: pods that are not in it are gone."""
        listed = {_key(one) for one in objects if one["pod"] is not None}
        for key in self._known - listed:
            self._waiting[key] = None
        for one in objects:
            if one["pod"] is not None:
                self._waiting[_key(one)] = one["pod"]
        self._known = listed
        await self._owners.replace(kind, objects)
        self._filled.set()  # after an empty list too: the reader may wait for the first one

    def put(self, kind: str, obj: Raw) -> None:
        """Take a new or changed pod."""
        if obj["pod"] is None:
            self._drop(obj)
        else:
            self._known.add(_key(obj))
            self._waiting[_key(obj)] = obj["pod"]
            self._filled.set()
        self._owners.put(kind, obj)

    def remove(self, kind: str, obj: Raw) -> None:
        """Take the end of a pod."""
        self._owners.remove(kind, obj)
        self._drop(obj)

    def _drop(self, obj: Raw) -> None:
        key = _key(obj)
        if key in self._known:
            self._known.discard(key)
            self._waiting[key] = None
            self._filled.set()

    def take(self) -> dict[PodKey, StoredPod | None]:
        """Return all changes since the last call, each pod once; None for one that is gone."""
        taken, self._waiting = self._waiting, {}
        return taken


class OwnerQueue:
    """The store of a reflector of owners that may be owned themselves, see ``cluster.watch.trims.owner_alone``."""

    def __init__(self, filled: asyncio.Event) -> None:
        self._filled = filled
        self._known: dict[str, set[str]] = {}
        """kind -> uids of those that are owned"""
        self._waiting: dict[str, Controller | None] = {}

    async def replace(self, kind: str, objects: Sequence[Raw]) -> None:
        """Take a full list of one kind."""
        listed = {one["uid"] for one in objects if one["owner"] is not None}
        self._waiting |= dict.fromkeys(self._known.get(kind, set()) - listed)
        self._waiting |= {one["uid"]: one["owner"] for one in objects if one["owner"] is not None}
        self._known[kind] = listed
        self._filled.set()

    def put(self, kind: str, obj: Raw) -> None:
        """Take a new or changed owner."""
        self._owned(kind, obj["uid"], obj["owner"])

    def remove(self, kind: str, obj: Raw) -> None:
        """Take the end of an owner."""
        self._owned(kind, obj["uid"], None)

    def _owned(self, kind: str, uid: str, owner: Controller | None) -> None:
        known = self._known.setdefault(kind, set())
        if owner is None and uid not in known:
            return
        (known.discard if owner is None else known.add)(uid)
        self._waiting[uid] = owner
        self._filled.set()

    def take(self) -> dict[str, Controller | None]:
        """Return all changes since the last call, by uid; None for an owner that is gone, or owned no more."""
        taken, self._waiting = self._waiting, {}
        return taken


class WorkloadQueue(OwnerQueue):
    """The store of reflectors of workloads, see ``cluster.watch.workload_kinds``: what owns them, and the pods that they
    would make."""

    def __init__(self, filled: asyncio.Event) -> None:
        super().__init__(filled)
        self._templates: dict[str, dict[PodKey, tuple[StoredPod, ...]]] = {}
        """kind -> workload -> its pods"""
        self.versions: dict[tuple[str, str], str] = {}
        """(API group, kind) -> the apiVersion in which such workloads are followed."""
        self._pods: dict[PodKey, StoredPod | None] = {}

    async def replace(self, kind: str, objects: Sequence[Raw]) -> None:
        """Take a full list of one kind."""
        await super().replace(kind, objects)
        listed = {_key(one) for one in objects}
        for key in self._templates.get(kind, {}).keys() - listed:
            self._templated(kind, key, ())
        for one in objects:
            self._templated(kind, _key(one), one["templates"], one["above"])
            self._followed(one["above"])

    def put(self, kind: str, obj: Raw) -> None:
        """Take a new or changed workload."""
        super().put(kind, obj)
        self._templated(kind, _key(obj), obj["templates"], obj["above"])
        self._followed(obj["above"])

    def remove(self, kind: str, obj: Raw) -> None:
        """Take the end of a workload."""
        super().remove(kind, obj)
        self._templated(kind, _key(obj), ())

    def _templated(self, kind: str, key: PodKey, pods: tuple[StoredPod, ...], above: Controller | None = None) -> None:
        known = self._templates.setdefault(kind, {})
        before = known.get(key, ())
        if before == pods:
            return
        self._pods |= {(one.namespace, one.name): None for one in before} | {(one.namespace, one.name): one for one in pods}
        if before:
            del known[key]
            self._waiting[STAND_IN + before[0].uid] = None
        if pods and above is not None:
            known[key] = pods
            self._waiting[STAND_IN + pods[0].uid] = above
        self._filled.set()

    def _followed(self, above: Controller) -> None:
        self.versions[group_of(above.api_version), above.kind] = above.api_version

    def take_pods(self) -> dict[PodKey, StoredPod | None]:
        """Return the changes of pods that stand for workloads, as ``PodQueue.take`` does."""
        taken, self._pods = self._pods, {}
        return taken


def _key(one: Raw) -> PodKey:
    return one["metadata"]["namespace"], one["metadata"]["name"]


MOST_BYTES = 2**24
"""Bytes of all of them: a few thousand. What is past it is not found, so that workloads that name it are passed over."""
BaseKey = tuple[str, str, str]
"""(kind with its API group, namespace, name)"""


class Bases:
    """The objects on which templates of other workloads rest, such as the runtime that a TrainJob names, in a bounded size.

    It is the store of their reflectors, see ``cluster.watch.workload_kinds``. ``changed`` is set by every change.
    """

    def __init__(self, changed: asyncio.Event) -> None:
        self._changed = changed
        self._texts: dict[BaseKey, bytes] = {}
        self._size = 0

    async def replace(self, kind: str, objects: Sequence[Raw]) -> None:
        """Take a full list of one kind."""
        listed = {_base_key(kind, one) for one in objects}
        for key in [key for key in self._texts if key[0] == kind and key not in listed]:
            self._put(key, None)
        for one in objects:
            self._put(_base_key(kind, one), one["base"])

    def put(self, kind: str, obj: Raw) -> None:
        """Take a new or changed object."""
        self._put(_base_key(kind, obj), obj["base"])

    def remove(self, kind: str, obj: Raw) -> None:
        """Take the end of an object."""
        self._put(_base_key(kind, obj), None)

    def _put(self, key: BaseKey, text: bytes | None) -> None:
        before = self._texts.get(key)
        if before is not None:
            self._size -= len(self._texts.pop(key))
        if text is not None and self._size + len(text) <= MOST_BYTES:
            self._texts[key] = text
            self._size += len(text)
        if self._texts.get(key) != before:
            self._changed.set()

    def find(self, kinds: Sequence[tuple[str, str]], namespace: str, name: str) -> Document | None:
        """Return the object of that name, of the first of the kinds (API group, kind): in the namespace, or in none."""
        for group, kind in kinds:
            for where in (namespace, ""):
                text = self._texts.get((f"{kind}.{group}", where, name))
                if text is not None:
                    return Document(file="", value=orjson.loads(text))
        return None


def _base_key(kind: str, one: Raw) -> BaseKey:
    metadata = one["metadata"]
    return kind, metadata.get("namespace") or "", metadata["name"]
