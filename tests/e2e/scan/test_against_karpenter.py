"""What a scan says of pods for which there is no node yet, against what a real Karpenter buys for them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis.admission_preview import Admission
from analysis.scan.report import ScanReport, scan
from analysis.scan.seen import see
from catalog.prices import prices
from cli.inspect.scan import shipped
from documents.files import read_catalog
from sources.scanned_cluster import read_scanned
from sources.sources import Origin
from tests.support.generators.random_worlds import catalog
from tests.support.recorded.parts import GPU, TOLERATION, pod
from tests.support.recorded.scanned import OPTIONS
from tests.testcluster.addons import karpenter
from tests.testcluster.addons.berth import create_namespace
from tests.testcluster.addons.karpenter import CAPACITY, FAMILY
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.fixtures import control_plane

Raw = dict[str, Any]
NAMESPACE = "waiting"
OVERLAY = "platforms: {karpenter-aws: {nodeClasses: [karpenter.kwok.sh]}}\n"
"""Karpenter's own simulated cloud has a node class of another group; its machines are AWS's (``addons.karpenter``)."""
LIMITED = karpenter.node_pool("limited", requirements={FAMILY: ["g6e"]}, taints=())
LIMITED["spec"]["limits"] = {GPU: "1"}
POOLS = [
    karpenter.node_pool("open", requirements={FAMILY: ["g5", "g6"]}, taints=()),
    karpenter.node_pool("tainted", requirements={FAMILY: ["p4d"]}),
    LIMITED,
    karpenter.node_pool("unseen", requirements={FAMILY: ["g6f"]}, taints=()),
    karpenter.node_pool("misnamed", requirements={FAMILY: ["g4"]}, taints=()),
    karpenter.node_pool("half-misnamed", requirements={FAMILY: ["p4", "p5"]}, taints=()),
]
ON: Any = {family: {"nodeSelector": {FAMILY: family}} for family in ("g5", "p4d", "g6e", "g6f", "g4", "p5")}
PODS = [
    pod("one", NAMESPACE, {GPU: 1}, **ON["g5"]),
    pod("four", NAMESPACE, {GPU: 4}, **ON["g5"]),
    pod("spot", NAMESPACE, {GPU: 1}, nodeSelector={CAPACITY: "spot", FAMILY: "g6"}),
    pod("tolerated", NAMESPACE, {GPU: 8}, **ON["p4d"], tolerations=[TOLERATION]),
    pod("within", NAMESPACE, {GPU: 1}, **ON["g6e"]),
    pod("untolerated", NAMESPACE, {GPU: 8}, **ON["p4d"]),
    pod("over-limit", NAMESPACE, {GPU: 4}, **ON["g6e"]),
    pod("sixteen", NAMESPACE, {GPU: 16}),
    pod("no-gpu-seen", NAMESPACE, {GPU: 1}, **ON["g6f"]),
    pod("no-such-machine", NAMESPACE, {GPU: 1}, **ON["g4"]),
    pod("of-the-other-half", NAMESPACE, {GPU: 8}, **ON["p5"]),
    pod("after-boot", NAMESPACE, {GPU: 1}, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-A10G"}),
    pod("slice", NAMESPACE, {"nvidia.com/mig-1g.5gb": 1}),
    pod("other-vendor", NAMESPACE, {"amd.com/gpu": 1}, **ON["g5"]),
]


@pytest.fixture(scope="module")
def scanned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, ScanReport]]:
    """All pods and NodePools at once, scanned while Karpenter is held; then it goes on."""
    overlay = tmp_path_factory.mktemp("scan") / "catalog.yaml"
    overlay.write_text(OVERLAY)
    with control_plane(request.session) as cluster:
        running = karpenter.start(cluster, karpenter.instance_types(catalog()))
        create_namespace(cluster, NAMESPACE)
        running.process.signal(signal.SIGSTOP)
        for value in (*POOLS, *PODS):
            cluster.api.create({key: one for key, one in value.items() if key != "status"})
        report = _report(cluster, overlay)
        running.process.signal(signal.SIGCONT)
        yield cluster, report


def _report(cluster: Cluster, overlay: Path) -> ScanReport:
    with_overlay = read_catalog([overlay])
    found = read_scanned(Origin(kubeconfig=str(cluster.kubeconfig)), None, with_overlay, lambda kind, number: None)
    snapshot = shipped(with_overlay, OPTIONS, found)
    return scan(see(found, snapshot, prices(with_overlay)), Admission(snapshot))


def test_what_is_called_impossible_is_not_bought_for_and_all_else_is(scanned: tuple[Cluster, ScanReport]) -> None:
    """Of each pod Karpenter says why it buys nothing, or a machine is bought and the pod bound. Where a NodePool has machines of which
    Karpenter may have been told more than can be seen here, nothing is called impossible: it buys nothing for those three either."""
    cluster, report = scanned
    kinds = {hit.pod.stored.name: hit.kind for hit in report.hits}
    assert set(kinds) == {one["metadata"]["name"] for one in PODS}
    waiting = {hit.pod.stored.name for hit in report.hits if hit.kind == "pending" and dict(hit.values)["outlook"] == "now"}
    never = {name for name, kind in kinds.items() if kind == "never-fits"}

    def bound() -> set[str]:
        return {one["metadata"]["name"] for one in cluster.api.list("v1", "Pod", NAMESPACE) if one["spec"].get("nodeName")}

    def denied() -> set[str]:
        events = cluster.api.list("v1", "Event", NAMESPACE)
        mine = [one for one in events if one["source"].get("component") == "karpenter" and one["reason"] == "FailedScheduling"]
        return {one["involvedObject"]["name"] for one in mine}

    cluster.wait_for(lambda: waiting <= bound() or None, f"Karpenter to buy for {sorted(waiting)}; not for {sorted(never)}")
    cluster.wait_for(lambda: never <= denied() or None, f"Karpenter to say why it buys nothing for {sorted(never)}")
    assert bound() == waiting
    assert waiting == {"one", "four", "spot", "tolerated", "within", "of-the-other-half"}
    assert never == set(kinds) - waiting - {"sixteen", "no-gpu-seen", "no-such-machine"}


def test_pools_are_judged_as_karpenter_sees_their_machines(scanned: tuple[Cluster, ScanReport]) -> None:
    """The one whose GPUs are not reported, for whose pod nothing was bought; the one with a limit is the only one that has it."""
    _, report = scanned
    kinds = ("pool-family-without-gpu", "pool-no-gpu-limit")
    found = {kind: {one.where.name for one in report.findings if one.kind == kind} for kind in kinds}
    assert found == {"pool-family-without-gpu": {"unseen"}, "pool-no-gpu-limit": {"open", "tainted", "unseen", "misnamed", "half-misnamed"}}


def test_a_machine_that_does_not_exist_is_not_bought(scanned: tuple[Cluster, ScanReport]) -> None:
    """Karpenter takes the NodePool as it is, and of the two makes nodes only for the one that names another machine too."""
    _, report = scanned
    of_kind = [one for one in report.findings if one.kind == "pool-unknown-machine"]
    found = {one.where.name: tuple(one.values[name] for name in ("unknown", "nearest", "all")) for one in of_kind}
    assert found == {"misnamed": (("g4",), ("g4dn",), 1), "half-misnamed": (("p4",), ("p4d",), 0)}
