"""Steps of ways that change what is there already: patches of any kind, a pod released from its gate, and where it runs then.

They go on from an object that is called NAME, so an attempt made of them begins with one that creates it (``own``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.e2e.bypasses.guardrails import marked
from tests.e2e.bypasses.way import KEPT_OFF, Attempt, Outcome, Tenant, awaited, creates, decided, named, outcome, pod_made
from tests.testcluster.controlplane.api import JSON_PATCH, MERGE, Raw

APPLY = "application/apply-patch+yaml"
"""Content type of a server-side apply"""
MARK: Raw = {"metadata": {"labels": {"tests.berth.dev/marked": "so"}}}
"""A patch that is nobody's business."""


def own(made: Raw) -> Raw:
    """Return the object with the way's own name in place of a generated one."""
    metadata = {key: value for key, value in made["metadata"].items() if key != "generateName"}
    return {**made, "metadata": {**metadata, "name": "NAME"}}


def patches(kind: str, change: Any, *, api_version: str = "v1", name: str = "NAME", content: str = MERGE, **query: str) -> Attempt:
    """Return the attempt to patch the object of this kind and name."""

    def tried(tenant: Tenant) -> Outcome:
        value = named({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}, tenant)
        path = tenant.api.path_of(value, tenant.namespace)
        return outcome(tenant.api.call("PATCH", path, named(change, tenant), content=content, **query))

    return tried


def annotates(**annotations: str | None) -> Attempt:
    """Return the attempt to write these annotations on the pod NAME; None removes one."""
    return patches("Pod", {"metadata": {"annotations": annotations}})


def tolerates(toleration: Raw, **metadata: Raw) -> Attempt:
    """Return the attempt to add a toleration to the pod NAME, and to change its metadata in the same patch."""

    def tried(tenant: Tenant) -> Outcome:
        found = tenant.api.get("v1", "Pod", tenant.name, tenant.namespace)
        assert found is not None
        change = {"metadata": metadata, "spec": {"tolerations": [*found["spec"].get("tolerations", ()), toleration]}}
        return patches("Pod", change)(tenant)

    return tried


def takes_owner(kind: str, owner: str) -> Attempt:
    """Return the attempt to make the ReplicaSet or Deployment NAME the owner of the object of this kind that has the same name."""

    def tried(tenant: Tenant) -> Outcome:
        found = tenant.api.get("apps/v1", owner, tenant.name, tenant.namespace)
        assert found is not None
        reference = {"apiVersion": "apps/v1", "kind": owner, "name": tenant.name, "uid": found["metadata"]["uid"], "controller": True}
        change = {"metadata": {"ownerReferences": [reference]}}
        return patches(kind, change, api_version="v1" if kind == "Pod" else "apps/v1")(tenant)

    return tried


def ungates(name: str = "NAME") -> Attempt:
    """Return the attempt to release the pod from all of its gates."""
    return patches("Pod", [{"op": "remove", "path": "/spec/schedulingGates"}], content=JSON_PATCH, name=name)


def placed(tenant: Tenant) -> Outcome:
    """Return where the pod NAME runs, or why it has no node."""
    return awaited(tenant, lambda: decided(tenant, tenant.name))


def makes_pod(tenant: Tenant) -> Outcome:
    """Return the first pod of the workload NAME, or why its controller made none."""
    return awaited(tenant, lambda: pod_made(tenant))


def runs_ungated(tenant: Tenant) -> Outcome:
    """Return where the first pod of the workload NAME runs once its author has lifted its gate, or why its controller made none."""

    found = makes_pod(tenant)
    if not found.passed:
        return found
    name = found.stored["metadata"]["name"]
    lifted = ungates(name)(tenant)
    return awaited(tenant, lambda: decided(tenant, name)) if lifted.passed else lifted


def kept(attempt: Attempt, wrong: Callable[[Raw], bool]) -> Attempt:
    """Return the attempt, which has passed only if what it stores is wrong: Berth may have corrected it."""

    def tried(tenant: Tenant) -> Outcome:
        found = attempt(tenant)
        if found.passed and not wrong(found.stored):
            return replace(found, passed=False, message=f"{KEPT_OFF}: it is stored within the guardrail")
        return found

    return tried


def with_own_default(default: Raw, made: Raw, attempt: Callable[[Raw], Attempt] = creates) -> Attempt:
    """Return the attempt to create the pod under a default of the namespace's own, for this pod alone. Nobody tells when Berth's watch has
    brought the policy."""
    label = {"tests.berth.dev/way": "NAME"}
    spec = {"mode": "Enforce", "match": {"podSelector": {"matchLabels": label}}, "default": default}
    policy = {"apiVersion": "berth.dev/v1alpha1", "kind": "GPUPolicy", "metadata": {"name": "NAME"}, "spec": spec}

    def tried(tenant: Tenant) -> Outcome:
        value = named(policy, tenant)
        first = outcome(tenant.api.try_create(value, tenant.namespace))
        if not first.passed:
            return first
        time.sleep(2)
        try:
            return attempt(marked(made, labels=label))(tenant)
        finally:
            tenant.api.call("DELETE", tenant.api.path_of(value, tenant.namespace))

    return tried
