"""When the rules of the registration take effect, and how they stay in effect, on a real API server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count as numbers
from typing import Any, TypeVar

import pytest

from cluster import webhook_rules
from cluster.certificates.registrations import GROUP, KINDS, Configuration
from cluster.client.access import Access
from cluster.client.api_client import Client
from cluster.webhook_rules import ANNOTATION, MOST_WRITES, WebhookRules
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.fixtures import control_plane

T = TypeVar("T")
KIND = "ValidatingWebhookConfiguration"
RULE: Raw = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["bindings"], "scope": "Namespaced"}
BUNDLE = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"
_number = numbers(1)


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with control_plane(request.session, Options(kubelets=False, controllers="namespace-controller")) as started:
        yield started


@dataclass(slots=True)
class Registration:
    """One configuration of two entries as a chart applies it, the Service that they name, and a replica."""

    plane: Cluster
    name: str = field(default_factory=lambda: f"rules-{next(_number)}")
    serving: bool = True
    bundle: bool = False
    unknown: frozenset[str] = frozenset()
    """Paths that the replica does not answer."""
    events: list[tuple[str, Raw]] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"{GROUP}/{KINDS[KIND]}/{self.name}"

    def apply(self, manager: str = "chart", *, rules: Any = None, entries: dict[str, Raw] | None = None) -> None:
        """Apply the configuration. ``rules``: of the annotation; ``entries``: more fields of each entry."""
        client = {"service": {"namespace": "default", "name": self.name, "path": "/x"}}
        each = {"clientConfig": client, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Ignore"}
        webhooks = [{"name": name, **each, **more} for name, more in (entries or {"a.berth.dev": {}, "b.berth.dev": {}}).items()]
        annotations = {} if rules is None else {ANNOTATION: rules if isinstance(rules, str) else json.dumps(rules)}
        value = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": KIND, "metadata": {"name": self.name, "annotations": annotations}}
        reply = self.plane.api.call(
            "PATCH", self.path, {**value, "webhooks": webhooks}, content="application/apply-patch+yaml", fieldManager=manager
        )
        assert reply.ok, reply.message

    def endpoints(self, *, ready: bool) -> None:
        """Write an EndpointSlice with the state of the only replica."""
        metadata = {"name": self.name, "namespace": "default", "labels": {"kubernetes.io/service-name": self.name}}
        endpoints = [{"addresses": ["198.18.0.99"], "conditions": {"ready": ready}}]
        value = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata, "addressType": "IPv4"}
        assert self.plane.api.apply({**value, "endpoints": endpoints}).ok

    def delete(self) -> None:
        """Delete the configuration as an uninstallation does."""
        self.plane.api.delete({"apiVersion": "admissionregistration.k8s.io/v1", "kind": KIND, "metadata": {"name": self.name}})

    def change(self, *operations: Raw) -> None:
        """Change the configuration as with kubectl edit."""
        reply = self.plane.api.call("PATCH", self.path, list(operations), content="application/json-patch+json")
        assert reply.ok, reply.message

    def with_rules(self) -> str:
        """Return the names of the entries that the API server calls, without the domain."""
        webhooks = self.plane.api.call("GET", self.path).body["webhooks"]
        return "".join(entry["name"][0] for entry in webhooks if entry.get("rules"))

    def answer(self, question: Callable[[WebhookRules], Any]) -> Any:
        """Return what a new replica answers."""

        async def ask() -> Any:
            client = await Client.connect(Access(str(self.plane.kubeconfig)))
            try:
                return await question(
                    WebhookRules(
                        client,
                        self.name,
                        "",
                        self.tell,
                        is_serving=lambda: self.serving,
                        needs_bundle=lambda: self.bundle,
                        answers=lambda path: path not in self.unknown,
                    )
                )
            finally:
                await client.close()

        return asyncio.run(ask())

    def looked(self) -> bool:
        """Look once; return whether rules are still due."""
        due: bool = self.answer(WebhookRules.looked)
        return due

    def tell(self, event: str, /, **fields: Any) -> None:
        self.events.append((event, fields))


@pytest.fixture
def registration(plane: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registration]:
    """Lend a registration that takes effect as soon as an endpoint is ready."""
    monkeypatch.setattr(webhook_rules, "REACHED", 0.0)
    created = Registration(plane)
    yield created
    created.delete()


BOTH = {"a.berth.dev": [RULE], "b.berth.dev": [RULE]}


def test_rules_wait_for_a_replica_that_can_be_reached(registration: Registration) -> None:
    """Not before it serves, nor before the Service has a ready endpoint."""
    everywhere = {key: value for key, value in RULE.items() if key != "scope"}
    registration.apply(rules={"a.berth.dev": [RULE], "b.berth.dev": [RULE, everywhere]})
    assert (registration.looked(), registration.with_rules()) == (True, "")
    registration.endpoints(ready=False)
    assert (registration.looked(), registration.with_rules()) == (True, "")
    registration.endpoints(ready=True)
    registration.serving = False
    assert (registration.looked(), registration.with_rules()) == (True, "")
    registration.serving = True
    assert (registration.looked(), registration.with_rules()) == (False, "ab")
    assert registration.looked() is False
    assert [event for event, _ in registration.events] == ["registration_in_effect"]


def test_an_endpoint_has_been_ready_for_a_while(registration: Registration, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only then has each kube-proxy learned of it; what was in effect once is put back without that wait."""
    monkeypatch.setattr(webhook_rules, "REACHED", 3600.0)
    registration.apply(rules=BOTH)
    registration.endpoints(ready=True)
    assert (registration.looked(), registration.with_rules()) == (True, "")
    registration.apply("berth-registration", rules=BOTH, entries={name: {"rules": rules} for name, rules in BOTH.items()})

    async def twice(rules: WebhookRules) -> bool:
        assert await rules.look() is False
        operation = {"op": "remove", "path": "/webhooks/0/rules"}
        await asyncio.to_thread(registration.change, operation)
        return await rules.look()

    assert registration.answer(twice) is False
    assert registration.with_rules() == "ab"


def test_an_entry_waits_for_its_bundle(registration: Registration) -> None:
    """Callers could not verify the replica by it; the others take effect, and stay in effect where a bundle is lost."""
    registration.bundle = True
    registration.endpoints(ready=True)
    registration.apply(rules=BOTH)
    assert (registration.looked(), registration.with_rules()) == (True, "")
    registration.change({"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": BUNDLE})
    assert (registration.looked(), registration.with_rules()) == (True, "a")
    registration.change(
        {"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": BUNDLE},
        {"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"},
    )
    assert (registration.looked(), registration.with_rules()) == (True, "ab")


def test_rules_that_are_no_longer_shipped_go_out_of_effect(registration: Registration) -> None:
    """Unless somebody else renders them: the entry is theirs then."""
    registration.endpoints(ready=True)
    registration.apply(rules=BOTH)
    assert (registration.looked(), registration.with_rules()) == (False, "ab")
    registration.apply(rules={"a.berth.dev": [RULE]})
    assert (registration.looked(), registration.with_rules()) == (False, "a")
    registration.apply(rules=BOTH, entries={name: {"rules": rules} for name, rules in BOTH.items()})
    assert (registration.looked(), registration.with_rules()) == (False, "ab")
    registration.apply(rules={}, entries={name: {"rules": rules} for name, rules in BOTH.items()})
    assert (registration.looked(), registration.with_rules()) == (False, "ab")
    assert registration.looked() is False


def test_rules_that_a_chart_gives_up_stay_in_effect(registration: Registration) -> None:
    """A replica owns them beside an earlier chart, which then leaves them out: no version of the object is without them."""
    registration.endpoints(ready=True)
    registration.apply(rules=BOTH, entries={name: {"rules": rules} for name, rules in BOTH.items()})
    assert registration.looked() is False
    registration.apply(rules=BOTH)
    assert registration.with_rules() == "ab"


def test_a_contest_does_not_load_the_api_server(registration: Registration) -> None:
    """Another program that takes the rules away again and again is logged once, after a bounded number of writes."""
    registration.endpoints(ready=True)
    registration.apply(rules=BOTH)

    async def contested(rules: WebhookRules) -> None:
        for _ in range(MOST_WRITES + 5):
            await rules.looked()
            await asyncio.to_thread(registration.change, {"op": "replace", "path": "/webhooks/0/rules", "value": []})

    registration.answer(contested)
    assert [event for event, _ in registration.events] == [*["registration_in_effect"] * MOST_WRITES, "registration_failed"]
    assert "another program" in registration.events[-1][1]["error"]


@pytest.mark.parametrize("change", ["changed", "deleted"])
def test_a_configuration_that_changes_meanwhile_is_read_again(
    registration: Registration, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Between reading and writing: rules that are no longer shipped are not written, nor is what an uninstallation has just taken."""
    registration.endpoints(ready=True)
    registration.apply(rules=BOTH)
    reachable, changes = WebhookRules._is_reachable, [change]

    async def meanwhile(rules: WebhookRules, configuration: Configuration) -> bool:
        if changes:
            await asyncio.to_thread(partial(registration.apply, rules={}) if changes.pop() == "changed" else registration.delete)
        return await reachable(rules, configuration)

    monkeypatch.setattr(WebhookRules, "_is_reachable", meanwhile)
    assert registration.looked() is True
    assert registration.events == []
    assert registration.looked() is False
    assert registration.plane.api.call("GET", registration.path).status == (200 if change == "changed" else 404)


def test_what_berth_webhooks_prints_is_left_alone(registration: Registration) -> None:
    """It has no annotation: who applies it decides when it takes effect."""
    registration.endpoints(ready=True)
    registration.apply(entries={"a.berth.dev": {"rules": [RULE]}, "b.berth.dev": {}})
    assert (registration.looked(), registration.with_rules()) == (False, "a")


@pytest.mark.parametrize("annotation", ["{", "[]", '{"a.berth.dev": 1}', '{"a.berth.dev": [1]}'])
def test_a_damaged_annotation_is_logged(registration: Registration, annotation: str) -> None:
    """What was in effect stays."""
    registration.endpoints(ready=True)
    registration.apply(rules=BOTH)
    assert registration.looked() is False
    registration.apply(rules=annotation)
    assert (registration.looked(), registration.with_rules()) == (True, "ab")
    assert registration.events[-1][0] == "registration_failed"
    assert f"{KIND}/{registration.name}: the annotation {ANNOTATION}" in registration.events[-1][1]["error"]


def test_rules_of_a_newer_release_wait_for_its_replicas(registration: Registration) -> None:
    """An entry whose path this replica does not answer keeps the rules that it has; nothing is written in vain."""
    registration.endpoints(ready=True)
    registration.apply(rules={"a.berth.dev": [RULE]})
    registration.unknown = frozenset({"/x"})
    assert (registration.looked(), registration.with_rules()) == (True, "")
    registration.unknown = frozenset()
    assert (registration.looked(), registration.with_rules()) == (False, "a")
    written = [event for event, _ in registration.events if event == "registration_in_effect"]
    registration.apply(rules=BOTH)
    registration.unknown = frozenset({"/x"})
    assert (registration.looked(), registration.with_rules()) == (True, "a")
    assert [event for event, _ in registration.events if event == "registration_in_effect"] == written
