"""The Deployment of `berth audit --serve`, and its account."""

from __future__ import annotations

import pytest

from cluster.watch.workload_kinds import resources
from documents.files import read_catalog
from tests.deploy.rendering import Raw, component, of_kind, rendered, the
from tests.deploy.variants import VARIANTS

AUDIT = "berth-audit"
WRITES = {"create", "update", "patch", "delete", "deletecollection"}


def spec(objects: list[Raw]) -> Raw:
    """Of the pod."""
    found: Raw = the(objects, "Deployment", of=AUDIT)["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "bare"])
def test_it_is_of_one_piece(name: str) -> None:
    """Its account, its Lease and its labels are its own: nothing of the server's selects it."""
    variant = VARIANTS[name]
    objects = variant.objects()
    deployment, account = the(objects, "Deployment", of=AUDIT), the(objects, "ServiceAccount", of=AUDIT)["metadata"]["name"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    selectors = [one["spec"]["selector"] for one in of_kind(objects, "Service") if component(one) != AUDIT]
    selectors += [one["spec"]["selector"]["matchLabels"] for one in of_kind(objects, "PodDisruptionBudget")]
    selectors += [one["spec"]["podSelector"]["matchLabels"] for one in of_kind(objects, "NetworkPolicy")]
    assert selectors or name == "bare"
    assert not any(selector.items() <= labels.items() for selector in selectors)
    [container] = spec(objects)["containers"]
    assert container["args"][:3] == ["audit", "--serve", "--in-cluster"]
    assert f"--lease={variant.namespace}/{account}" in container["args"]
    assert spec(objects)["serviceAccountName"] == account == the(objects, "Role", of=AUDIT)["rules"][1]["resourceNames"][0]
    assert account != the(objects, "ServiceAccount")["metadata"]["name"]
    own = [one for kind in ("ClusterRoleBinding", "RoleBinding") for one in of_kind(objects, kind) if component(one) == AUDIT]
    assert [one["subjects"] for one in own] == [[{"kind": "ServiceAccount", "name": account, "namespace": variant.namespace}]] * 2


def test_it_runs_as_restricted_as_a_replica() -> None:
    """What the level `restricted` of Pod Security asks for."""
    objects = rendered()
    replica = the(objects, "Deployment")["spec"]["template"]["spec"]
    assert spec(objects)["securityContext"] == replica["securityContext"]
    assert spec(objects)["containers"][0]["securityContext"] == replica["containers"][0]["securityContext"]


def test_it_writes_nothing_but_reports() -> None:
    """Reports, counts in statuses, Events; pods are read only, and Secrets not even that."""
    rules = the(rendered(), "ClusterRole", of=AUDIT)["rules"]
    written = {resource for rule in rules if WRITES & set(rule["verbs"]) for resource in rule["resources"]}
    assert written == {"reports", "policyreports", "events", "clustergpupolicies/status", "gpupolicies/status"}
    assert not {"secrets", "configmaps"} & {resource for rule in rules for resource in rule["resources"]}


@pytest.mark.parametrize("name", ["default", "pods"])
def test_it_reads_the_custom_workloads_of_the_catalog(name: str) -> None:
    """Exactly these, besides what the server reads and Kubernetes' own; it writes none of them."""
    rules = the(VARIANTS[name].objects(), "ClusterRole", of=AUDIT)["rules"]
    wanted = resources(read_catalog([]))
    operator = {"clusterpolicies", "gpuclusters"}  # of nvidia.com, which Dynamo's workloads share
    found = {rule["apiGroups"][0]: rule for rule in rules if rule["apiGroups"][0] in wanted and not operator & {*rule["resources"]}}
    assert {group: rule["resources"] for group, rule in found.items()} == wanted
    assert {tuple(rule["verbs"]) for rule in found.values()} == {("get", "list", "watch")}
    assert not any("*" in rule[field] for rule in rules for field in ("apiGroups", "resources", "verbs"))


def test_the_server_may_not_read_pods() -> None:
    """That is what the account of its own is for."""
    assert "pods" not in {resource for rule in _own_role()["rules"] for resource in rule["resources"]}


def _own_role() -> Raw:
    return next(one for one in of_kind(rendered(), "ClusterRole") if one["metadata"]["name"] == "berth")


def test_its_values_are_its_own() -> None:
    """Resources and options; what concerns every pod of the release holds for it too."""
    objects, values = VARIANTS["pods"].objects(), VARIANTS["pods"].values
    [container] = spec(objects)["containers"]
    assert container["resources"]["limits"]["memory"] == "1Gi"
    assert container["args"][-1] == "--watch=30"
    same = ("imagePullSecrets", "nodeSelector", "tolerations", "affinity")
    assert {name: spec(objects)[name] for name in same} == {name: values[name] for name in same}
    assert not [one for one in of_kind(VARIANTS["bare"].objects(), "Deployment") if component(one) == AUDIT]
