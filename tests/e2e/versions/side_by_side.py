"""Replicas of this release and of the one before, as one installation: the same account, Lease, Secret, policies and address."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from policies.policy import API_VERSION
from tests.e2e.certificates.shared import Installation
from tests.support.cluster.faulty_proxy import Proxy
from tests.testcluster.addons.berth import ROOT, Berth
from tests.testcluster.addons.installed import NAMESPACE
from tests.testcluster.controlplane.api import Raw

KINDS = ("ClusterGPUPolicy", "GPUPolicy", "GPUNodeTemplate")
PLATFORMS = ("--platforms", "karpenter-aws,gfd")
LOOK = 0.05
"""seconds between two looks at the resourceVersions; a holder of the Lease writes at most twenty statuses a second"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A cluster for both."""

    installation: Installation
    before: Path
    """where the code of the release before is"""

    def newer(self, name: str, *options: str) -> Berth:
        """A replica of this release, ready."""
        return self._ready(name, ROOT, options)

    def older(self, name: str, *options: str) -> Berth:
        """A replica of the release before, ready."""
        return self._ready(name, self.before, options)

    def _ready(self, name: str, source: Path, options: tuple[str, ...]) -> Berth:
        replica = self.installation.started(name, *PLATFORMS, *options, source=source)
        self.installation.ready(replica)
        return replica

    def end(self, *replicas: Berth) -> None:
        """As a rollout ends them; those that were killed are gone already."""
        for one in replicas:
            if one.process in self.installation.cluster.processes.running:
                self.installation.cluster.processes.end(one.process)

    def kill(self, replica: Berth) -> None:
        """As a machine that goes."""
        self.installation.cluster.processes.running.remove(replica.process)
        replica.kill()

    def apply(self, *values: Raw) -> None:
        """As with kubectl."""
        for value in values:
            reply = self.installation.cluster.api.apply(value)
            assert reply.ok, reply.message

    def objects(self) -> dict[str, Raw]:
        """Every object of ours, by kind and name."""
        found = {}
        for kind in KINDS:
            for value in self.installation.cluster.api.list(API_VERSION, kind):
                found[f"{kind}/{value['metadata']['name']}"] = value
        return found

    def versions(self) -> dict[str, str]:
        """The resourceVersion of each: another one after each write that changes something."""
        return {name: value["metadata"]["resourceVersion"] for name, value in self.objects().items()}

    def holds(self, replica: Berth) -> bool:
        """Whether it writes statuses, as the Lease says."""
        lease = self.installation.cluster.api.get("coordination.k8s.io/v1", "Lease", "berth", NAMESPACE) or {}
        held = replica.events("lease_held")
        return bool(held) and lease.get("spec", {}).get("holderIdentity") == held[-1]["holder"]

    def wait_to_hold(self, replica: Berth) -> None:
        """Fifteen seconds after the one before was killed."""
        self.installation.cluster.wait_for(lambda: self.holds(replica), f"{replica.name} to hold the Lease")

    def settled(self) -> Mapping[str, str]:
        """The resourceVersions, once none has changed for a second."""
        seen, since = self.versions(), time.monotonic()

        def quiet() -> dict[str, str] | None:
            nonlocal seen, since
            if (now := self.versions()) != seen:
                seen, since = now, time.monotonic()
            return seen if time.monotonic() - since > 1.0 else None

        return self.installation.cluster.wait_for(quiet, "the statuses to settle")

    def changes(self, seconds: float) -> int:
        """Writes of objects within so many seconds."""
        seen, until, found = self.versions(), time.monotonic() + seconds, 0
        while time.monotonic() < until:
            now = self.versions()
            found += sum(now[name] != seen.get(name) for name in now)
            seen = now
            time.sleep(LOOK)
        return found


def conditions(value: Raw) -> dict[str, str]:
    """Of a status: status by type."""
    return {one["type"]: one["status"] for one in value.get("status", {}).get("conditions", ())}


def lead(proxy: Proxy, *replicas: Berth) -> None:
    """The address leads to these, in turn."""
    parts = [urlsplit(one.url) for one in replicas]
    proxy.lead_to(*((str(part.hostname), int(part.port or 0)) for part in parts))
