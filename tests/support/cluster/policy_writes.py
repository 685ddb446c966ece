"""Writes to a cluster, each of which changes what is decided for a pod in one namespace; and how long replicas take to decide so."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from policies.policy import API_VERSION
from tests.support.cluster.replicas import PAUSE, Answered, Asking
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.api import MERGE, Api, Raw, Reply

LABEL = "tests.berth.dev/live"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One call to the API server."""

    what: str
    call: Callable[[Api], Reply]
    grace: int | None
    """what a pod is given from then on"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What became of one write, in seconds from the API server's answer to it."""

    what: str
    by_replica: tuple[float, ...]

    @property
    def disagreed(self) -> float:
        """Seconds for which some decided by it and others not yet."""
        return max(self.by_replica) - min(self.by_replica)


def writes(namespace: str, base: int | None = None) -> Iterator[Write]:
    """Without end: a policy of the cluster comes, changes, loses the namespace and gets it back; one of the namespace's own comes,
    changes and goes; that of the cluster goes. Every grace period is given once. ``base``: what pods are given without them."""
    graces = count((base or 0) + 100)
    while True:
        of_cluster, changed, own, own_changed = (next(graces) for _ in range(4))
        yield Write(what="ClusterGPUPolicy created", call=_applied(cluster_policy(namespace, of_cluster)), grace=of_cluster)
        yield Write(what="ClusterGPUPolicy changed", call=_applied(cluster_policy(namespace, changed)), grace=changed)
        yield Write(what="Namespace label taken off", call=_labelled(namespace, None), grace=base)
        yield Write(what="Namespace label put on", call=_labelled(namespace, namespace), grace=changed)
        yield Write(what="GPUPolicy created", call=_applied(own_policy(namespace, own)), grace=own)
        yield Write(what="GPUPolicy changed", call=_applied(own_policy(namespace, own_changed)), grace=own_changed)
        yield Write(what="GPUPolicy deleted", call=_deleted(own_policy(namespace, own)), grace=changed)
        yield Write(what="ClusterGPUPolicy deleted", call=_deleted(cluster_policy(namespace, own)), grace=base)


def cluster_policy(namespace: str, grace: int) -> Raw:
    """For the namespaces with the label LABEL=``namespace``."""
    spec = {"mode": "Enforce", "match": {"namespaceSelector": {"matchLabels": {LABEL: namespace}}}, "default": _default(grace)}
    return {"apiVersion": API_VERSION, "kind": "ClusterGPUPolicy", "metadata": {"name": f"live-{namespace}"}, "spec": spec}


def own_policy(namespace: str, grace: int) -> Raw:
    """Of the namespace's own."""
    metadata = {"name": "live", "namespace": namespace}
    return {"apiVersion": API_VERSION, "kind": "GPUPolicy", "metadata": metadata, "spec": {"mode": "Enforce", "default": _default(grace)}}


def _default(grace: int) -> Raw:
    return {"gracePeriod": f"{grace}s"}


def _applied(value: Raw) -> Callable[[Api], Reply]:
    return lambda api: api.apply(value)


def _labelled(namespace: str, value: str | None) -> Callable[[Api], Reply]:
    change = {"metadata": {"labels": {LABEL: value}}}
    return lambda api: api.call("PATCH", f"/api/v1/namespaces/{namespace}", change, content=MERGE)


def _deleted(value: Raw) -> Callable[[Api], Reply]:
    return lambda api: api.call("DELETE", api.path_of(value))


def follow(api: Api, write: Write, threads: Sequence[Asking], before: int | None) -> Followed:
    """Write, and wait until every replica decides by it. Fails where one never does, decides otherwise than before or after the write,
    or goes back."""
    for thread in threads:
        thread.answers.clear()
    reply = write.call(api)
    answered = time.perf_counter()
    assert reply.ok, reply.message
    seconds = [_until(thread, write, answered) - answered for thread in threads]
    for thread in threads:
        _check(list(thread.answers), write, before)
    return Followed(what=write.what, by_replica=tuple(max(0.0, one) for one in seconds))


def _until(thread: Asking, write: Write, answered: float) -> float:
    """When its first answer by this write came."""
    while True:
        for answer in list(thread.answers):
            if answer.grace == write.grace:
                return answer.received
        assert thread.is_alive(), f"{thread.name} has ended"
        assert time.perf_counter() - answered < PATIENCE, f"{thread.name}: {write.what}: never decided by; {thread.answers[-1:]}"
        time.sleep(PAUSE / 3)


def _check(answers: Sequence[Answered], write: Write, before: int | None) -> None:
    """Once a replica has decided by the write it does so ever after, and until then as before it."""
    graces = [answer.grace for answer in answers]
    first = graces.index(write.grace)
    assert {answer.status for answer in answers} == {200}, f"{write.what}: {answers}"
    assert set(graces[:first]) <= {before}, f"{write.what}: {before} to {write.grace}: {graces}"
    assert set(graces[first:]) == {write.grace}, f"{write.what}: {before} to {write.grace}: {graces}"


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]
