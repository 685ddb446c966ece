"""The two manifests: when Berth is called, what happens without it, and whether kube-apiserver takes them."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from catalog.parse import from_mappings
from certs.authority import make_ca
from documents.files import SHIPPED_CATALOG, read_documents
from registration.configurations import Service, Url, made_of, manifests
from registration.entries import ALWAYS, DEFAULT, InstallChoices
from tests.support.calls.webhook_dispatch import judge
from tests.support.generators.random_worlds import catalog

Raw = dict[str, Any]
MUTATING, VALIDATING = manifests(catalog(), Service())
WEBHOOKS: dict[str, Raw] = {webhook["name"]: webhook for webhook in (*MUTATING["webhooks"], *VALIDATING["webhooks"])}
CA = make_ca(datetime(2026, 1, 1, tzinfo=UTC)).certificate_pem
SHIPPED: Raw = read_documents([str(SHIPPED_CATALOG)])[0][0].value


def test_when_berth_is_called() -> None:
    """Path, operations, and what the API server does without an answer, entry by entry, in the order of calls."""
    assert [
        (name, one["clientConfig"]["service"]["path"], one["rules"][0]["operations"], one["failurePolicy"], one["timeoutSeconds"])
        for name, one in WEBHOOKS.items()
    ] == [
        ("mutate.pods.berth.dev", "/mutate", ["CREATE"], "Fail", 5),
        ("mutate.claims-made.berth.dev", "/mutate", ["CREATE", "UPDATE"], "Fail", 5),
        ("mutate.updates.berth.dev", "/mutate/ignore", ["UPDATE"], "Ignore", 5),
        ("validate.pods.berth.dev", "/validate", ["CREATE"], "Fail", 5),
        ("validate.claims-made.berth.dev", "/validate", ["CREATE"], "Fail", 5),
        ("validate.updates.berth.dev", "/validate/ignore", ["UPDATE"], "Ignore", 5),
        ("advise.workloads.berth.dev", "/advise", ["CREATE", "UPDATE"], "Ignore", 2),
        ("advise.operators.berth.dev", "/advise", ["CREATE", "UPDATE"], "Ignore", 2),
    ]


@pytest.mark.parametrize("name", WEBHOOKS)
def test_what_all_have_in_common(name: str) -> None:
    """No side effects, every version of a kind, no cluster-wide object, no namespace of the control plane or an operator."""
    webhook = WEBHOOKS[name]
    assert (webhook["sideEffects"], webhook["matchPolicy"], webhook["admissionReviewVersions"]) == ("None", "Equivalent", ["v1"])
    assert {rule["scope"] for rule in webhook["rules"]} == {"Namespaced"}
    assert webhook["namespaceSelector"] == {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [*ALWAYS, "berth-system"]},
        ]
    }
    assert len({condition["name"] for condition in webhook["matchConditions"]}) == len(webhook["matchConditions"]) <= 3


def test_pods_are_pods() -> None:
    """No subresource but what an update of amounts goes through: status, binding and eviction never wait for Berth."""
    rules = {name: rule for name, one in WEBHOOKS.items() for rule in one["rules"]}
    found = {name: (rules[name]["apiGroups"], rules[name]["apiVersions"], rules[name]["resources"]) for name in rules}
    pods, claims = (
        ([""], ["v1"], ["pods"]),
        (["resource.k8s.io"], ["v1", "v1beta2", "v1beta1"], ["resourceclaims", "resourceclaimtemplates"]),
    )
    assert {name: found[name] for name in found if "advise" not in name} == {
        "mutate.pods.berth.dev": pods,
        "mutate.updates.berth.dev": pods,
        "validate.pods.berth.dev": pods,
        "mutate.claims-made.berth.dev": claims,
        "validate.claims-made.berth.dev": claims,
        "validate.updates.berth.dev": ([""], ["v1"], ["pods", "pods/resize"]),
    }


def test_a_digest_says_what_the_conditions_are_made_from() -> None:
    """In both configurations the same; another one for another catalog, another name or another way with claims, and for nothing else."""
    annotations = [one["metadata"]["annotations"] for one in (MUTATING, VALIDATING)]
    plain = made_of(catalog(), DEFAULT)
    assert annotations == [{"berth.dev/made-of": plain, "berth.dev/claims": "Fail"}] * 2
    own = from_mappings(SHIPPED, {"resources": [{"name": "example.com/npu", "vendor": "nvidia", "kind": "other"}]})
    others = [made_of(own, DEFAULT), *(made_of(catalog(), one) for one in (InstallChoices(claims="Off"), InstallChoices(names=("a.b/c",))))]
    assert len({plain, *others}) == 4
    assert made_of(catalog(), InstallChoices(excluded=("x",))) == plain
    named = manifests(catalog(), Service(), chosen=InstallChoices(names=("a.b/c", "a.b/d")))[0]["metadata"]["annotations"]
    assert named["berth.dev/resource-names"] == "a.b/c,a.b/d"


def test_a_pod_that_another_webhook_changes_afterwards_comes_back() -> None:
    """Mutating webhooks run late by their name, and again if one of a later name changes the pod."""
    assert {one["reinvocationPolicy"] for one in MUTATING["webhooks"]} == {"IfNeeded"}
    assert not any("reinvocationPolicy" in one for one in VALIDATING["webhooks"])
    others = ["istio-sidecar-injector", "vpa-webhook-config", "kueue-mutating-webhook-configuration", "z-last"]
    assert max(others) < MUTATING["metadata"]["name"] == VALIDATING["metadata"]["name"]


def test_every_workload_that_describes_pods_is_advised_on() -> None:
    """By group, versions and plural, each kind by one webhook; a bare pod is not: /validate says it all to whoever creates it. Nor is what
    is in no namespace: nobody can say where its pods will be."""
    found = []
    for name in ("workloads", "operators"):
        rules = WEBHOOKS[f"advise.{name}.berth.dev"]["rules"]
        found += [(g, v, r) for rule in rules for g in rule["apiGroups"] for v in rule["apiVersions"] for r in rule["resources"]]
        groups = [(rule["apiGroups"][0], tuple(rule["apiVersions"])) for rule in rules]
        assert len(set(groups)) == len(groups)
    assert len(set(found)) == len(found)
    assert set(found) == {
        (version.rpartition("/")[0], version.rpartition("/")[2], workload.resource)
        for workload in catalog().workloads
        for version in workload.api_version
        if workload.describes_pods and not workload.cluster
    }
    assert {("apps", "v1", "deployments"), ("batch", "v1", "cronjobs"), ("batch.volcano.sh", "v1alpha1", "jobs")} < set(found)
    assert {("serving.kserve.io", "v1beta1", "inferenceservices"), ("argoproj.io", "v1alpha1", "workflows")} < set(found)
    assert ("", "v1", "pods") not in found
    assert not any(resource == "clustertrainingruntimes" for _, _, resource in found)


@pytest.mark.parametrize("ca", [None, CA, CA + CA], ids=["no CA", "a CA", "two"])
@pytest.mark.parametrize("target", [Service(), Service(namespace="gpu", name="b", port=8443), Url(base="https://10.0.0.1:8443")], ids=str)
def test_kube_apiserver_accepts_them(target: Service | Url, ca: bytes | None) -> None:
    """Decoded strictly and validated by its own code, every condition compiled as of Kubernetes 1.30 too."""
    invalid, _ = judge([], target=target, ca=ca)
    assert invalid == []


def test_kube_apiserver_would_say_what_is_wrong() -> None:
    """The judge of the test above is awake: http:// is an error for each webhook."""
    invalid, _ = judge([], target=Url(base="http://10.0.0.1:8443"))
    assert len([error for error in invalid if "'https' is the only allowed URL scheme" in error]) == len(WEBHOOKS)


def test_where_berth_is() -> None:
    """A Service or a URL, each with the path; the CA as the API has it."""
    one = manifests(catalog(), Service(namespace="a", name="b", port=9443), CA)[0]["webhooks"][0]["clientConfig"]
    assert one["service"] == {"namespace": "a", "name": "b", "path": "/mutate", "port": 9443}
    assert base64.b64decode(one["caBundle"]) == CA
    assert manifests(catalog(), Url(base="https://[::1]:1"))[1]["webhooks"][4]["clientConfig"] == {"url": "https://[::1]:1/advise"}


def test_a_workload_of_two_groups_has_a_rule_in_each() -> None:
    """And those that share group and versions share one."""
    own = from_mappings(
        SHIPPED,
        {
            "workloads": [
                {"name": "A", "apiVersions": ["x.io/v1", "y.io/v1", "y.io/v2"], "resource": "as", "templates": ["spec.template"]},
                {"name": "B", "apiVersions": ["x.io/v1"], "resource": "bs", "templates": ["spec.template"]},
            ]
        },
    )
    rules = manifests(own, Service())[1]["webhooks"][-1]["rules"]
    assert [(r["apiGroups"], r["apiVersions"], r["resources"]) for r in rules if r["apiGroups"][0].endswith(".io")][-2:] == [
        (["x.io"], ["v1"], ["as", "bs"]),
        (["y.io"], ["v1", "v2"], ["as"]),
    ]
