"""A way round a guardrail, and how it is gone: by a service account that holds nothing but the ClusterRole ``edit`` in one namespace.

A way is a record: what the attacker does, and its honest twin, which does the same within the guardrail. What they do is made of
attempts: functions of the tenant that end in an outcome, the first denial or what became of the last step.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.e2e.workloads import KINDS, workload
from tests.testcluster.controlplane.api import MERGE, Api, Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster

KEPT_OFF = "kept off"
"""What an outcome says of a pod for which kube-scheduler finds no node: stored, and nowhere outside the guardrail"""
GATE = {"name": "tests.berth.dev/gate"}
_OURS = re.compile(r'admission webhook "[a-z.-]+\.berth\.dev" denied the request: (.*)', re.DOTALL)

_number = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``passed``: everything that was tried is stored, and runs where it wanted to. ``message``: why not."""

    passed: bool
    message: str = ""
    stored: Raw = field(default_factory=dict)

    @property
    def denial(self) -> str:
        """The sentences of Berth; "" where somebody else denied, or nobody."""
        found = _OURS.search(self.message)
        return found[1] if found else ""

    @property
    def shown(self) -> str:
        """On a line."""
        return self.message or f"stored: {self.stored.get('metadata', {}).get('name')}"

    def held_by(self, codes: Iterable[str]) -> bool:
        """Whether Berth denied it with one of these codes (or beginnings of codes), or it was stopped in words that will do as well."""
        given = re.findall(r"BERTH-\d+", self.denial)
        by_api = any(wanted in self.message for wanted in codes if not wanted.startswith("BERTH-"))
        return not self.passed and (by_api or any(code.startswith(wanted) for code in given for wanted in codes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """One who edits one namespace. ``number``: of this way and side alone, for the names of what it makes."""

    api: Api
    cluster: Cluster
    namespace: str
    number: int = 0

    @property
    def name(self) -> str:
        return f"way-{self.number}"

    def on_its_own(self) -> Tenant:
        """The same tenant, for another way."""
        return Tenant(api=self.api, cluster=self.cluster, namespace=self.namespace, number=next(_number))


Attempt = Callable[[Tenant], Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """``guard``: the guardrail's name. ``codes``: any of them, or of their beginnings, is the right denial; () for the guardrail's own."""

    name: str
    guard: str
    attack: Attempt
    twin: Attempt
    codes: tuple[str, ...] = ()


def outcome(reply: Reply) -> Outcome:
    """Of one call."""
    return Outcome(passed=reply.ok, message="" if reply.ok else reply.message, stored=reply.body if reply.ok else {})


# --- attempts ------------------------------------------------------------------------------------------------------------


def creates(value: Raw) -> Attempt:
    """One object, as it stands; ``NAME`` in it is the way's own."""
    return lambda tenant: outcome(tenant.api.try_create(named(value, tenant), tenant.namespace))


def in_turn(*attempts: Attempt) -> Attempt:
    """One after the other, up to the first that is denied."""

    def tried(tenant: Tenant) -> Outcome:
        found = Outcome(passed=True)
        for attempt in attempts:
            found = attempt(tenant)
            if not found.passed:
                return found
        return found

    return tried


def changes(made: Raw, change: Any, *, content: str = MERGE, subresource: str = "") -> Attempt:
    """A pod that is created, and then patched. That it is created at all is the test's own affair."""

    def tried(tenant: Tenant) -> Outcome:
        first = outcome(tenant.api.try_create(named(made, tenant), tenant.namespace))
        if not first.passed:
            return Outcome(
                passed=False, message=f"the pod that was to be changed was denied: {first.message}".replace("berth.dev", "berth")
            )
        value = {"apiVersion": "v1", "kind": "Pod", **first.stored}
        path = tenant.api.path_of(value) + (f"/{subresource}" if subresource else "")
        return outcome(tenant.api.call("PATCH", path, named(change, tenant), content=content))

    return tried


def replaces(made: Raw, change: Callable[[Raw], None]) -> Attempt:
    """A pod that is created, changed in its stored form, and put back whole."""

    def tried(tenant: Tenant) -> Outcome:
        first = outcome(tenant.api.try_create(named(made, tenant), tenant.namespace))
        if not first.passed:
            return first
        return _put(tenant, first.stored["metadata"]["name"], change)

    return tried


def _put(tenant: Tenant, name: str, change: Callable[[Raw], None]) -> Outcome:
    """Until nobody has written in between: kube-scheduler and kwok write to pods too."""
    while True:
        value = tenant.api.get("v1", "Pod", name, tenant.namespace)
        assert value is not None
        change(value)
        reply = tenant.api.call("PUT", tenant.api.path_of({"apiVersion": "v1", "kind": "Pod", **value}), value)
        if reply.status != 409:
            return outcome(reply)


def deletes(api_version: str, kind: str, name: str) -> Attempt:
    """Gone when it returns."""

    def tried(tenant: Tenant) -> Outcome:
        value = named({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}, tenant)
        reply = tenant.api.call("DELETE", tenant.api.path_of(value, tenant.namespace), gracePeriodSeconds="0")
        return outcome(reply)

    return tried


def controlled(kind: str, made: Raw) -> Attempt:
    """A workload whose pod its real controller makes: denied as its events say, or the pod's own outcome."""

    def tried(tenant: Tenant) -> Outcome:
        value = workload(kind, made, tenant.name)
        first = tenant.api.try_create(value, tenant.namespace)
        if not first.ok:
            return outcome(first)
        try:
            return awaited(tenant, lambda: pod_made(tenant))
        finally:
            found = {"apiVersion": KINDS[kind], "kind": kind, "metadata": {"name": tenant.name}}
            tenant.api.call("DELETE", tenant.api.path_of(found, tenant.namespace), propagationPolicy="Background")

    return tried


def pod_made(tenant: Tenant) -> Outcome | None:
    """The first pod that the workload has, or its controller's word why it has none."""
    if pods := tenant.api.list("v1", "Pod", tenant.namespace, labelSelector=f"app={tenant.name}"):
        return Outcome(passed=True, stored=pods[0])
    for event in tenant.api.list("v1", "Event", tenant.namespace, fieldSelector="reason=FailedCreate"):
        name = event["involvedObject"].get("name", "")
        if name == tenant.name or name.startswith(f"{tenant.name}-"):
            return Outcome(passed=False, message=str(event.get("message")))
    return None


def lands(made: Raw) -> Attempt:
    """A pod that is stored has passed only where kube-scheduler binds it: all nodes that it selects are outside the guardrail."""

    def tried(tenant: Tenant) -> Outcome:
        first = creates(made)(tenant)
        return awaited(tenant, lambda: decided(tenant, first.stored["metadata"]["name"])) if first.passed else first

    return tried


def decided(tenant: Tenant, name: str) -> Outcome | None:
    found = tenant.api.get("v1", "Pod", name, tenant.namespace)
    assert found is not None
    if found["spec"].get("nodeName"):
        return Outcome(passed=True, message=f"it runs on {found['spec']['nodeName']}", stored=found)
    for one in found["status"].get("conditions", ()):
        if one.get("reason") == "Unschedulable":
            return Outcome(passed=False, message=f"{KEPT_OFF}: {one['message']}", stored=found)
    return None


def awaited(tenant: Tenant, found: Callable[[], Outcome | None]) -> Outcome:
    """A real controller's or kube-scheduler's decision. Raises ClusterFailed where none comes."""
    return tenant.cluster.wait_for(found, f"what becomes of {tenant.name} in {tenant.namespace}")


def waits(seconds: float) -> Attempt:
    """For what nobody tells: that a watch has brought what was written."""

    def tried(tenant: Tenant) -> Outcome:
        time.sleep(seconds)
        return Outcome(passed=True)

    return tried


def named(value: Any, tenant: Tenant) -> Any:
    """A copy in which ``NAME`` is the way's own name."""
    if isinstance(value, dict):
        return {named(key, tenant): named(one, tenant) for key, one in value.items()}
    if isinstance(value, list):
        return [named(one, tenant) for one in value]
    return value.replace("NAME", tenant.name) if isinstance(value, str) else deepcopy(value)
