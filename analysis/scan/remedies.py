"""What policies would have written into pods that exist: the pod as it would have been, to be judged again by the
family that found something of it. What is then no longer found would have been mended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from analysis.audit.stored_pod import StoredPod
from kube.pod import PodError
from kube.tree import Raw
from policies.engine import evaluate
from policies.lru import LruCache
from policies.state.snapshot import Snapshot
from policies.verdict import Edit, Violation

Applier = Callable[[Raw, Iterable[Mapping[str, Any]]], Raw]
"""Applies an RFC 6902 patch to a pod."""
_MOST = 16 * 2**20
"""Bytes of what is remembered: pods that are alike are judged once, and workloads come one after another."""


class PolicyRemedy(NamedTuple):
    """What the policies make of one pod."""

    pod: Raw
    """The pod as it would have been admitted; as it is, if it would have been denied."""
    came: Raw
    """The pod as it is: parts that no edit touches are the same objects in both."""
    patch: tuple[Mapping[str, Any], ...] = ()
    """What makes the one of the other."""
    edits: tuple[Edit, ...] = ()
    denied: tuple[Violation, ...] = ()
    matched: bool = False
    """True if any of them applies to it."""


class Remedies:
    """Judges pods by policies in Enforce, of a snapshot with the cluster's facts."""

    def __init__(self, snapshot: Snapshot, apply: Applier) -> None:
        self._snapshot = snapshot
        self._apply = apply
        self._cache: LruCache[PolicyRemedy] = LruCache(_MOST)

    def of(self, stored: StoredPod) -> PolicyRemedy:
        """Return what they make of a pod, as though it were created now."""
        key = stored.namespace, stored.shared, stored.labels, stored.owner and stored.owner[:2]
        found = self._cache.get(key)
        if found is None:
            found = self._judged(stored)
            self._cache.keep(key, found, 4096 + 2 * len(stored.shared))
        return found

    def patched(self, stored: StoredPod, whole: Raw) -> Raw:
        """Return another form of the same pod, with more fields, as it would have been admitted."""
        patch = self.of(stored).patch
        return self._apply(whole, patch) if patch else whole

    def _judged(self, stored: StoredPod) -> PolicyRemedy:
        request = stored.request()
        try:
            verdict = evaluate(request, self._snapshot.facts_for(stored.namespace))
        except PodError:
            return PolicyRemedy(request.pod, request.pod)
        if verdict.violations:
            return PolicyRemedy(request.pod, request.pod, denied=verdict.violations, matched=bool(verdict.matched))
        admitted = self._apply(request.pod, verdict.patch) if verdict.patch else request.pod
        return PolicyRemedy(admitted, request.pod, verdict.patch, verdict.edits, matched=bool(verdict.matched))
