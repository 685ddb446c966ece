"""All pods that may hold devices, with the findings on them: a pod is judged again only when it, its owner or what its
verdict rests on has changed. Pure: the same changes in any order and any batches give the same findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from analysis.audit.assessment import MOST_OWNERS, Assessment, Versions
from analysis.audit.ledger import Ledger, PodKey
from analysis.audit.stored_pod import Controller, StoredPod
from catalog.prices import Prices
from policies.state.objects import Key
from policies.state.snapshot import Snapshot

IN_NAMESPACE = ("Namespace", "ResourceClaim", "ResourceClaimTemplate")
"""Kinds of facts on which pods of one namespace alone rest."""


class Inventory:
    """The pods of a cluster under the newest snapshot. ``evaluate_due`` brings ``ledger`` up to date."""

    def __init__(self, prices: Prices) -> None:
        self.ledger = Ledger()
        self._prices = prices
        self._pods: dict[PodKey, StoredPod] = {}
        self._owners: dict[str, Controller] = {}
        self._versions: dict[tuple[str, str], str] = {}
        self._due: dict[PodKey, None] = {}
        self._failed: dict[PodKey, Exception] = {}
        self._snapshot: Snapshot | None = None
        self._assessment: Assessment | None = None

    @property
    def pods(self) -> int:
        """The number of pods that may hold devices."""
        return len(self._pods)

    @property
    def due(self) -> int:
        """The number of pods that are to be judged."""
        return len(self._due)

    def pod_changed(self, key: PodKey, pod: StoredPod | None) -> None:
        """Take the current form of a pod, or None if it is gone or holds no device any more."""
        if pod is None:
            self._pods.pop(key, None)
            self._due.pop(key, None)
            self.ledger.remove(key)
        elif self._pods.get(key) != pod:
            self._pods[key] = pod
            self._due[key] = None

    def owners_changed(self, changes: Iterable[tuple[str, Controller | None]]) -> None:
        """Take (uid of an object, its controller): pods that it owns belong to another workload now."""
        uids = set()
        for uid, controller in changes:
            if self._owners.get(uid) != controller:
                uids.add(uid)
                if controller is None:
                    del self._owners[uid]
                else:
                    self._owners[uid] = controller
        if uids:
            self._due_where(lambda pod: pod.owner is not None and self._is_below(pod.owner, uids))

    def _is_below(self, owner: Controller, uids: set[str]) -> bool:
        above: Controller | None = owner
        for _ in range(MOST_OWNERS + 1):
            if above is None or above.uid in uids:
                break
            above = self._owners.get(above.uid)
        return above is not None and above.uid in uids

    def versions_changed(self, versions: Versions) -> None:
        """Take the versions in which kinds of workloads are followed: reports name workloads in these."""
        if versions != self._versions:
            self._versions.update(versions)
            self._due = dict.fromkeys(self._pods)

    def snapshot_changed(self, snapshot: Snapshot, changed: Iterable[Key], *, every: bool) -> None:
        """Take a new snapshot. ``changed``: the facts that differ from those of the one before; ``every``: a
        verdict on any pod may be another one."""
        before, self._snapshot = self._snapshot, snapshot
        self._assessment = Assessment(snapshot, self._prices, self._owners, self._versions)
        # of equal slices the one that nodes have is chosen
        if before is None or every or before.known_places != snapshot.known_places:
            self._due = dict.fromkeys(self._pods)
            return
        facts = list(changed)
        namespaces = {name if kind == "Namespace" else namespace for kind, namespace, name in facts if kind in IN_NAMESPACE}
        nodes = {name for kind, _, name in facts if kind == "Node"}
        if nodes:  # a pod that waits may be pinned to one of them
            self._due_where(lambda pod: pod.node in nodes or not pod.node or pod.namespace in namespaces)
        elif namespaces:
            self._due_where(lambda pod: pod.namespace in namespaces)

    def _due_where(self, concerns: Callable[[StoredPod], bool]) -> None:
        self._due.update((key, None) for key, pod in self._pods.items() if concerns(pod))

    def evaluate_due(self, most: int) -> int:
        """Evaluate at most so many of the pods that are due, and return how many are left."""
        if self._assessment is None:
            return 0
        for key in list(islice(self._due, most)):
            del self._due[key]
            try:
                audited = self._assessment.of(self._pods[key])
            except Exception as error:  # noqa: BLE001 - of one pod, whatever it is: its verdict stays as it is
                self._failed[key] = error
                continue
            if audited is None:
                self.ledger.remove(key)
            else:
                self.ledger.put(audited)
        return len(self._due)

    def take_failed(self) -> dict[PodKey, Exception]:
        """Return what was raised while pods were judged, since the last call."""
        failed, self._failed = self._failed, {}
        return failed

    def due_again(self, keys: Iterable[PodKey]) -> None:
        """Let these pods be judged again, as far as they are there."""
        self._due.update((key, None) for key in keys if key in self._pods)
