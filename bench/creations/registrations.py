"""A control plane, and everybody who makes the same edits for it: each in a namespace of its own, by whose label it is called.

All are registered at once, so that they are measured in turn without registering anew: an API server needs seconds to take a
registration up. What is not for a namespace costs a comparison of labels, in every row alike, that without a webhook included.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import yaml

from bench.creations.client import written
from bench.handlers import same_edits
from bench.load import bodies
from bench.measuring import candidates
from bench.measuring.setting import Setting
from tests.support.machine import BenchError, cpu_seconds
from tests.testcluster.addons import berth
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.controlplane.processes import ClusterFailed, Process, free_port
from tests.testcluster.controlplane.starting import running
from tests.testcluster.go_build import BuildFailed
from tests.testcluster.programs import NoProgram

NONE, NATIVE, NATIVE_AGAIN = "no webhook", "MutatingAdmissionPolicy", "the same, IfNeeded"
NATIVES = "MutatingAdmissionPolicy + ValidatingAdmissionPolicy"
MUTATE, BOTH = "Berth /mutate", "Berth /mutate + /validate"
NAMESPACES = {
    NONE: "none",
    NATIVE: "native",
    NATIVE_AGAIN: "native-again",
    MUTATE: "berth",
    candidates.CONTROLLER_RUNTIME: "controller-runtime",
    candidates.NET_HTTP: "net-http",
    NATIVES: "natives",
    BOTH: "berths",
}
"""in the order in which they are measured; a candidate's namespace is also its label"""
NATIVE_POLICIES = Path(__file__).parent / "native"
PROTECT = "karpenter.sh/do-not-disrupt"
TOO_LONG = 7200
"""seconds of grace, over what all require"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    name: str
    namespace: str
    process: Process | None = None
    """None: all of it is done by the API server"""

    def cpu(self) -> float:
        """Seconds so far of its own process."""
        return cpu_seconds(self.process.popen.pid) if self.process else 0.0


@contextmanager
def control_plane(setting: Setting) -> Iterator[Cluster]:
    """etcd and kube-apiserver alone: no scheduler, controller or kubelet touches the pods. Raises BenchError where one can't be had.

    Every process may use every core, this one included, until the end of the block.
    """
    os.sched_setaffinity(0, {setting.cores.server, setting.cores.load})
    options = Options(kubelets=False, apiserver=("--delete-collection-workers=8",))
    try:
        with running(options) as cluster:
            berth.create_namespace(cluster, NAMESPACES[NONE])
            for name in ("kube-controller-manager", "kube-scheduler"):
                cluster.processes.end(cluster.named[name])
            yield cluster
    except (BuildFailed, ClusterFailed, NoProgram) as error:
        raise BenchError(str(error)) from None
    finally:
        os.sched_setaffinity(0, {setting.cores.load})


def all_registered(cluster: Cluster, setting: Setting) -> list[Candidate]:
    """In force, and making the same pods. In a quick run without the handlers in Go that were not built before. Raises BenchError."""
    for name, namespace in NAMESPACES.items():
        if name != NONE:
            berth.create_namespace(cluster, namespace, {berth.SCOPE: namespace})
    chosen = [bare(), *_native(cluster), *_berth(cluster), *_handlers(cluster, setting)]
    chosen.sort(key=lambda candidate: list(NAMESPACES).index(candidate.name))
    pod = _first(written("job", setting.folder))
    for candidate in chosen:
        if candidate.name != NONE:
            cluster.wait_for(lambda one=candidate: _edited(cluster, one, pod), f"{candidate.name} to be called")  # type: ignore[misc]
        if candidate.name == NATIVES:
            cluster.wait_for(lambda one=candidate: _judged(cluster, one, pod), f"{candidate.name} to deny")  # type: ignore[misc]
    for load in ("job", "unlike"):
        _compare(cluster, chosen, written(load, setting.folder))
    return chosen


def bare() -> Candidate:
    """No webhook; its namespace comes with the control plane."""
    return Candidate(name=NONE, namespace=NAMESPACES[NONE])


def _native(cluster: Cluster) -> Iterator[Candidate]:
    for name in (NATIVE, NATIVE_AGAIN, NATIVES):
        namespace = NAMESPACES[name]
        mutating, validating = (yaml.safe_load((NATIVE_POLICIES / f"{kind}.yaml").read_text()) for kind in ("mutating", "validating"))
        if name == NATIVE_AGAIN:
            mutating["spec"]["reinvocationPolicy"] = "IfNeeded"
        _apply(cluster, *_bound(mutating, namespace))
        if name == NATIVES:
            _apply(cluster, *_bound(validating, namespace, validationActions=["Deny"]))
        yield Candidate(name=name, namespace=namespace)


def _bound(policy: Raw, namespace: str, **spec: Any) -> Iterator[Raw]:
    """The policy under the name of the one namespace for which it is."""
    policy["metadata"]["name"] = namespace
    yield policy
    selector = {"namespaceSelector": {"matchLabels": {berth.SCOPE: namespace}}}
    kind = {"apiVersion": policy["apiVersion"], "kind": f"{policy['kind']}Binding"}
    yield {**kind, "metadata": {"name": namespace}, "spec": {"policyName": namespace, "matchResources": selector, **spec}}


def _berth(cluster: Cluster) -> Iterator[Candidate]:
    """One replica, registered as ``berth webhooks`` says: once without the validating half."""
    replica = berth.serve(cluster, "fixed", [NATIVE_POLICIES / "berth.yaml"], "--platforms", "karpenter-aws")
    for name in (MUTATE, BOTH):
        values = berth.manifests(replica, scope=NAMESPACES[name])
        if name == BOTH:
            berth.register(cluster, values, replica, NAMESPACES[name])
        else:
            _apply(cluster, *(value for value in values if value["kind"] == "MutatingWebhookConfiguration"))
        yield Candidate(name=name, namespace=NAMESPACES[name], process=replica.process)


def _handlers(cluster: Cluster, setting: Setting) -> Iterator[Candidate]:
    """Under the short condition of the native policies."""
    rivals = (candidates.CONTROLLER_RUNTIME, candidates.NET_HTTP)
    for name, program in candidates.programs(rivals, build=not setting.scale.quick).items():
        address, pair = f"127.0.0.1:{free_port()}", [str(setting.folder / "tls" / file) for file in ("tls.crt", "tls.key")]
        command = [*program, "--listen", address, "--cert", pair[0], "--key", pair[1]]
        process = cluster.processes.start(NAMESPACES[name], command)
        _apply(cluster, _registration(NAMESPACES[name], address, setting.folder / "tls" / "ca.crt"))
        yield Candidate(name=name, namespace=NAMESPACES[name], process=process)


def _registration(namespace: str, address: str, ca: Path) -> Raw:
    policy = yaml.safe_load((NATIVE_POLICIES / "mutating.yaml").read_text())["spec"]
    webhook = {
        "name": f"{namespace}.bench.berth.dev",
        "clientConfig": {"url": f"https://{address}/mutate", "caBundle": base64.b64encode(ca.read_bytes()).decode()},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 5,
        "namespaceSelector": {"matchLabels": {berth.SCOPE: namespace}},
        "rules": policy["matchConstraints"]["resourceRules"],
        "matchConditions": policy["matchConditions"],
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    return {**kind, "metadata": {"name": namespace}, "webhooks": [webhook]}


def _apply(cluster: Cluster, *values: Raw) -> None:
    for value in values:
        reply = cluster.api.apply(value)
        if not reply.ok:
            raise BenchError(f"{value['kind']} {value['metadata']['name']} was denied: {reply.message}")


def _edited(cluster: Cluster, candidate: Candidate, pod: Raw) -> bool:
    reply = cluster.api.try_create(pod, candidate.namespace, dry_run=True)
    return reply.ok and PROTECT in reply.body["metadata"]["annotations"]


def _judged(cluster: Cluster, candidate: Candidate, pod: Raw) -> bool:
    long = {**pod, "spec": {**pod["spec"], "terminationGracePeriodSeconds": TOO_LONG}}
    return not cluster.api.try_create(long, candidate.namespace, dry_run=True).ok


def _first(file: Path) -> Raw:
    pod: Raw = orjson.loads(bodies.with_number(file.read_bytes().splitlines()[0], 0))
    return pod


def _compare(cluster: Cluster, chosen: Sequence[Candidate], file: Path) -> None:
    """Raises BenchError where one stores another pod than Berth, and where Berth stores the pod that is stored without a webhook."""
    stored = {candidate.name: _stored(cluster, candidate, file) for candidate in chosen}
    plain, expected = stored.pop(NONE), stored[MUTATE]
    if plain == expected:
        raise BenchError(f"Berth changes nothing in the pods of {file.name}")
    for name, pod in stored.items():
        if pod != expected:
            raise BenchError(f"{name} stores another pod than Berth of {file.name}: {same_edits.difference(expected, pod)}")


def _stored(cluster: Cluster, candidate: Candidate, file: Path) -> Raw:
    """Without what is every pod's own, and without the annotation that says what was edited."""
    made = cluster.api.create(_first(file), candidate.namespace)
    found = cluster.api.get("v1", "Pod", made["metadata"]["name"], candidate.namespace)
    cluster.api.delete(made, grace=0)
    if found is None:
        raise BenchError(f"a pod that was created in {candidate.namespace} is not there")
    for key in ("creationTimestamp", "managedFields", "name", "namespace", "resourceVersion", "uid"):
        found["metadata"].pop(key, None)
    found["metadata"].get("annotations", {}).pop(same_edits.APPLIED, None)
    return {key: value for key, value in found.items() if key != "status"}
