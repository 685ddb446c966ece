"""deploy/guarded-names.yaml on a real API server: what guardrails rest on stays in the hands of those who have the verb for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cli import crds
from tests.testcluster.controlplane.api import MERGE, Api, Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.starting import apply_crds

FILE = Path(__file__).parents[3] / "deploy" / "guarded-names.yaml"
RBAC = "rbac.authorization.k8s.io"
EVERYONE = "system:authenticated"
BROAD = ["get", "list", "create", "update", "patch", "delete"]
UNUSED = "gke-managed-system"
"""a guarded name that no other test takes on this cluster"""
GUARDRAIL: Raw = {
    "apiVersion": "berth.dev/v1alpha1",
    "kind": "ClusterGPUPolicy",
    "metadata": {"name": "guarded"},
    "spec": {"require": {"capacity": ["spot"]}},
}


@pytest.fixture(scope="module")
def users(cluster: Cluster) -> Iterator[tuple[Api, Api]]:
    """Somebody who may write every object, and somebody who has the verb beside."""
    apply_crds(cluster.api, sorted(crds.FOLDER.glob("*.yaml")), cluster.processes)
    broad = {"apiGroups": ["*"], "resources": ["*"], "verbs": BROAD}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "writes-everything"}, "rules": [broad]}
    bindings = [
        bound("writes-everything", "writes-everything", "self-service", "platform"), bound("may-guard", "berth-guard", "platform"),
    ]  # fmt: skip
    namespace: Raw = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "berth-system"}}
    made = [namespace, role, *bindings, *yaml.safe_load_all(FILE.read_text())]
    for value in made:
        reply = cluster.api.apply(value)
        assert (reply.ok, reply.warnings) == (True, ()), reply.message
    broadly, platform = (cluster.api.acting_as(user, EVERYONE) for user in ("self-service", "platform"))
    cluster.wait_for(lambda: not create(broadly, "waits", {"team": "x"}).ok, "labels to be guarded")
    cluster.wait_for(lambda: broadly.try_create(GUARDRAIL, dry_run=True).status == 403, "guardrails to be guarded")
    cluster.wait_for(lambda: create(platform, "waits", {"team": "x"}).ok, "the bindings to be in force")
    yield broadly, platform
    for value in reversed(made[1:]):
        cluster.api.delete(value)
        if value["kind"] == "ValidatingAdmissionPolicy" and value["metadata"]["name"] == "berth-guarded-namespaces":
            cluster.wait_for(lambda: create(broadly, "waits", {"team": "x"}).ok, "the policies to be gone")


def bound(name: str, role: str, *users: str) -> Raw:
    subjects = [{"apiGroup": RBAC, "kind": "User", "name": user} for user in users]
    ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}, "roleRef": ref, "subjects": subjects}


def create(api: Api, name: str, labels: dict[str, str] | None = None) -> Reply:
    """On a dry run."""
    return api.try_create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}}, dry_run=True)


@pytest.fixture(scope="module")
def team(cluster: Cluster) -> Iterator[str]:
    """A namespace that a guardrail may choose."""
    cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "guarded-team", "labels": {"team": "a", "x": "y"}}})
    yield "guarded-team"
    cluster.api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "guarded-team"}})


def relabelled(api: Api, name: str, labels: Raw, subresource: str = "") -> Reply:
    path = f"/api/v1/namespaces/{name}{subresource}"
    return api.call("PATCH", path, {"metadata": {"labels": labels}}, content=MERGE, dryRun="All")


@pytest.mark.parametrize(
    "labels", [{"team": "b"}, {"team": None}, {"gpu-tier": "gold"}, {"berth.dev/free": "true"}], ids=["another", "none", "new", "a prefix"]
)
@pytest.mark.parametrize("subresource", ["", "/status"], ids=["namespace", "status"])
def test_guarded_labels_stay(users: tuple[Api, Api], team: str, labels: Raw, subresource: str) -> None:
    """Changed, taken off, added: denied, with what to do, to who writes everything else; done by who has the verb."""
    broadly, platform = users
    reply = relabelled(broadly, team, labels, subresource)
    assert (reply.status, f"by the label {next(iter(labels))}: ask the platform team to change it" in reply.message) == (403, True)
    assert relabelled(platform, team, labels, subresource).ok


def test_other_labels_are_free(users: tuple[Api, Api], team: str) -> None:
    """Added, changed and taken off; and a namespace without guarded ones is created and deleted as ever."""
    broadly, _ = users
    assert [relabelled(broadly, team, labels).ok for labels in ({"x": "z"}, {"x": None}, {"teams": "b"}, {"berth.device": "1"})] == [
        True
    ] * 4
    assert relabelled(broadly, team, {"team": "a"}).ok, "no change is none"
    assert create(broadly, "anything", {"x": "y"}).ok
    assert broadly.call("DELETE", f"/api/v1/namespaces/{team}", dryRun="All").ok


def test_names_of_namespaces_that_are_not_judged_are_kept(users: tuple[Api, Api]) -> None:
    """Nobody else creates one."""
    broadly, platform = users
    reply = create(broadly, UNUSED)
    assert (reply.status, "ask the platform team to create it" in reply.message) == (403, True)
    assert create(platform, UNUSED).ok
    assert create(broadly, f"{UNUSED}s").ok


def test_guardrails_are_written_by_those_who_may(users: tuple[Api, Api], cluster: Cluster) -> None:
    """Created, changed and deleted, and so are their definitions; a team's own policies and other definitions are not touched."""
    broadly, platform = users
    assert broadly.try_create(GUARDRAIL, dry_run=True).status == 403
    assert platform.try_create(GUARDRAIL, dry_run=True).ok
    cluster.api.create(GUARDRAIL)
    path = cluster.api.path_of(GUARDRAIL)
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clustergpupolicies.berth.dev"
    for api, wanted in ((broadly, 403), (platform, 200)):
        assert api.call("PATCH", path, {"spec": {"mode": "Audit"}}, content=MERGE, dryRun="All").status == wanted
        assert api.call("DELETE", path, dryRun="All").status == wanted
        assert api.call("PATCH", definition, {"metadata": {"labels": {"a": "b"}}}, content=MERGE, dryRun="All").status == wanted
        assert api.call("DELETE", definition, dryRun="All").status == wanted
    own = {**GUARDRAIL, "kind": "GPUPolicy", "metadata": {"name": "own", "namespace": "default"}}
    assert broadly.try_create(own, dry_run=True).ok
    other = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/stages.kwok.x-k8s.io"
    assert broadly.call("PATCH", other, {"metadata": {"labels": {"a": "b"}}}, content=MERGE, dryRun="All").status in (200, 404)
    cluster.api.delete(GUARDRAIL)
