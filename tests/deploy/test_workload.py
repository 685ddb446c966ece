"""The replicas, and what stands around them, as the values say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import lists, sampled_from

from tests.deploy.rendering import Raw, component, of_kind, rendered, the
from tests.deploy.variants import VARIANTS, Variant
from tests.support.counts import count

LONGEST_CALL = 30
"""Seconds that an API server may wait for a webhook: a drain must not be shorter by default."""


def pod(objects: list[Raw]) -> Raw:
    """The spec of a replica."""
    found: Raw = the(objects, "Deployment")["spec"]["template"]["spec"]
    return found


def container(objects: list[Raw]) -> Raw:
    [one] = pod(objects)["containers"]
    found: Raw = one
    return found


def options(objects: list[Raw]) -> dict[str, str]:
    """Of `berth serve`."""
    command, *words = container(objects)["args"]
    assert command == "serve"
    return dict((*word.split("=", 1), "")[:2] for word in words)


@pytest.fixture(scope="module")
def usual() -> list[Raw]:
    return rendered()


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_is_of_one_piece(name: str) -> None:
    """Selectors find the pods, the Service leads to a port that they open, and options name what is rendered."""
    of_one_piece(VARIANTS[name])


@settings(max_examples=count(15, 200))
@given(names=lists(sampled_from(sorted(VARIANTS)), min_size=2, max_size=6, unique=True))
def test_variants_go_together(names: list[str]) -> None:
    """Values of any of them at once, the later ones over the earlier."""
    values: dict[str, Any] = {}
    for name in names:
        values = laid(values, VARIANTS[name].values)
    last = VARIANTS[names[-1]]
    of_one_piece(Variant(values=values, release=last.release, namespace=last.namespace))


def laid(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """As Helm lays values over others: mappings are merged, all else is replaced."""
    both = {key: laid(below[key], above[key]) for key in below.keys() & above.keys() if isinstance(below[key], dict)}
    return {**below, **above, **both}


def of_one_piece(variant: Variant) -> None:
    """Raises AssertionError where one object names what another one is not."""
    objects = variant.objects()
    deployment = the(objects, "Deployment")
    [service] = [one for one in of_kind(objects, "Service") if one["metadata"]["name"] == deployment["metadata"]["name"]]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    selectors = [deployment["spec"]["selector"]["matchLabels"], service["spec"]["selector"]]
    selectors += [one["spec"]["selector"]["matchLabels"] for one in of_kind(objects, "PodDisruptionBudget")]
    selectors += [one["spec"]["podSelector"]["matchLabels"] for one in of_kind(objects, "NetworkPolicy") if component(one) == "berth"]
    assert all(selector.items() <= labels.items() for selector in selectors)
    ports = {one["name"]: one["containerPort"] for one in container(objects)["ports"]}
    assert {service["spec"]["ports"][0]["targetPort"], "health"} == set(ports)
    said, own = options(objects), deployment["metadata"]["name"]
    assert (said["--listen"].rpartition(":")[2], said["--health"].rpartition(":")[2]) == (str(ports["https"]), str(ports["health"]))
    assert said["--names"] == f"{own}.{variant.namespace}.svc"
    assert service["metadata"]["name"] == pod(objects)["serviceAccountName"] == the(objects, "ServiceAccount")["metadata"]["name"] == own
    assert said["--lease"] == f"{variant.namespace}/{the(objects, 'Lease')['metadata']['name']}"
    assert {one["metadata"]["namespace"] for one in objects if "namespace" in one["metadata"]} == {variant.namespace}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_replica_has_as_few_rights_on_its_node_as_can_be(name: str) -> None:
    """What the level `restricted` of Pod Security asks for, of every container that the chart starts."""
    specs = [pod(VARIANTS[name].objects()), *(one["spec"] for one in of_kind(VARIANTS[name].objects(), "Pod"))]
    user = {} if name == "OpenShift" else {"runAsUser": 65532}
    for spec in specs:
        assert spec["securityContext"].items() >= {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}, **user}.items()
        for one in spec["containers"]:
            wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
            assert one["securityContext"] == wanted


def test_openshift_chooses_the_users() -> None:
    """With `null` for user and group no pod names one, so that the security context constraint `restricted-v2` admits it."""
    objects = VARIANTS["OpenShift"].objects()
    specs = [one["spec"]["template"]["spec"] for one in of_kind(objects, "Deployment")] + [one["spec"] for one in of_kind(objects, "Pod")]
    contexts = [part.get("securityContext", {}) for spec in specs for part in (spec, *spec["containers"])]
    assert len(specs) == 4
    assert not {"runAsUser", "runAsGroup", "fsGroup", "supplementalGroups"} & {key for context in contexts for key in context}


@pytest.mark.parametrize(("lame_duck", "drain"), [(10, 30), (0, 1), (60, 300)])
def test_the_grace_holds_lame_duck_and_drain(lame_duck: int, drain: int) -> None:
    """The kubelet kills nobody who does as told."""
    objects = rendered({"lameDuckSeconds": lame_duck, "drainSeconds": drain})
    assert (options(objects)["--lame-duck"], options(objects)["--drain"]) == (str(lame_duck), str(drain))
    assert pod(objects)["terminationGracePeriodSeconds"] == lame_duck + drain + 10


def test_by_default_the_longest_call_is_answered(usual: list[Raw]) -> None:
    """However long the API server waits for it."""
    assert int(options(usual)["--drain"]) >= LONGEST_CALL


def test_a_rollout_takes_no_replica_before_another_is_ready(usual: list[Raw]) -> None:
    """But where a second one finds no free port on the node."""
    assert the(usual, "Deployment")["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    on_hosts = rendered({"hostNetwork": True})
    assert the(on_hosts, "Deployment")["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}
    assert (pod(on_hosts)["hostNetwork"], pod(on_hosts)["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")


def test_probes_ask_the_second_port(usual: list[Raw]) -> None:
    """Only readiness asks whether calls would be judged: a replica that waits for policies is not started anew."""
    found = {name: container(usual)[f"{name}Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")}
    assert {name: one["path"] for name, one in found.items()} == {"startup": "/livez", "readiness": "/readyz", "liveness": "/livez"}
    assert {one["port"] for one in found.values()} == {"health"}


def test_replicas_are_spread_and_come_first(usual: list[Raw]) -> None:
    """Over hosts and zones, each rollout by itself; one host or zone is no obstacle."""
    spread = pod(usual)["topologySpreadConstraints"]
    assert [one["topologyKey"] for one in spread] == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    assert {(one["whenUnsatisfiable"], *one["matchLabelKeys"]) for one in spread} == {("ScheduleAnyway", "pod-template-hash")}
    assert (the(usual, "Deployment")["spec"]["replicas"], pod(usual)["priorityClassName"]) == (3, "system-cluster-critical")
    assert the(usual, "ResourceQuota")["spec"]["scopeSelector"]["matchExpressions"][0]["values"] == ["system-cluster-critical"]


def test_an_autoscaler_decides_alone() -> None:
    """A Deployment that names replicas would undo it with every upgrade."""
    objects = VARIANTS["autoscaling"].objects()
    spec = the(objects, "HorizontalPodAutoscaler")["spec"]
    assert "replicas" not in the(objects, "Deployment")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"], spec["scaleTargetRef"]["name"]) == (2, 5, "berth")
    assert spec["metrics"][0]["resource"] == {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    assert spec["behavior"] == {"scaleDown": {"stabilizationWindowSeconds": 600}}


def test_what_pods_are_given_is_there() -> None:
    """Every value that is passed on; labels by which the Service finds pods are the chart's."""
    objects = VARIANTS["pods"].objects()
    spec, template, values = pod(objects), the(objects, "Deployment")["spec"]["template"]["metadata"], VARIANTS["pods"].values
    same = ("imagePullSecrets", "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")
    assert {name: spec[name] for name in same} == {name: values[name] for name in same}
    assert ("priorityClassName" in spec, of_kind(objects, "ResourceQuota")) == (False, [])
    assert template["labels"] == {"team": "platform", "app.kubernetes.io/name": "berth", "app.kubernetes.io/instance": "berth"}
    assert template["annotations"]["a"] == "b"
    one = container(objects)
    assert (one["image"], one["imagePullPolicy"]) == (f"registry.example/berth@sha256:{'0' * 64}", "Always")
    assert (one["env"], one["volumeMounts"], spec["volumes"]) == (values["extraEnv"], values["extraVolumeMounts"], values["extraVolumes"])
    assert one["resources"]["requests"]["cpu"] == "1"
    assert one["args"][-1] == "--watch=120"
    assert the(objects, "ServiceAccount")["metadata"]["annotations"] == {"role": "x"}
    assert the(objects, "PodDisruptionBudget")["spec"]["maxUnavailable"] == "50%"
    assert (the(objects, "Deployment")["spec"]["replicas"], the(objects, "Deployment")["spec"]["revisionHistoryLimit"]) == (2, 1)


def test_what_berth_is_told(usual: list[Raw]) -> None:
    """Platforms, MIG strategy, queues and the cap of modes; a catalog is a file of a ConfigMap, and a change of it a rollout."""
    assert options(usual).items() >= {"--max-mode": "Enforce", "--platforms": "auto", "--mig-strategy": "auto"}.items()
    assert not {"--queues", "--catalog"} & set(options(usual))
    objects = VARIANTS["policies"].objects()
    wanted = {"--max-mode": "Warn", "--platforms": "gke,gfd", "--mig-strategy": "mixed", "--queues": "kueue"}
    assert options(objects).items() >= {**wanted, "--catalog": "/etc/berth/catalog.yaml"}.items()
    assert "acme.example/gpu" in the(objects, "ConfigMap")["data"]["catalog.yaml"]
    [mount], [volume] = container(objects)["volumeMounts"], pod(objects)["volumes"]
    assert (mount["name"], volume["configMap"]["name"]) == (volume["name"], the(objects, "ConfigMap")["metadata"]["name"])
    changed = rendered({**VARIANTS["policies"].values, "catalog": {}})
    digests = [the(one, "Deployment")["spec"]["template"]["metadata"]["annotations"].get("berth.dev/catalog") for one in (objects, changed)]
    assert [one is not None for one in digests] == [True, False]


def test_addresses_and_ports() -> None:
    """Host, ports and the Service's port are independent of one another."""
    objects = VARIANTS["a private control plane"].objects()
    assert (options(objects)["--listen"], options(objects)["--health"]) == ("0.0.0.0:10260", "0.0.0.0:10261")
    assert the(objects, "Service")["spec"]["ports"] == [{"name": "https", "port": 8443, "targetPort": "https"}]


def test_metrics_and_network() -> None:
    """Monitors select what is there; the API server's ranges and the readers of metrics are the only ones let in."""
    objects = VARIANTS["metrics and network"].objects()
    pods, services = the(objects, "PodMonitor"), the(objects, "ServiceMonitor")
    assert pods["metadata"]["labels"]["release"] == "prometheus"
    assert (
        pods["spec"]["podMetricsEndpoints"] == services["spec"]["endpoints"] == [{"port": "health", "path": "/metrics", "interval": "15s"}]
    )
    matching = [
        one
        for one in of_kind(objects, "Service")
        if services["spec"]["selector"]["matchLabels"].items() <= one["metadata"]["labels"].items()
    ]
    assert [one["metadata"]["name"] for one in matching] == ["berth-metrics"]
    called, read = the(objects, "NetworkPolicy")["spec"]["ingress"]
    assert called == {"ports": [{"port": "https"}], "from": [{"ipBlock": {"cidr": "10.0.0.0/28"}}]}
    assert read["from"] == VARIANTS["metrics and network"].values["networkPolicy"]["metricsFrom"]
    anybody: list[Any] = the(VARIANTS["open network"].objects(), "NetworkPolicy")["spec"]["ingress"]
    assert anybody == [{"ports": [{"port": "https"}]}, {"ports": [{"port": "health"}]}]
