"""Register Berth and native policies with the same edits (bench/rivals/native) on one API server, each for a namespace of its own.

All are registered at once, so that they are measured in turn: an API server needs seconds to take a registration up. A registration for
another namespace costs a comparison of labels, in every row alike, that without a webhook included.
"""

from __future__ import annotations

from pathlib import Path

import orjson
import yaml

from bench.harness.candidates import RIVALS
from bench.harness.same_edits import APPLIED, difference
from bench.harness.setting import BenchSetting
from bench.inputs import bodies
from tests.support.machine import BenchError
from tests.testcluster.addons import berth
from tests.testcluster.addons.berth import Berth
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster

NONE, NATIVE, NATIVE_AGAIN = "no webhook", "MutatingAdmissionPolicy", "the same, IfNeeded"
MUTATE = "Berth /mutate"
NAMESPACES = {NONE: "none", NATIVE: "native", NATIVE_AGAIN: "native-again", MUTATE: "berth"}
"""In the order in which they are measured; a candidate's namespace is also its label."""
POLICIES = RIVALS / "native"
PROTECT = "karpenter.sh/do-not-disrupt"


def register_all(cluster: Cluster, setting: BenchSetting) -> Berth:
    """Register all candidates and wait until they act; return the one replica of Berth. Raises BenchError if their pods differ."""
    for name, namespace in NAMESPACES.items():
        if name != NONE:
            berth.create_namespace(cluster, namespace, {berth.SCOPE: namespace})
    for name, reinvocation in ((NATIVE, "Never"), (NATIVE_AGAIN, "IfNeeded")):
        namespace, policy = NAMESPACES[name], yaml.safe_load((POLICIES / "mutating.yaml").read_text())
        policy["metadata"]["name"], policy["spec"]["reinvocationPolicy"] = namespace, reinvocation
        spec = {"policyName": namespace, "matchResources": {"namespaceSelector": {"matchLabels": {berth.SCOPE: namespace}}}}
        binding = {"apiVersion": policy["apiVersion"], "kind": f"{policy['kind']}Binding", "metadata": {"name": namespace}, "spec": spec}
        _apply(cluster, policy, binding)
    replica = berth.serve(cluster, "fixed", [POLICIES / "berth.yaml"], "--platforms", "karpenter-aws")
    values = berth.manifests(replica, scope=NAMESPACES[MUTATE])
    _apply(cluster, *(value for value in values if value["kind"] == "MutatingWebhookConfiguration"))
    pod = _first(setting.bodies("job.pods"))

    def act() -> bool:
        replies = [cluster.api.try_create(pod, namespace, dry_run=True) for name, namespace in NAMESPACES.items() if name != NONE]
        return all(reply.ok and PROTECT in reply.body["metadata"]["annotations"] for reply in replies)

    cluster.wait_for(act, "every candidate to act")
    for load in ("job.pods", "unlike.pods"):
        _compare(cluster, setting.bodies(load))
    return replica


def _apply(cluster: Cluster, *values: Raw) -> None:
    for value in values:
        reply = cluster.api.apply(value)
        if not reply.ok:
            raise BenchError(f"{value['kind']} {value['metadata']['name']} was denied: {reply.message}")


def _first(file: Path) -> Raw:
    pod: Raw = orjson.loads(bodies.with_number(file.read_bytes().splitlines()[0], 0))
    return pod


def _compare(cluster: Cluster, file: Path) -> None:
    """Raise BenchError if a candidate stores another pod than Berth, or if Berth stores the pod that is stored without a webhook."""
    stored = {name: _stored(cluster, namespace, file) for name, namespace in NAMESPACES.items()}
    plain, expected = stored.pop(NONE), stored[MUTATE]
    if plain == expected:
        raise BenchError(f"Berth changes nothing in the pods of {file.name}")
    for name, pod in stored.items():
        if edit := difference(expected, pod):
            raise BenchError(f"{name} stores another pod than Berth of {file.name}, without {edit}")


def _stored(cluster: Cluster, namespace: str, file: Path) -> Raw:
    """Return a pod as it was stored, without what is every pod's own and without the annotation that says what was edited."""
    created = cluster.api.create(_first(file), namespace)
    pod = cluster.api.get("v1", "Pod", created["metadata"]["name"], namespace)
    cluster.api.delete(created, grace=0)
    if pod is None:
        raise BenchError(f"a pod that was created in {namespace} is not there")
    for key in ("creationTimestamp", "managedFields", "name", "namespace", "resourceVersion", "uid"):
        pod["metadata"].pop(key, None)
    pod["metadata"].get("annotations", {}).pop(APPLIED, None)
    return {key: value for key, value in pod.items() if key != "status"}
