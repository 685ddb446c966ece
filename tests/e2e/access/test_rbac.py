"""deploy/rbac.yaml on a real API server: what Berth, a team, its viewers and everyone else may do, and what they may not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from cli import crds
from policies.objects import definition
from tests.testcluster.controlplane.api import MERGE, Api, Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.starting import apply_crds
from tests.testcluster.fixtures import NewNamespace

RBAC = Path(__file__).parents[3] / "deploy" / "rbac.yaml"
VERSION = "berth.dev/v1alpha1"
ROLES = "rbac.authorization.k8s.io/v1"
EVERYONE = "system:authenticated"
BERTH = "system:serviceaccount:berth-system:berth"
OURS = ("clustergpupolicies.berth.dev", "gpupolicies.berth.dev", "gpunodetemplates.berth.dev")
DRA = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
STACKS = ("clusterpolicies.nvidia.com", "gpuclusters.nvidia.com")
KUEUES = tuple(f"{plural}.kueue.x-k8s.io" for plural in ("localqueues", "clusterqueues", "resourceflavors"))
READ = (*OURS, "namespaces", "nodes", "nodepools.karpenter.sh", *(f"{plural}.resource.k8s.io" for plural in DRA), *STACKS, *KUEUES)
WATCHED = tuple(f"{verb} {kind}" for kind in READ for verb in ("get", "list", "watch"))
STATUS = tuple(f"{verb} {kind}/status" for kind in OURS for verb in ("patch", "update"))
CRDS = tuple(f"get customresourcedefinitions.apiextensions.k8s.io {kind}" for kind in OURS)
CONFIGURATIONS = tuple(f"{kind}webhookconfigurations.admissionregistration.k8s.io" for kind in ("mutating", "validating"))
OWN_CONFIGURATIONS = tuple(f"{verb} {kind} zz-berth" for kind in CONFIGURATIONS for verb in ("get", "watch", "patch"))
OWN_SECRET = ("create secrets", *(f"{verb} secrets berth-certificates" for verb in ("get", "watch", "update")))
REACHABLE = ("list endpointslices.discovery.k8s.io",)
LEASE = ("create leases.coordination.k8s.io", "get leases.coordination.k8s.io berth", "update leases.coordination.k8s.io berth")
EVENTS = ("create events.events.k8s.io", "patch events.events.k8s.io")
CHANGES = ("create", "update", "patch", "delete", "deletecollection")
FORBIDDEN = (
    *(f"{verb} {kind}" for kind in (*OURS, "nodes", "namespaces", "nodepools.karpenter.sh", *STACKS, *KUEUES) for verb in CHANGES),
    *(f"{verb} {kind}" for kind in ("pods", "configmaps", "serviceaccounts") for verb in ("get", "list", "create", "update")),
    *(f"{verb} secrets" for verb in ("get", "list", "watch", "update", "patch", "delete")),
    *(f"{verb} secrets another" for verb in ("get", "watch", "update", "patch", "delete")),
    *(f"{verb} secrets berth-certificates" for verb in ("patch", "delete")),
    *(f"{verb} leases.coordination.k8s.io {name}" for verb in ("get", "update", "delete") for name in ("", "another")),
    "list customresourcedefinitions.apiextensions.k8s.io",
    "get customresourcedefinitions.apiextensions.k8s.io stages.kwok.x-k8s.io",
    "update customresourcedefinitions.apiextensions.k8s.io gpupolicies.berth.dev",
    *(f"{what} {kind}" for what in ("create", "list", "patch") for kind in CONFIGURATIONS),
    *(f"get {kind} another" for kind in CONFIGURATIONS),
    *(f"{verb} {kind} another" for verb in ("watch", "patch") for kind in CONFIGURATIONS),
    *(f"{verb} {kind} zz-berth" for verb in ("update", "delete") for kind in CONFIGURATIONS),
    "create pods/exec",
    "bind clusterroles.rbac.authorization.k8s.io",
    "impersonate users",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """A namespace, and as whom one acts in it."""

    namespace: str
    editor: Api
    viewer: Api


@pytest.fixture(scope="module", autouse=True)
def granted(cluster: Cluster) -> Iterator[None]:
    """The file as it is shipped, over the CRDs, in force."""
    apply_crds(cluster.api, sorted(crds.FOLDER.glob("*.yaml")), cluster.processes)
    objects = list(yaml.safe_load_all(RBAC.read_text()))
    for value in objects:
        reply = cluster.api.apply(value)
        assert reply.ok, reply.message
    cluster.wait_for(lambda: all(aggregated(cluster, role) for role in ("edit", "admin", "view")), "the roles to be aggregated")
    cluster.wait_for(lambda: may(cluster.api.acting_as(BERTH, EVERYONE), LEASE[0], "berth-system"), "the bindings to be in force")
    yield
    for value in objects:
        if value["kind"] != "Namespace":  # it would be on its way out while another test makes use of it
            cluster.api.delete(value)


def aggregated(cluster: Cluster, role: str) -> bool:
    found = cluster.api.get(ROLES, "ClusterRole", role)
    return found is not None and any("berth.dev" in rule.get("apiGroups", ()) for rule in found["rules"])


@pytest.fixture
def teams(cluster: Cluster, new_namespace: NewNamespace) -> tuple[Team, Team]:
    """Two teams. In each, one may edit and one may view, by the ClusterRoles that Kubernetes has."""

    def team(number: int) -> Team:
        namespace = new_namespace()
        users = {role: f"{role}or-{namespace}" for role in ("edit", "view")}
        for role, user in users.items():
            cluster.api.create(binding("RoleBinding", role, role, {"kind": "User", "name": user}, namespace))
        editor, viewer = (cluster.api.acting_as(users[role], EVERYONE) for role in ("edit", "view"))
        cluster.wait_for(lambda: may(editor, "create gpupolicies.berth.dev", namespace), "the editor's binding to be in force")
        cluster.wait_for(lambda: may(viewer, "list gpupolicies.berth.dev", namespace), "the viewer's binding to be in force")
        return Team(namespace=namespace, editor=editor, viewer=viewer)

    return team(1), team(2)


def binding(kind: str, name: str, role: str, subject: Raw, namespace: str | None = None) -> Raw:
    where = {"namespace": namespace} if namespace else {}
    subject = {"apiGroup": "rbac.authorization.k8s.io", **subject}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    return {"apiVersion": ROLES, "kind": kind, "metadata": {"name": name, **where}, "roleRef": ref, "subjects": [subject]}


def may(api: Api, what: str, namespace: str = "") -> bool:
    """``VERB RESOURCE[/SUBRESOURCE][.GROUP] [NAME]``, by the API server's own word."""
    verb, resource, name = [*what.split(), ""][:3]
    whole, _, subresource = resource.partition("/")
    plural, _, group = whole.partition(".")
    asked = {"verb": verb, "group": group, "resource": plural, "subresource": subresource, "name": name, "namespace": namespace}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": asked}}
    reply = api.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    assert reply.status == 201, reply.message
    return bool(reply.body["status"]["allowed"])


def policy(namespace: str, name: str = "own") -> Raw:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": VERSION, "kind": "GPUPolicy", "metadata": metadata, "spec": {"require": {"capacity": ["on-demand"]}}}


def guardrail(name: str) -> Raw:
    return {"apiVersion": VERSION, "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": {"require": {"capacity": ["spot"]}}}


def status(api: Api, value: Raw) -> Reply:
    return api.call("PATCH", api.path_of(value) + "/status", {"status": {"what": "anything"}}, content=MERGE)


@pytest.mark.parametrize("what", [*WATCHED, *STATUS, *CRDS, *EVENTS, *OWN_CONFIGURATIONS, "list resourcequotas"])
def test_berth_may(cluster: Cluster, what: str) -> None:
    """Read what its decisions rest on in every namespace, write statuses and events."""
    assert may(cluster.api.acting_as(BERTH, EVERYONE), what)


@pytest.mark.parametrize("what", [*LEASE, *OWN_SECRET, *REACHABLE])
def test_berth_may_hold_its_lease_and_its_certificates(cluster: Cluster, what: str) -> None:
    """And see whether it can be reached: in its own namespace and nowhere else."""
    berth = cluster.api.acting_as(BERTH, EVERYONE)
    assert may(berth, what, "berth-system")
    assert not may(berth, what, "kube-system")
    assert not may(berth, what)


@pytest.mark.parametrize("what", FORBIDDEN)
def test_berth_may_not(cluster: Cluster, what: str) -> None:
    """Change a policy or anything that is not its own, read what it needs not: also in its own namespace."""
    berth = cluster.api.acting_as(BERTH, EVERYONE)
    assert not may(berth, what)
    assert not may(berth, what, "berth-system")


def test_berth_writes_a_status_and_nothing_else(cluster: Cluster, new_namespace: NewNamespace) -> None:
    """Really written, by its own account: the status is taken, the spec of the same call is not."""
    berth = cluster.api.acting_as(BERTH, EVERYONE)
    value = cluster.api.create(policy(new_namespace()))
    change = {"status": {"what": "require capacity"}, "spec": {"mode": "Enforce"}, "metadata": {"labels": {"a": "b"}}}
    written = berth.patch(value, change, subresource="status")
    assert (written["status"]["what"], written["spec"]["mode"]) == ("require capacity", "Audit")
    assert berth.call("PATCH", berth.path_of(value), change, content=MERGE).status == 403
    assert len(berth.list(VERSION, "GPUPolicy")) >= 1


def test_a_team_writes_its_own_policies(cluster: Cluster, teams: tuple[Team, Team]) -> None:
    """Who may edit in a namespace creates, changes and deletes GPUPolicies there, and neither in another nor for the cluster."""
    own, other = teams
    value = own.editor.create(policy(own.namespace))
    assert own.editor.patch(value, {"spec": {"mode": "Enforce"}})["spec"]["mode"] == "Enforce"
    assert own.editor.try_create(policy(other.namespace)).status == 403
    cluster.api.create(policy(other.namespace))
    assert own.editor.call("DELETE", own.editor.path_of(policy(other.namespace))).status == 403
    assert own.editor.call("GET", own.editor.path_of(policy(other.namespace))).status == 403
    assert own.editor.try_create(guardrail("mine")).status == 403
    own.editor.delete(value)
    assert own.editor.list(VERSION, "GPUPolicy", own.namespace) == []


def test_a_status_is_berths_alone(cluster: Cluster, teams: tuple[Team, Team]) -> None:
    """Not even who wrote the policy says of it that it was accepted; what a creation says of it is dropped."""
    team = teams[0]
    value = team.editor.create(policy(team.namespace) | {"status": {"what": "forged"}})
    assert value["status"] == {"observedGeneration": -1}
    for api in (team.editor, team.viewer):
        assert status(api, value).status == 403


def test_a_viewer_reads(cluster: Cluster, teams: tuple[Team, Team]) -> None:
    """The policies of the namespace, and changes none."""
    own, other = teams
    value = cluster.api.create(policy(own.namespace))
    assert [one["metadata"]["name"] for one in own.viewer.list(VERSION, "GPUPolicy", own.namespace)] == ["own"]
    assert own.viewer.try_create(policy(own.namespace, "second")).status == 403
    assert own.viewer.call("PATCH", own.viewer.path_of(value), {"spec": {"mode": "Enforce"}}, content=MERGE).status == 403
    assert other.viewer.call("GET", own.viewer.path_of(value)).status == 403


def test_guardrails_are_read_by_whom_one_chooses(cluster: Cluster, teams: tuple[Team, Team]) -> None:
    """By no team until it is bound as the file says; then read, never written, by none without that group."""
    guardrails = [f"{verb} {kind}" for kind in (OURS[0], OURS[2]) for verb in ("get", "list", "watch")]
    reader = cluster.api.acting_as("somebody", "ml-teams")
    apis = [reader, teams[0].editor, teams[0].viewer]
    assert [what for api in apis for what in guardrails if may(api, what)] == []
    bound = cluster.api.create(
        binding("ClusterRoleBinding", "tests-guardrails", "berth-guardrails-view", {"kind": "Group", "name": "ml-teams"})
    )
    try:
        cluster.wait_for(lambda: all(may(reader, what) for what in guardrails), "the binding to be in force")
        assert [what for api in apis[1:] for what in guardrails if may(api, what)] == []
        assert [verb for verb in CHANGES if may(reader, f"{verb} {OURS[0]}")] == []
        assert not may(reader, "list gpupolicies.berth.dev")
    finally:
        cluster.api.delete(bound)


def test_who_views_the_whole_cluster_reads_guardrails(cluster: Cluster) -> None:
    """The role is part of view, which says something about what belongs to no namespace only where it is bound to the cluster."""
    bound = cluster.api.create(binding("ClusterRoleBinding", "tests-view", "view", {"kind": "User", "name": "auditor"}))
    auditor = cluster.api.acting_as("auditor", EVERYONE)
    try:
        cluster.wait_for(lambda: may(auditor, f"list {OURS[0]}"), "the binding to be in force")
        assert not may(auditor, f"update {OURS[0]}")
    finally:
        cluster.api.delete(bound)


@pytest.mark.parametrize("kind", definition.KINDS)
def test_a_stranger_sees_nothing(cluster: Cluster, kind: str) -> None:
    """Who only authenticates reads no object of ours, anywhere."""
    stranger = cluster.api.acting_as("stranger", EVERYONE)
    assert stranger.call("GET", cluster.api.kind(VERSION, kind).path(None)).status == 403


def test_the_crds_named_are_those_shipped() -> None:
    """Berth may get its three definitions by name: the names are those of deploy/crds/."""
    names = {yaml.safe_load(text)["metadata"]["name"] for text in crds.files().values()}
    assert names == set(OURS)
