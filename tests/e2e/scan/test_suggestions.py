"""Suggested policies on a real API server: it accepts them, they are in Audit, what `berth audit` says of them is what their
comments say, and in Enforce they mend what they say, on pods that the API server itself has admitted."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from analysis.scan.finding import Hit
from analysis.scan.suggestions.written import WrittenSuggestion, suggestions
from cli.main import main
from tests.support.counts import PROVE, count
from tests.support.recorded import eks, gke, on_premises
from tests.support.recorded.posted import posted
from tests.support.recorded.scanned import OPTIONS, scanned
from tests.testcluster.addons.berth import SCOPE, registered
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.starting import apply_crds

Raw = dict[str, Any]
ROOT = Path(__file__).parents[3]
CLUSTERS = {"eks": eks, "gke": gke, "on_premises": on_premises}
SIZE = count(1, 10)
TRIED = list(CLUSTERS.items()) if PROVE else [("eks", eks)]
"""All three in make prove; in make test one on a real API server, and all by tests/analysis/scan/suggestions"""


def read_back(cluster: Cluster) -> list[Raw]:
    """Everything that a scan reads, as the server has it."""
    kinds = [
        ("v1", "Namespace"), ("v1", "Node"), ("v1", "Pod"), ("batch/v1", "Job"), ("karpenter.sh/v1", "NodePool"),
        ("karpenter.k8s.aws/v1", "EC2NodeClass"), ("resource.k8s.io/v1", "ResourceSlice"),
    ]  # fmt: skip
    return [{"apiVersion": version, "kind": kind, **one} for version, kind in kinds for one in cluster.api.list(version, kind)]


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What the command prints."""
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(("name", "module"), TRIED)
def test_suggested_policies_are_accepted_and_do_what_they_say(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, module: ModuleType
) -> None:
    """Counted, for each policy: pods to which it applies, that it would change and deny, and of which nothing would be found any more."""
    with posted(request.session, module.objects(SIZE)) as cluster:
        kubeconfig, folder = str(cluster.kubeconfig), tmp_path / "policies"
        live = json.loads(typed(capsys, "scan", "--kubeconfig", kubeconfig, "--suggest", str(folder), "-o", "json"))
        _the_dump_says_the_same(live["findings"], module)
        files = sorted(folder.iterdir())
        found = scanned(read_back(cluster))
        written = list(suggestions(found.seen, found.report.hits, OPTIONS))
        assert [file.stem for file in files] == sorted(one.suggestion.name for one in written)
        apply_crds(cluster.api, sorted((ROOT / "deploy" / "crds").glob("*.yaml")), cluster.processes)
        for file in files:
            (value,) = yaml.safe_load_all(file.read_text())
            reply = cluster.api.apply(value)
            assert reply.ok, reply.message
            assert reply.body["spec"]["mode"] == "Audit"
        audited = json.loads(typed(capsys, "audit", "--kubeconfig", kubeconfig, "-o", "json"))["policies"]
        for one in written:
            lines = [line for line in audited if line["policy"] == f"ClusterGPUPolicy/{one.suggestion.name}"]
            counted = tuple(sum(line[key] for line in lines) for key in ("pods", "would-change", "would-deny"))
            assert counted == (one.effect.matched, one.effect.changed, one.effect.denied), one.suggestion.name
        assert sum(one.effect.fixed for one in written) > 0
        for one in written:
            if one.effect.found:
                _mends(cluster, one, found.report.hits, tmp_path)


def _the_dump_says_the_same(live: list[Raw], module: ModuleType) -> None:
    """Of the objects before they were posted: the same kinds, places and counts."""
    recorded = {(one.kind, one.where.kind, one.where.name, one.pods, one.gpus) for one in scanned(module.objects(SIZE)).report.findings}
    assert {(one["kind"], one["where"]["kind"], one["where"]["name"] or "", one["pods"], one["gpus"]) for one in live} == recorded


def _mends(cluster: Cluster, one: WrittenSuggestion, before: Sequence[Hit], folder: Path) -> None:
    """Each pod of which something is found that the policy is for is made anew, by a dry run on an API server that calls a Berth with
    this policy alone, in Enforce; and put in the place of the old one."""
    name = one.suggestion.name
    file = folder / f"{name}-enforced.yaml"
    file.write_text(yaml.safe_dump(one.suggestion.manifest("Enforce")))
    objects = read_back(cluster)
    facts = folder / f"{name}-facts.yaml"
    facts.write_text(yaml.safe_dump_all([value for value in objects if value["kind"] in ("Namespace", "Node", "NodePool")]))
    hits = [hit for hit in before if hit.kind in one.suggestion.fixes and hit.fixed is not None]
    selector = one.suggestion.spec.get("match", {}).get("namespaceSelector", {}).get("matchLabels", {}).values()
    of_pods = {(hit.pod.stored.namespace, hit.pod.stored.name) for hit in hits}
    concerned = {key for key in of_pods if not selector or key[0] in selector}
    for namespace in {namespace for namespace, _ in concerned}:
        cluster.api.patch(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, {"metadata": {"labels": {SCOPE: name}}}
        )
    with registered(cluster, name, [file], "--from", str(facts), "--platforms", "auto", "--mig-strategy", "auto"):
        again = [_made_anew(cluster, value) if (value["kind"] == "Pod" and _key(value) in concerned) else value for value in objects]
    nodes = {value["metadata"]["name"]: value["metadata"].get("labels", {}) for value in objects if value["kind"] == "Node"}
    pods = {_key(value): value for value in again if value["kind"] == "Pod"}
    found = [hit for hit in scanned(again).report.hits if hit.kind in one.suggestion.fixes]
    left = {key for hit in found if (key := (hit.pod.stored.namespace, hit.pod.stored.name)) in concerned and _stays(hit, pods[key], nodes)}
    assert len(concerned - left) == one.effect.fixed, name


def _key(value: Raw) -> tuple[str, str]:
    return value["metadata"]["namespace"], value["metadata"]["name"]


def _stays(hit: Hit, pod: Raw, nodes: dict[str, dict[str, str]]) -> bool:
    """Whether what was found of the pod is still so: a pod that waits has no place even now, one that runs would be where it was."""
    if hit.kind in ("pending", "never-fits"):
        return dict(hit.values)["outlook"] == "never"
    return hit.kind == "run-unprotected" or not _kept_off(pod, nodes[pod["spec"]["nodeName"]])


def _kept_off(pod: Raw, labels: dict[str, str]) -> bool:
    """Whether each of its required terms has an expression that a node with these labels fails."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms = affinity.get("nodeSelectorTerms", [])
    return bool(terms) and all(any(_fails(one, labels) for one in term.get("matchExpressions", ())) for term in terms)


def _fails(expression: Raw, labels: dict[str, str]) -> bool:
    found, values = labels.get(expression["key"]), expression.get("values", ())
    match expression["operator"]:
        case "In":
            return found not in values
        case "NotIn":
            return found in values
        case "Exists":
            return found is None
    return found is not None


def _made_anew(cluster: Cluster, value: Raw) -> Raw:
    node = value["spec"].get("nodeName")
    twin = copy.deepcopy(value)
    twin["spec"].pop("nodeName", None)
    twin["metadata"] = {
        key: one for key, one in twin["metadata"].items() if key in ("namespace", "labels", "annotations", "ownerReferences")
    }
    twin["metadata"]["name"] = f"twin-{value['metadata']['name']}"
    twin.pop("status")
    made = cluster.api.create(twin, dry_run=True)
    made["metadata"] |= {key: value["metadata"][key] for key in ("name", "creationTimestamp")}
    if node:
        made["spec"]["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", **made, "status": value["status"]}
