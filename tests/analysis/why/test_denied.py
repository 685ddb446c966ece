"""What policies deny of objects with several templates, and the change of all of them together."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from analysis.admission.manifest_results import admit_manifest
from analysis.admission.manifests import Manifest, read_manifest
from analysis.admission_preview import Admission
from analysis.why import values
from analysis.why.explain import Explainer
from analysis.why.explanation import Explanation
from catalog.prices import prices
from cli.inspect import why_text as text
from kube.tree import dotted
from policies.document import Document
from policies.placement.fleet import fleet_of
from policies.state.snapshot import Snapshot
from policies.state.updater import Options, Updater
from tests.support.generators.random_worlds import catalog
from tests.support.scheduling.node_pools import AWS, tables

GPU = "nvidia.com/gpu"
FEW = {
    "apiVersion": "berth.dev/v1alpha1",
    "kind": "ClusterGPUPolicy",
    "metadata": {"name": "few"},
    "spec": {"mode": "Enforce", "require": {"gpusPerPod": {"max": 1}, "requestsEqualLimits": ["accelerators"]}},
}


def group(leader: Any, worker: Any) -> dict[str, Any]:
    """A LeaderWorkerSet whose templates have these limits."""

    def template(limits: Any) -> dict[str, Any]:
        return {"spec": {"containers": [{"name": "c", "image": "c:1", "resources": {"limits": limits}}]}}

    spec = {"leaderWorkerTemplate": {"size": 2, "leaderTemplate": template(leader), "workerTemplate": template(worker)}}
    return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "group"}, "spec": spec}


def manifest(value: dict[str, Any]) -> Manifest:
    return read_manifest(Document(file="f.yaml", value=value), catalog(), "n")


def snapshot() -> Snapshot:
    return Updater(catalog(), Options(platforms=(AWS,))).apply({("ClusterGPUPolicy", "", "few"): FEW}).snapshot


def explained(value: dict[str, Any]) -> Explanation:
    return Explainer(Admission(snapshot()), None, prices(catalog())).of_manifest("leaderworkerset/group", manifest(value), ())


def shown(found: Explanation) -> str:
    return text.format_why(found, datetime(2026, 11, 24, tzinfo=UTC))


def test_all_templates_are_mended_together() -> None:
    """The object with the change is admitted whole; the steps of each template are shown, those of the second with their place in it."""
    found = explained(group({GPU: 2}, {GPU: "1.5"}))
    assert found.state == "denied"
    assert [one.code for one in found.denials] == ["BERTH-111", "BERTH-102"], "what two templates have alike is told once"
    assert found.remedy is not None
    assert found.remedy.admits
    assert not admit_manifest(manifest(found.value), Admission(snapshot())).denied
    words = shown(found)
    assert "The smallest change (2 steps) to the pod of LeaderWorkerSet group (in spec.leaderWorkerTemplate.leaderTemplate):" in words
    assert "in another template: ~ spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].resources" in words
    assert "Policies then admit it." in words
    assert "--fix fix.yaml, then kubectl apply -f fix.yaml" in words
    patch = values.explanation_value(found)["remedy"]["patchOfOtherTemplates"]
    assert all(one["path"].startswith("/spec/leaderWorkerTemplate/workerTemplate/") for one in patch)


def test_the_template_that_is_denied_is_explained() -> None:
    """Whichever it is: a worker, where the leader is admitted."""
    found = explained(group({}, {GPU: 8}))
    assert (found.state, [one.code for one in found.denials]) == ("denied", ["BERTH-111"])
    assert found.value["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["resources"]["limits"] == {GPU: "1"}
    assert explained(group({}, {GPU: 1})).state == "proposed"


def test_nothing_is_mended_by_half() -> None:
    """Where one template has an amount of which nobody knows what it should be, the reasons of all are told, and no change."""
    found = explained(group({GPU: 2}, {GPU: "$GPUS"}))
    assert {one.code for one in found.denials} == {"BERTH-111", "BERTH-118", "BERTH-102"}
    assert found.value is None
    assert "Check a fixed manifest before you apply it" in shown(found)


def explainer_of_one_node() -> Explainer:
    """Return one for a cluster of a node with one GPU, which is free."""
    amounts = {"pods": 10, "cpu": 64, "memory": "512Gi", GPU: 1}
    node = {"kind": "Node", "metadata": {"name": "small"}, "status": {"allocatable": amounts}}
    fleet = fleet_of([node], catalog=catalog(), tables=tables(), occupants=())
    return Explainer(Admission(snapshot()), fleet, prices(catalog()))


def test_the_template_with_the_worst_outlook_decides() -> None:
    """A leader without a GPU finds a place at once, which says nothing of workers that never do."""
    explainer = explainer_of_one_node()

    def outlook(leader: Any, worker: Any) -> str | None:
        return explainer.of_manifest("leaderworkerset/group", manifest(group(leader, worker)), ()).outlook

    never = {GPU: 1, "memory": "1Ti"}
    assert outlook({"cpu": 1}, {GPU: 1}) == "now"
    assert outlook({"cpu": 1}, never) == outlook(never, {"cpu": 1}) == outlook({GPU: 1}, never) == "never"
    assert outlook({"cpu": 1000}, {GPU: 1}) == "never", "a leader without accelerators that no node takes counts as much"


def test_all_templates_that_never_run_are_named() -> None:
    """The hardest one is explained, and the others are named, so that nobody believes that one fix is enough."""
    explainer = explainer_of_one_node()
    found = explainer.of_manifest("leaderworkerset/group", manifest(group({"cpu": 1000}, {GPU: 1, "memory": "1Ti"})), ())
    assert dotted(found.template) == "spec.leaderWorkerTemplate.workerTemplate"
    assert [dotted(path) for path in found.other_templates] == ["spec.leaderWorkerTemplate.leaderTemplate"]
    words = shown(found)
    assert "This is about the pods of spec.leaderWorkerTemplate.workerTemplate" in words
    assert "Pods of spec.leaderWorkerTemplate.leaderTemplate can never be scheduled as written either" in words
