"""The part of a world that one person may see: pages read nothing past it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from analysis.audit.ledger import AuditedPod
from analysis.audit.stored_report import StoredReport
from analysis.scan.finding import Finding, without_pods
from analysis.scan.report import NEEDS
from analysis.world.counts import PolicyCount
from analysis.world.happenings import Happening
from analysis.world.world import World
from console.world.scope import Scope
from policies.placement.fleet import Fleet
from policies.state.objects import ObjectEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A world as one person may see it. ``world`` itself is for what is nobody's: the catalog, prices, the time of reading."""

    world: World
    scope: Scope
    stale: str = ""
    """Why the cluster could not be read since ``world.at``; "" if it could."""

    def pods(self) -> Iterator[AuditedPod]:
        """Yield the pods with devices, in no order."""
        every = self.scope.pods.every
        return (pod for pod in self.world.ledger.pods.values() if every or pod.stored.namespace in self.scope.pods)

    def namespaces(self) -> list[str]:
        """Return the namespaces that have pods with devices which may be listed, sorted."""
        return sorted(one for one in self.world.counts.every if one in self.scope.pods)

    def counted(self, policy: str) -> dict[str, PolicyCount]:
        """Return the pods to which a policy applies, by namespace."""
        cells = self.world.counts.cells.get(policy, {}) if self.shows_policy(policy) else {}
        return {namespace: count for namespace, count in cells.items() if namespace in self.scope.pods}

    def counted_once(self) -> PolicyCount:
        """Return all pods, each once, with what policies that may be listed find."""
        total = PolicyCount()
        for namespace, by_listed in self.world.counts.every.items():
            if namespace in self.scope.pods:
                total.join(by_listed[self.scope.cluster_policies, namespace in self.scope.own_policies])
        return total

    def shows_policy(self, id_: str) -> bool:
        """Return whether this policy may be listed: ``ClusterGPUPolicy/training``, ``GPUPolicy/ml-team/own``."""
        kind, _, rest = id_.partition("/")
        if kind == "ClusterGPUPolicy":
            return self.scope.cluster_policies
        return rest.partition("/")[0] in self.scope.own_policies

    def policies(self) -> list[str]:
        """Return the ids of the policies in force that may be listed, sorted."""
        return [one for one in self.world.policies if self.shows_policy(one)]

    def entries(self) -> Sequence[ObjectEntry]:
        """Return Berth's own objects that may be listed, sorted by kind and name."""
        found = sorted(self.world.entries.items())
        return [entry for (kind, namespace, _), entry in found if self._shows(kind, namespace)]

    def _shows(self, kind: str, namespace: str) -> bool:
        if kind == "GPUNodeTemplate":
            return self.scope.node_templates
        return self.scope.cluster_policies if kind == "ClusterGPUPolicy" else namespace in self.scope.own_policies

    def happenings(self) -> list[Happening]:
        """Return the Events that may be listed, the newest first."""
        return [one for one in self.world.happenings if one.namespace in self.scope.events]

    def reports(self) -> list[StoredReport]:
        """Return the reports that may be listed."""
        return [one for one in self.world.reports if one.namespace in self.scope.reports]

    @property
    def fleet(self) -> Fleet | None:
        """The places where pods could run; None if nodes may not be listed. What is free on a node is a sum over all pods, as
        the scheduler's own Events tell it to every author; whose pods those are it does not tell."""
        if not self.scope.nodes:
            return None
        fleet = self.world.seen.fleet
        return fleet if self.scope.node_pools else replace(fleet, pools=(), open_ended=True)

    def named_namespaces(self) -> list[str]:
        """Return all namespaces whose pods may be listed, those without any too, sorted."""
        known = {*self.world.snapshot.cluster.namespaces, *(pod.stored.namespace for pod in self.world.ledger.pods.values())}
        return sorted(one for one in known if one in self.scope.pods)

    def findings(self) -> Iterator[Finding]:
        """Yield what `berth scan` finds of objects that may be listed, in its order, without the pods of others."""
        lacking = {kind for kind, may in (("Node", self.scope.nodes), ("NodePool", self.scope.node_pools)) if not may}
        for finding in self.world.report.findings:
            if not lacking.isdisjoint(NEEDS.get(finding.kind, ())):
                continue
            if finding.where.namespace:
                if finding.where.namespace in self.scope.pods:
                    yield finding
            elif self.scope.pods.every:
                yield finding
            else:
                yield without_pods(finding)
