"""Build the two webhook configurations: when the API server calls Berth, and what it does if Berth does not
answer.

They combine ``entries``, built from a catalog, with Berth's address and the certificates by which the API server
verifies it.

No call has side effects, so dry runs are checked too. The rules match all versions of a kind (matchPolicy
Equivalent). ``resize`` is the only subresource that is matched: status, binding and eviction never wait for Berth.
The conditions match only objects that Berth may deny, edit or warn about. All others, including Berth's own
pods, are created while Berth is down.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from catalog import Catalog
from policies.policy import REGISTRATION
from registration.entries import DEFAULT, Entries, InstallChoices, WebhookEntry, entries, labelling

Manifest = dict[str, Any]
API_VERSION = "admissionregistration.k8s.io/v1"
NAME = REGISTRATION
"""The name of both configurations.

The API server calls mutating webhooks in the order of their configurations' names: the last one gets the pod
as queues and sidecar injectors have changed it. reinvocationPolicy IfNeeded calls it again if one changes the
pod afterwards.
"""
DOMAIN = "berth.dev"
"""The end of each webhook's name, which must be qualified; it precedes every denial and is the prefix of
audit annotations."""
NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label that every namespace has and no user can change."""
FIRST_NAME = "berth-queues"
"""The name of the configuration with the entries that label workloads, which is called before Kueue's own,
kueue-mutating-webhook-configuration: Kueue holds back what has a queue by then, and is not called again."""
MADE_OF, CLAIMS_CHOSEN, NAMES_CHOSEN = f"{DOMAIN}/made-of", f"{DOMAIN}/claims", f"{DOMAIN}/resource-names"
QUEUES_CHOSEN = f"{DOMAIN}/queues"
"""Annotations of both configurations: a digest of what their conditions are made from, and the choices, so
that a server can tell whether they match its own catalog (``registered``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Berth as a Service of the cluster."""

    namespace: str = "berth-system"
    name: str = "berth"
    port: int = 443

    def at(self, path: str) -> Manifest:
        """Return the clientConfig of one path."""
        return {"service": {"namespace": self.namespace, "name": self.name, "path": path, "port": self.port}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    """Berth outside the cluster, where the API server can reach it."""

    base: str
    """The address, ``https://HOST:PORT``."""

    def at(self, path: str) -> Manifest:
        """Return the clientConfig of one path."""
        return {"url": self.base + path}


def manifests(
    catalog: Catalog, target: Service | Url, ca: bytes | None = None, chosen: InstallChoices = DEFAULT
) -> tuple[Manifest, Manifest]:
    """Return the MutatingWebhookConfiguration and the ValidatingWebhookConfiguration.

    ``ca``: certificates in PEM by which the API server verifies Berth; None if caBundle is filled in later,
    or if the trust store of the API server's machine has them. Raises PatternError.
    """
    mutating, validating = entries(catalog, chosen)
    metadata, shared = _metadata(NAME, (mutating, validating), chosen), _shared(target, ca, chosen)
    return (
        _configuration(
            "MutatingWebhookConfiguration", metadata, [{**shared.webhook(e), "reinvocationPolicy": "IfNeeded"} for e in mutating]
        ),
        _configuration("ValidatingWebhookConfiguration", metadata, [shared.webhook(e) for e in validating]),
    )


def first(catalog: Catalog, target: Service | Url, ca: bytes | None = None, chosen: InstallChoices = DEFAULT) -> Manifest | None:
    """Return the MutatingWebhookConfiguration that is called first, as ``manifests`` makes the others; None if the
    operator does not ask for it. Raises PatternError."""
    if not chosen.queues:
        return None
    metadata, shared = _metadata(FIRST_NAME, entries(catalog, chosen), chosen), _shared(target, ca, chosen)
    return _configuration("MutatingWebhookConfiguration", metadata, [shared.webhook(entry) for entry in labelling(catalog, chosen)])


def _metadata(name: str, made: Entries, chosen: InstallChoices) -> Manifest:
    return {"name": name, "labels": {"app.kubernetes.io/name": "berth"}, "annotations": _annotations(made, chosen)}


def _shared(target: Service | Url, ca: bytes | None, chosen: InstallChoices) -> _Shared:
    return _Shared({} if ca is None else {"caBundle": base64.b64encode(ca).decode("ascii")}, target, _outside(target, chosen))


def made_of(catalog: Catalog, chosen: InstallChoices) -> str:
    """Return a digest of the rules and conditions under which the API server calls Berth, for this catalog
    and these choices.

    Raises PatternError.
    """
    return _digest(entries(catalog, chosen))


def _digest(entries: Entries) -> str:
    content = [[entry.name, list(entry.rules), dict(entry.conditions)] for both in entries for entry in both]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _annotations(entries: Entries, chosen: InstallChoices) -> dict[str, str]:
    names = {NAMES_CHOSEN: ",".join(chosen.names)} if chosen.names else {}
    queues = {QUEUES_CHOSEN: "true"} if chosen.queues else {}
    return {MADE_OF: _digest(entries), CLAIMS_CHOSEN: chosen.claims, **names, **queues}


def _configuration(kind: str, metadata: Manifest, webhooks: list[Manifest]) -> Manifest:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "webhooks": webhooks}


def _outside(target: Service | Url, chosen: InstallChoices) -> Manifest:
    """Return the requirement on namespaces that excludes ``chosen.excluded`` and Berth's own.

    Whoever installs Berth makes its namespace before this is applied: its pods must not wait for themselves.
    """
    own = [target.namespace] if isinstance(target, Service) else []
    return {"key": NAMESPACE_NAME, "operator": "NotIn", "values": list(dict.fromkeys([*chosen.excluded, *own]))}


@dataclass(frozen=True, slots=True)
class _Shared:
    """The fields that all webhooks have in common."""

    bundle: Manifest
    target: Service | Url
    outside: Manifest

    def webhook(self, entry: WebhookEntry) -> Manifest:
        return {
            "name": f"{entry.name}.{DOMAIN}",
            "clientConfig": {**self.target.at(entry.at), **self.bundle},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": entry.failure_policy,
            "timeoutSeconds": entry.timeout,
            "matchPolicy": "Equivalent",
            "namespaceSelector": {"matchExpressions": [self.outside]},
            "rules": list(entry.rules),
            "matchConditions": [{"name": name, "expression": text} for name, text in entry.conditions.items()],
        }
