"""Register Berth and native policies with the same edits (bench/rivals/native) on one API server, each for a namespace of its own.

All are registered at once, so that they are measured in turn: an API server needs seconds to take a registration up. A registration for
another namespace costs a comparison of labels, in every row alike, that without a webhook included.
"""

from __future__ import annotations

import orjson
import yaml

from bench.harness.candidates import RIVALS
from bench.harness.following import apply
from bench.harness.same_edits import APPLIED
from bench.harness.setting import BenchSetting
from bench.inputs import bodies
from tests.testcluster.addons import berth
from tests.testcluster.addons.berth import Berth
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster

NONE, NATIVE, NATIVE_AGAIN, MUTATE = "no webhook", "MutatingAdmissionPolicy", "the same, IfNeeded", "Berth /mutate"
NAMESPACES = {NONE: "none", NATIVE: "native", NATIVE_AGAIN: "native-again", MUTATE: "berth"}
"""In the order in which they are measured; a candidate's namespace is also its label."""


def register_all(cluster: Cluster, setting: BenchSetting) -> Berth:
    """Register all candidates; return the one replica of Berth once all make the same pod. Raises BenchError and ClusterFailed."""
    for namespace in [*NAMESPACES.values()][1:]:
        berth.create_namespace(cluster, namespace, {berth.SCOPE: namespace})
    replica = berth.serve(cluster, "fixed", [RIVALS / "native" / "berth.yaml"], "--platforms", "karpenter-aws")
    values = [v for v in berth.manifests(replica, scope=NAMESPACES[MUTATE]) if v["kind"] == "MutatingWebhookConfiguration"]
    for name, reinvocation in ((NATIVE, "Never"), (NATIVE_AGAIN, "IfNeeded")):
        namespace, policy = NAMESPACES[name], yaml.safe_load((RIVALS / "native" / "mutating.yaml").read_text())
        policy["metadata"]["name"], policy["spec"]["reinvocationPolicy"] = namespace, reinvocation
        spec = {"policyName": namespace, "matchResources": {"namespaceSelector": {"matchLabels": {berth.SCOPE: namespace}}}}
        binding = {"apiVersion": policy["apiVersion"], "kind": f"{policy['kind']}Binding", "metadata": {"name": namespace}, "spec": spec}
        values += [policy, binding]
    for value in values:
        apply(cluster, value)
    for load in ("job.pods", "unlike.pods"):
        pod = orjson.loads(bodies.with_number(setting.bodies(load).read_bytes().splitlines()[0], 0))

        def make_the_same(pod: Raw = pod) -> bool:
            bare, *others = (_edited(cluster, pod, namespace) for namespace in NAMESPACES.values())
            return others[0] != bare and all(other == others[0] for other in others)

        cluster.wait_for(make_the_same, f"every candidate to make the same of {load}")
    return replica


def _edited(cluster: Cluster, pod: Raw, namespace: str) -> Raw:
    """Return a pod as it would be stored, without what is its own and without the annotation that says what was edited."""
    edited = cluster.api.try_create(pod, namespace, dry_run=True).body
    for key in ("creationTimestamp", "managedFields", "name", "namespace", "uid"):
        edited["metadata"].pop(key, None)
    edited["metadata"].get("annotations", {}).pop(APPLIED, None)
    return {key: value for key, value in edited.items() if key != "status"}
