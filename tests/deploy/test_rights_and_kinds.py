"""Rights, certificates, definitions, policies and guards, as the values say."""

from __future__ import annotations

import pytest
import yaml

from tests.deploy.rendering import KINDS_THERE, Raw, of_kind, rendered, the
from tests.deploy.test_workload import options
from tests.deploy.variants import LIBRARY as NAMES
from tests.deploy.variants import VARIANTS
from tests.testcluster.addons.berth import LIBRARY


def verbs(objects: list[Raw], kind: str, resource: str, name: str | None = None) -> set[str]:
    """What a role allows on a resource, by that name or by none."""
    roles = [one for one in of_kind(objects, kind) if not one["metadata"]["name"].startswith("berth-")]
    rules = [rule for one in roles for rule in one["rules"] if resource in rule["resources"]]
    return {verb for rule in rules if name in rule.get("resourceNames", [None]) for verb in rule["verbs"]}


@pytest.mark.parametrize("name", VARIANTS)
def test_names_of_others_are_not_granted(name: str) -> None:
    """Secret, Lease and account are those that the options name; configurations are the two of Berth."""
    variant = VARIANTS[name]
    objects = variant.objects()
    said = options(objects)
    secret, lease = said["--cert-secret"].partition("/")[2], said["--lease"].partition("/")[2]
    role = the(objects, "Role")
    assert {name for rule in role["rules"] for name in rule.get("resourceNames", ())} == {secret, lease}
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        own = next(one for one in of_kind(objects, kind) if one["metadata"]["name"] == the(objects, "ServiceAccount")["metadata"]["name"])
        assert own["subjects"][0]["namespace"] == variant.namespace
    configurations = {one["metadata"]["name"] for one in objects if one["kind"].endswith("WebhookConfiguration")}
    assert configurations == {"zz-berth", *(["berth-queues"] if name == "queues" else ())}


@pytest.mark.parametrize(
    ("variant", "source", "secret"),
    [
        ("default", "ours", {"get", "watch", "update"}),
        ("cert-manager", "theirs", {"get", "watch"}),
        ("a Secret of one's own", "theirs", {"get", "watch"}),
    ],
)
def test_rights_follow_the_source_of_certificates(variant: str, source: str, secret: set[str]) -> None:
    """Who does not make the Secret does not write it; the registration is put into effect by replicas whoever publishes the CA."""
    objects = VARIANTS[variant].objects()
    said = options(objects)
    assert said["--cert-source"] == source
    assert verbs(objects, "Role", "secrets", said["--cert-secret"].partition("/")[2]) == secret
    assert verbs(objects, "Role", "secrets") == ({"create"} if source == "ours" else set())
    assert verbs(objects, "ClusterRole", "mutatingwebhookconfigurations", "zz-berth") == {"get", "watch", "patch"}
    assert verbs(objects, "ClusterRole", "mutatingwebhookconfigurations", "berth-queues") == {"get", "watch", "patch"}
    assert verbs(objects, "Role", "endpointslices") == {"list"}


def test_a_release_owns_the_secret_that_berth_fills() -> None:
    """So that it goes with the release; nothing is in it that an upgrade could write over. Others' Secrets are not touched."""
    secret = the(rendered(), "Secret")
    assert not {"data", "stringData"} & set(secret)
    assert not of_kind(VARIANTS["cert-manager"].objects(), "Secret")
    assert not of_kind(VARIANTS["a Secret of one's own"].objects(), "Secret")


def test_cert_manager_makes_what_is_served() -> None:
    """Into the Secret that Berth reads, for the name that the API server dials."""
    objects = VARIANTS["cert-manager"].objects()
    spec = the(objects, "Certificate")["spec"]
    assert options(objects)["--cert-secret"] == f"berth-system/{spec['secretName']}"
    assert "berth.berth-system.svc" in spec["dnsNames"]
    assert (spec["issuerRef"]["kind"], spec["issuerRef"]["name"], spec["duration"]) == ("ClusterIssuer", "platform", "720h")


def test_lives_of_certificates() -> None:
    """As `berth serve` is told."""
    said = options(VARIANTS["short lives"].objects())
    assert (said["--ca-life"], said["--leaf-life"], said["--ca-overlap"]) == ("24h", "1h", "5m")


def test_definitions_are_kept() -> None:
    """With one all objects of its kind would go. They come with the release, or not at all."""
    kept = [one["metadata"]["annotations"]["helm.sh/resource-policy"] for one in of_kind(rendered(), "CustomResourceDefinition")]
    assert kept == ["keep"] * 3
    assert not of_kind(VARIANTS["bare"].objects(), "CustomResourceDefinition")


def test_definitions_are_those_of_berth_crds() -> None:
    """In all that they define."""
    source = {file.name: yaml.safe_load(file.read_text())["spec"] for file in (LIBRARY.parents[1] / "deploy" / "crds").iterdir()}
    found = {f"berth.dev_{one['spec']['names']['plural']}.yaml": one["spec"] for one in of_kind(rendered(), "CustomResourceDefinition")}
    assert found == source


@pytest.mark.parametrize("mode", ["Audit", "Enforce"])
def test_library_policies_have_the_mode_that_was_chosen(mode: str) -> None:
    """And are those of the library in all else."""
    objects = rendered({"library": {"policies": NAMES, "mode": mode}}, KINDS_THERE)
    found = {one["metadata"]["name"]: one["spec"] for one in objects if one["apiVersion"].startswith("berth.dev/")}
    source = [one for file in LIBRARY.glob("*.yaml") for one in yaml.safe_load_all(file.read_text())]
    moded = [{**one["spec"], "mode": mode} if "mode" in one["spec"] else one["spec"] for one in source]
    assert found == {one["metadata"]["name"]: spec for one, spec in zip(source, moded, strict=True)}


def test_one_library_policy_may_have_a_mode_of_its_own() -> None:
    """By its own name, in the release: what kubectl changes in an object of a release, Helm denies to change afterwards."""
    source = [one for file in LIBRARY.glob("*.yaml") for one in yaml.safe_load_all(file.read_text()) if "mode" in one["spec"]]
    for policy in (one["metadata"]["name"] for one in source):
        objects = rendered({"library": {"policies": NAMES, "modes": {policy: "Enforce"}}}, KINDS_THERE)
        modes = {one["metadata"]["name"]: one["spec"]["mode"] for one in of_kind(objects, "ClusterGPUPolicy")}
        assert modes == {one["metadata"]["name"]: "Audit" for one in source} | {policy: "Enforce"}


def test_policies_wait_for_their_kinds() -> None:
    """Helm would deny a whole first installation for one object of a kind that comes with it."""
    assert not of_kind(rendered({"library": {"policies": ["berth-default"]}}), "ClusterGPUPolicy")


def test_teams_get_their_rights_by_aggregation() -> None:
    """Unless that is switched off; readers of guardrails are whom one names."""
    labels = {one["metadata"]["name"]: set(one["metadata"]["labels"]) for one in of_kind(rendered(), "ClusterRole")}
    assert "rbac.authorization.k8s.io/aggregate-to-edit" in labels["berth-edit"]
    assert "rbac.authorization.k8s.io/aggregate-to-view" in labels["berth-view"] & labels["berth-guardrails-view"]
    bare = VARIANTS["bare"].objects()
    assert {one["metadata"]["name"] for one in of_kind(bare, "ClusterRole")} == {"berth", "berth-guardrails-view"}
    bound = next(one for one in of_kind(bare, "ClusterRoleBinding") if one["metadata"]["name"] == "berth-guardrails-view")
    assert bound["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "ml-teams"}]


def test_guards_are_told_of_this_installation() -> None:
    """Its namespace in place of berth-system, and the names that were given."""
    objects = VARIANTS["guards"].objects()
    data = the(objects, "ConfigMap")["data"]
    assert (data["labels"], data["labelPrefixes"]) == ("team", "acme.example/")
    names = data["namespaces"].split(", ")
    assert {"gpu-operator", "platform", "vault"} <= set(names)
    assert "berth-system" not in names
    bindings = {one["metadata"]["name"]: one["spec"] for one in of_kind(objects, "ValidatingAdmissionPolicyBinding")}
    assert bindings["berth-guarded-namespaces"]["paramRef"]["namespace"] == the(objects, "ConfigMap")["metadata"]["namespace"] == "platform"
    own = bindings["berth-gpu-use-without-request"]
    assert own["validationActions"] == ["Deny", "Audit"]
    assert "platform" in own["matchResources"]["namespaceSelector"]["matchExpressions"][0]["values"]
    assert not of_kind(rendered(), "ValidatingAdmissionPolicy")


def test_the_backstop_holds_what_was_chosen_where_berth_is_called() -> None:
    """The numbers and taints of the values are in its first variables, and its namespaces are those of the registration."""
    objects = VARIANTS["guards"].objects()
    (policy,) = (one for one in of_kind(objects, "ValidatingAdmissionPolicy") if one["metadata"]["name"] == "berth-backstop")
    expressions = {variable["name"]: variable["expression"] for variable in policy["spec"]["variables"]}
    assert (expressions["gpusPerPod"], expressions["gracePeriodSeconds"]) == ("4", "600")
    taints = [{"key": "team", "value": "web"}, {"effect": "NoSchedule", "key": "acme.example/pool"}]
    assert yaml.safe_load(expressions["forbiddenTolerations"]) == taints
    binding = next(one for one in of_kind(objects, "ValidatingAdmissionPolicyBinding") if one["metadata"]["name"] == "berth-backstop")[
        "spec"
    ]
    assert binding["validationActions"] == ["Deny", "Audit"]
    selectors = [entry["namespaceSelector"] for one in objects for entry in one.get("webhooks", ())]
    assert all(binding["matchResources"]["namespaceSelector"] == selector for selector in selectors)
    assert selectors[0]["matchLabels"] == {"gpus": "yes"}
    assert {"platform", "gpu-operator"} <= set(selectors[0]["matchExpressions"][0]["values"])
