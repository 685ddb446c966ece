"""The cluster in which Karpenter buys for all cases at once: one control plane, one Karpenter, three Berths.

kwok plays the kubelets, so nothing is shown of what a node does with a pod that it was given.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.e2e.karpenter.cases import BERTHS, CASES, POLICIES, TWINS, WITHOUT, Case
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons import karpenter
from tests.testcluster.addons.berth import LIBRARY, SCOPE, create_namespace, registered
from tests.testcluster.addons.karpenter import POOL, Bought, Karpenter
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.api import Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.fixtures import control_plane


@dataclass(slots=True, kw_only=True)
class Scenario:
    """The cluster in which Karpenter bought, and what was answered to each creation."""

    cluster: Cluster
    karpenter: Karpenter
    replies: dict[str, Reply] = field(default_factory=dict)
    before: dict[str, Raw] = field(default_factory=dict)
    """the pods of TWINS while the fillers run"""
    _cases: dict[str, Case] = field(default_factory=lambda: {case.name: case for case in (*CASES, *TWINS)})

    def fill(self) -> None:
        """Everything is created, and what can be bought is bought."""
        self._create(CASES)
        self._wait([case for case in CASES if not case.waits])
        self._create(TWINS)
        self._wait(TWINS)
        self.before = {case.name: self.pod(case.name) for case in TWINS}
        for case in CASES:
            if case.name.startswith("filler"):
                self.cluster.api.delete(case.manifest(), grace=0)

    def _create(self, cases: Sequence[Case]) -> None:
        for case in cases:
            self.replies[case.name] = self.cluster.api.try_create(case.manifest())

    def _wait(self, cases: Sequence[Case]) -> None:
        """Until they run. Of one that was denied or never runs, its test tells. A pod that is gone is created anew: on a busy machine
        kube-scheduler may put it on a node to which Karpenter is about to add its taint of unregistered ones, which evicts it."""
        deadline = time.monotonic() + PATIENCE
        while not all(self.runs(case.name) for case in cases if self.replies[case.name].ok) and time.monotonic() < deadline:
            for case in cases:
                if not case.job and self.replies[case.name].ok and not self.pod(case.name):
                    self.replies[case.name] = self.cluster.api.try_create(case.manifest())
            time.sleep(1)  # each look gets every pod

    def pod(self, name: str) -> Raw:
        """The one of a case; of a Job the newest. {} where there is none."""
        case = self._cases[name]
        if not case.job:
            return self.cluster.api.get("v1", "Pod", name, case.namespace) or {}
        pods = self.cluster.api.list("v1", "Pod", case.namespace, labelSelector=f"job-name={name}")
        return max(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), default={})

    def runs(self, name: str) -> bool:
        return running(self.pod(name))

    def bought(self, name: str) -> Bought:
        """The machine on which the case's pod runs."""
        pod = self.pod(name)
        assert running(pod), f"{name} does not run: {self.replies[name].message or self.events(name)}"
        node = self.cluster.api.get("v1", "Node", pod["spec"]["nodeName"])
        assert node is not None
        return karpenter.bought(node)

    def events(self, name: str, reason: str = "") -> list[str]:
        """What Karpenter's events say about the case's pods."""
        case = self._cases[name]
        events = self.cluster.api.list("v1", "Event", case.namespace)
        mine = [event for event in events if event["source"].get("component") == "karpenter" and case.owns(event["involvedObject"]["name"])]
        return [event["message"] for event in mine if reason in ("", event["reason"])]

    def denied(self, name: str) -> str:
        """Why Karpenter buys nothing for the case's pod, which does not run."""
        events = self.cluster.wait_for(lambda: self.events(name, "FailedScheduling"), f"Karpenter to say why it buys nothing for {name}")
        assert not self.runs(name)
        return events[-1]

    def claims(self, pool: str) -> list[Raw]:
        """What was bought for a NodePool and is there."""
        return self.cluster.api.list("karpenter.sh/v1", "NodeClaim", labelSelector=f"{POOL}={pool}")


def running(pod: Raw) -> bool:
    """Whether it runs; False of {}."""
    return bool(pod.get("status", {}).get("phase") == "Running")


@contextmanager
def opened(session: pytest.Session) -> Iterator[Scenario]:
    """The cluster with all cases in it; it ends on leaving."""
    with ExitStack() as stack:
        cluster = stack.enter_context(control_plane(session))
        started = karpenter.start(cluster, karpenter.instance_types(catalog()))
        _register(cluster, stack)
        scenario = Scenario(cluster=cluster, karpenter=started)
        scenario.fill()
        yield scenario


def _register(cluster: Cluster, stack: ExitStack) -> None:
    """The Berths, and the namespaces that each judges."""
    pools = [case.node_pool() for case in CASES if not case.pool]
    for pool in pools:
        cluster.api.create(pool)
    facts, policies = cluster.folder / "facts.yaml", cluster.folder / "policies.yaml"
    facts.write_text(yaml.safe_dump_all(pools))
    policies.write_text(yaml.safe_dump_all(_policy(name, spec) for name, spec in POLICIES.items()))
    files: dict[str, list[Path]] = {"library": [LIBRARY]}
    for name, platforms in BERTHS.items():
        chosen = files.get(name, [policies, LIBRARY / "berth-default.yaml"])
        options = ("--platforms", platforms, "--from", str(facts), "--lame-duck", "0")
        stack.enter_context(registered(cluster, name, chosen, *options))
    for namespace, berth in sorted({(case.namespace, case.berth) for case in (*CASES, *TWINS)}):
        create_namespace(cluster, namespace, {} if namespace == WITHOUT else {SCOPE: berth})


def _policy(name: str, spec: Raw) -> Raw:
    """For the namespace of that name."""
    match = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}
    value = {"mode": "Enforce", "match": match, **spec}
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": value}
