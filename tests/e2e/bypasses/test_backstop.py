"""deploy/backstop.yaml on a real API server that calls no Berth: pods past a limit are denied, and none that Berth admits under a policy
with the same numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from policies.engine import evaluate
from policies.request import Request
from tests.support.cases import golden
from tests.support.snapshots import build
from tests.testcluster.addons.berth import create_namespace
from tests.testcluster.controlplane.api import MERGE, Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster

FILE = Path(__file__).parents[3] / "deploy" / "backstop.yaml"
SCOPE = "tests.berth.dev/backstop"
FORBIDDEN = [{"key": "team", "value": "web"}, {"key": "pool", "effect": "NoSchedule"}]
AXES = {"forbiddenTolerations": str(FORBIDDEN)}


@pytest.fixture(scope="module")
def namespace(cluster: Cluster) -> Iterator[str]:
    """The only one where the backstop acts, so that other tests on this cluster do not meet it."""
    policy, binding = yaml.safe_load_all(FILE.read_text())
    for variable in policy["spec"]["variables"]:
        variable["expression"] = AXES.get(variable["name"], variable["expression"])
    binding["spec"]["matchResources"]["namespaceSelector"]["matchLabels"] = {SCOPE: "on"}
    for value in (policy, binding):
        reply = cluster.api.apply(value)
        assert (reply.ok, reply.warnings) == (True, ()), reply.message
    name = create_namespace(cluster, "backstop", {SCOPE: "on"})
    cluster.wait_for(lambda: not tried(cluster, name, spec(gpus(9))).ok, "the backstop to be in force")
    yield name
    for value in (binding, policy):
        cluster.api.delete(value)
    cluster.api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def test_the_shipped_file_is_accepted(cluster: Cluster) -> None:
    """The API server compiles its expressions with the lists as they are shipped, empty ones too."""
    policy = next(yaml.safe_load_all(FILE.read_text()))
    policy["metadata"]["name"] = "backstop-as-shipped.berth.dev"
    reply = cluster.api.apply(policy)
    assert (reply.ok, reply.warnings) == (True, ()), reply.message
    cluster.api.delete(policy)


def gpus(amount: object, name: str = "nvidia.com/gpu") -> Raw:
    return {name: str(amount)}


def container(limits: Raw | None = None, **more: object) -> Raw:
    return {"name": "c", "image": "i:1", **({"resources": {"limits": limits}} if limits is not None else {}), **more}


def spec(*limits: Raw | None, init: tuple[Raw, ...] = (), **more: object) -> Raw:
    return {
        "containers": [container(amounts, name=f"c{number}") for number, amounts in enumerate(limits)],
        **({"initContainers": [{**one, "name": f"i{number}"} for number, one in enumerate(init)]} if init else {}),
        **more,
    }


def tolerating(**toleration: str) -> Raw:
    return spec(gpus(1), tolerations=[toleration])


def tried(cluster: Cluster, namespace: str, pod: Raw) -> Reply:
    value: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": deepcopy(pod)}
    return cluster.api.try_create(value, namespace, dry_run=True)


SIDECAR = container(gpus(1), restartPolicy="Always")
COUNTS = {
    "one container": spec(gpus(9)),
    "two containers": spec(gpus(5), gpus(4)),
    "two names": spec(gpus(5) | gpus(4, "amd.com/gpu")),
    "an init container": spec(None, init=(container(gpus(9)),)),
    "a sidecar": spec(gpus(8), init=(SIDECAR,)),
    "1k": spec(gpus("1k")),
    "9e0": spec(gpus("9e0")),
    "9000m": spec(gpus("9000m")),
    "the largest amounts": spec(gpus(2**63 - 1), gpus(2**63 - 1)),
    "replicas": spec(gpus(9, "nvidia.com/gpu.shared")),
    "a name of a pattern": spec(gpus(9, "aws.amazon.com/neuroncore")),
    "behind many names": spec(gpus(9) | {f"example.com/n{number}": "0" for number in range(100)}),
}
TOLERATIONS = {
    "the taint": tolerating(key="team", operator="Equal", value="web", effect="NoSchedule"),
    "any value": tolerating(key="team", operator="Exists"),
    "every taint": tolerating(operator="Exists"),
    "one effect": tolerating(operator="Exists", effect="NoExecute"),
    "any value of the other": tolerating(key="pool", value="x", effect="NoSchedule"),
    "of a slice": spec(gpus(1, "nvidia.com/mig-1g.10gb"), tolerations=[{"key": "team", "operator": "Exists"}]),
}
ADMITTED = {
    "no resources": spec(None, terminationGracePeriodSeconds=7200, tolerations=[{"operator": "Exists"}]),
    "no accelerator": spec({"cpu": "1", "example.com/gpus": "99", "amd.com/nic": "99"}, terminationGracePeriodSeconds=7200),
    "zero": spec(gpus(0), terminationGracePeriodSeconds=7200),
    "the most": spec(gpus(4), gpus("4000m"), None, terminationGracePeriodSeconds=3600),
    "2e0": spec(gpus("2e0")),
    "no grace": spec(gpus(1), terminationGracePeriodSeconds=0),
    "init containers in turn": spec(gpus(8), init=(container(gpus(8)), container(gpus(8)))),
    "a sidecar": spec(gpus(7), init=(SIDECAR, container(gpus(7)))),
    "many slices": spec(gpus(14, "nvidia.com/mig-1g.10gb")),
    "Berth's own tolerations": spec(
        gpus(1),
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, {"key": "team", "value": "research"}],
    ),
    "another effect": tolerating(key="pool", operator="Exists", effect="NoExecute"),
}


@pytest.mark.parametrize("name", COUNTS)
def test_a_pod_with_too_many_gpus_is_denied(cluster: Cluster, namespace: str, name: str) -> None:
    """A pod is denied if the limits of what runs at once exceed the number, however the amount is written."""
    reply = tried(cluster, namespace, COUNTS[name])
    assert (reply.status, "GPUs, more than the 8 allowed here; request at most 8" in reply.message) == (403, True), reply.message


def test_a_long_grace_period_is_denied(cluster: Cluster, namespace: str) -> None:
    """A GPU pod with a longer terminationGracePeriodSeconds than allowed is denied with the number to write."""
    reply = tried(cluster, namespace, spec(gpus(1), terminationGracePeriodSeconds=3601))
    assert (reply.status, "is 3601, above the maximum of 3600 s here; set it to at most 3600" in reply.message) == (403, True)


@pytest.mark.parametrize("name", TOLERATIONS)
def test_a_forbidden_toleration_is_denied(cluster: Cluster, namespace: str, name: str) -> None:
    """A GPU pod is denied if it tolerates a forbidden taint by key, by any value or by a toleration of everything."""
    reply = tried(cluster, namespace, TOLERATIONS[name])
    assert (reply.status, "it tolerates a taint that is forbidden here; remove it" in reply.message) == (403, True), reply.message


@pytest.mark.parametrize("name", ADMITTED)
def test_a_pod_within_the_limits_is_created(cluster: Cluster, namespace: str, name: str) -> None:
    """A pod within the limits is created, and so is a pod without an accelerator, whatever else it has."""
    reply = tried(cluster, namespace, ADMITTED[name])
    assert (reply.ok, reply.warnings) == (True, ()), reply.message


def test_updates_are_free_but_for_new_tolerations(cluster: Cluster, namespace: str) -> None:
    """A pod that is past every limit can be relabelled, released from a gate and deleted; a forbidden toleration can't be added."""
    past = spec(gpus(16), terminationGracePeriodSeconds=7200, schedulingGates=[{"name": "example.com/gate"}])
    past["tolerations"] = [
        {"key": "team", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
        *({"key": "pool", "value": f"x{number}", "effect": "NoSchedule"} for number in range(490)),
    ]
    cluster.api.call("PATCH", f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {SCOPE: None}}}, content=MERGE)
    cluster.wait_for(lambda: tried(cluster, namespace, past).ok, "the backstop to leave the namespace alone")
    stored = cluster.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "past"}, "spec": past}, namespace)
    cluster.api.call("PATCH", f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {SCOPE: "on"}}}, content=MERGE)
    cluster.wait_for(lambda: not tried(cluster, namespace, past).ok, "the backstop to be in force again")

    path, kept = f"/api/v1/namespaces/{namespace}/pods/past", stored["spec"]["tolerations"]
    shorter = [{**one, "tolerationSeconds": 30} if one["key"] == "team" else one for one in kept]
    changes: list[Raw] = [
        {"metadata": {"labels": {"a": "b"}}},
        {"spec": {"tolerations": shorter}},
        {"spec": {"tolerations": [*kept, {"key": "team", "value": "research"}]}},
        {"spec": {"schedulingGates": []}},
    ]
    for change in changes:
        reply = cluster.api.call("PATCH", path, change, content=MERGE)
        assert reply.ok, reply.message
    current = cluster.api.call("GET", path).body["spec"]["tolerations"]
    reply = cluster.api.call("PATCH", path, {"spec": {"tolerations": [*current, {"operator": "Exists"}]}}, content=MERGE)
    assert (reply.status, "without a key, which tolerates every taint" in reply.message) == (403, True), reply.message
    assert cluster.api.call("DELETE", path, gracePeriodSeconds="0").ok


LARGE = {f"huawei.com/Ascend{'9' * 50}{number:02}": "1" for number in range(20)}
LARGEST = {
    "containers": spec(*[gpus(1, "huawei.com/Ascend910") | gpus(0)] * 1000),
    "names": spec(*[LARGE] * 100),
    "tolerations": spec(gpus(1), tolerations=[{"key": f"k{number}", "operator": "Exists"} for number in range(500)]),
    "more than is read": spec(*[gpus(1)] * 1500, tolerations=[{"key": f"k{number}", "operator": "Exists"} for number in range(5000)]),
}


@pytest.mark.parametrize("name", LARGEST)
def test_no_size_makes_an_expression_fail(cluster: Cluster, namespace: str, name: str) -> None:
    """The largest pods that are read cost less than an expression may, and larger ones are left to Berth."""
    reply = tried(cluster, namespace, LARGEST[name])
    assert reply.ok or "allowed here; request at most 8" in reply.message, reply.message
    assert name not in ("tolerations", "more than is read") or reply.ok


def random_pod(source: random.Random) -> Raw:
    names = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "amd.com/gpu", "amd.com/cpx_nps4", "amd.com/nic", "cpu")

    def limits() -> Raw | None:
        amounts = {name: source.choice(("0", "1", "3", "5", "8", "2e0", "1k")) for name in source.sample(names, source.randint(0, 2))}
        return source.choice((amounts, amounts, None))

    init = [container(limits(), **source.choice(({}, {"restartPolicy": "Always"}))) for _ in range(source.randint(0, 3))]
    tolerations = [
        {
            **source.choice(({"key": "team"}, {"key": "pool"}, {"key": "other"}, {"operator": "Exists"})),
            **source.choice(({}, {"operator": "Exists"}, {"value": "web"}, {"operator": "Equal", "value": "x"})),
            **source.choice(({}, {"effect": "NoSchedule"}, {"effect": "NoExecute"})),
        }
        for _ in range(source.choice((0, 0, 0, 1)))
    ]
    grace = source.choice((0, 30, 3600, 3600, 3600, 3601))
    return spec(
        *(limits() for _ in range(source.randint(1, 3))), init=tuple(init), tolerations=tolerations, terminationGracePeriodSeconds=grace
    )


def test_nothing_is_denied_that_berth_admits(cluster: Cluster, namespace: str) -> None:
    """Of random pods, each that the backstop denies is denied by a policy with the same numbers too."""
    require = {"gpusPerPod": {"max": 8}, "gracePeriod": {"max": "1h"}, "tolerations": {"forbid": FORBIDDEN}}
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "same"}, "spec": {"mode": "Enforce", "require": require}}
    catalog = golden.catalog_with()
    facts = build(golden.policies_of([policy], catalog), catalog, platforms=("karpenter-aws",)).facts_for("ml")
    source, denials, admissions = random.Random(34), 0, 0
    for _ in range(400):
        made = random_pod(source)
        stored = tried(cluster, "default", made)
        if not stored.ok:  # no toleration, or no amount, that the API server takes
            continue
        reply = tried(cluster, namespace, made)
        violations = evaluate(Request(namespace="ml", phase="validate", pod=stored.body), facts).violations
        assert reply.ok or violations, (made, reply.message)
        assert reply.ok or reply.status == 403, reply.message
        denials, admissions = denials + (not reply.ok), admissions + (reply.ok and not violations)
    assert min(denials, admissions) > 40


def test_the_api_server_finds_no_fault_with_the_types(cluster: Cluster, namespace: str) -> None:
    """The policy's expressions are well typed for pods, by the API server's own check."""
    checked = cluster.wait_for(
        lambda: (cluster.api.get("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "berth-backstop") or {}).get("status"),
        "the types to be checked",
    )
    assert checked["typeChecking"].get("expressionWarnings", []) == []
