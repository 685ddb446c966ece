"""When the API server calls Berth, and what it does where Berth does not answer: two manifests, made from a catalog.

- ``mutate.pods``, ``validate.pods``: new pods that name an accelerator. Fail: such a pod would land on the wrong machine or
  wait for ever, at the price of a GPU node.
- ``mutate.claims``, ``validate.claims``: new pods with resource claims or a fraction by annotation, and none of the above.
  ``validate.claims-made``: new claims and templates for what may be accelerators. As ``Chosen.claims`` says.
- ``validate.updates``: pods of either kind of which tolerations, protection or amounts are changed. Ignore: at Fail on updates no
  finished Job completes, no finalizer goes and no gate lifts while Berth is down.
- ``advise.workloads``: new workloads with a template of such a pod, and those whose spec changed. Ignore, after 2 s: it only
  ever warns.

No call has side effects, so dry runs are judged too. All versions of a kind are meant (matchPolicy Equivalent). Of subresources
only ``resize`` is: status, binding, eviction never wait for Berth. The conditions let through only what Berth has
something to say on: everything else, Berth's own pods among it, starts while Berth is down.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from policies.catalog import Catalog
from webhook import match_conditions

Manifest = dict[str, Any]
FailurePolicy = Literal["Fail", "Ignore"]
Operation = Literal["CREATE", "UPDATE"]
Claims = Literal["Fail", "Ignore", "Off"]
CLAIMS: tuple[Claims, ...] = ("Fail", "Ignore", "Off")

API_VERSION = "admissionregistration.k8s.io/v1"
NAME = "zz-berth"
"""Of both configurations. The API server calls mutating webhooks by the names of their configurations: the last one sees what
queues and sidecars have made of a pod. reinvocationPolicy IfNeeded brings it back should one still change it."""
DOMAIN = "berth.dev"
"""A webhook's name ends in it and must be qualified; it stands before every refusal and is the prefix of audit annotations."""
POD_TIMEOUT = 5
"""Seconds. A review takes about a millisecond; the rest is for the retries of a 503 with Retry-After. All mutating webhooks of
a request share 34 s (apiserver endpoints/handlers/rest.go)."""
ADVICE_TIMEOUT = 2
"""Seconds that somebody who types ``kubectl apply`` waits at most."""
NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label that every namespace has and nobody can change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Berth in the cluster."""

    namespace: str = "berth-system"
    name: str = "berth"
    port: int = 443

    def at(self, path: str) -> Manifest:
        """The clientConfig of one path."""
        return {"service": {"namespace": self.namespace, "name": self.name, "path": path, "port": self.port}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    """Berth outside of the cluster, where the API server can reach it."""

    base: str
    """``https://HOST:PORT``"""

    def at(self, path: str) -> Manifest:
        """The clientConfig of one path."""
        return {"url": self.base + path}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What an operator chooses."""

    claims: Claims = "Ignore"
    """failurePolicy of what is about resource claims; Off, for a cluster without DRA: no such entry and no such condition, so that a
    plain pod meets two conditions in place of four, and pods whose only device is a claim are not judged"""

    @property
    def with_claims(self) -> bool:
        return self.claims != "Off"


DEFAULT = Chosen()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One webhook: what sets it apart from the others."""

    name: str
    """without the domain"""
    path: str
    rules: Sequence[Manifest]
    conditions: Mapping[str, str]
    """name -> CEL; all must hold"""
    failure_policy: FailurePolicy = "Ignore"
    timeout: int = POD_TIMEOUT


def manifests(catalog: Catalog, target: Service | Url, ca: bytes | None = None, chosen: Chosen = DEFAULT) -> tuple[Manifest, Manifest]:
    """The MutatingWebhookConfiguration and the ValidatingWebhookConfiguration.

    ``ca``: certificates in PEM by which the API server knows Berth; None where caBundle is filled in later, or where the
    trust store of the API server's machine knows it. Raises re2.PatternError.
    """
    mutating = [{**_webhook(e, catalog, target, ca), "reinvocationPolicy": "IfNeeded"} for e in _new_pods(catalog, "mutate", chosen)]
    made = [_made_claims(catalog, chosen.claims)] if chosen.claims != "Off" else []
    entries = [*_new_pods(catalog, "validate", chosen), *made, _updates(catalog, chosen), _workloads(catalog, chosen)]
    validating = [_webhook(e, catalog, target, ca) for e in entries]
    return _configuration("MutatingWebhookConfiguration", mutating), _configuration("ValidatingWebhookConfiguration", validating)


def _configuration(kind: str, webhooks: list[Manifest]) -> Manifest:
    metadata = {"name": NAME, "labels": {"app.kubernetes.io/name": "berth"}}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "webhooks": webhooks}


def _webhook(entry: Entry, catalog: Catalog, target: Service | Url, ca: bytes | None) -> Manifest:
    bundle = {} if ca is None else {"caBundle": base64.b64encode(ca).decode("ascii")}
    outside = {"key": NAMESPACE_NAME, "operator": "NotIn", "values": list(catalog.excluded_namespaces)}
    return {
        "name": f"{entry.name}.{DOMAIN}",
        "clientConfig": {**target.at(entry.path), **bundle},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": entry.failure_policy,
        "timeoutSeconds": entry.timeout,
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": [outside]} if catalog.excluded_namespaces else {},
        "rules": list(entry.rules),
        "matchConditions": [{"name": name, "expression": text} for name, text in entry.conditions.items()],
    }


def _rule(operations: Iterable[Operation], group: str, versions: Iterable[str], resources: Iterable[str]) -> Manifest:
    return {
        "operations": list(operations),
        "apiGroups": [group],
        "apiVersions": list(versions),
        "resources": list(resources),
        "scope": "Namespaced",
    }


def _new_pods(catalog: Catalog, phase: Literal["mutate", "validate"], chosen: Chosen) -> list[Entry]:
    """Both phases judge the same pods: what /mutate let pass unseen, /validate would not know of either."""
    rules = [_rule(["CREATE"], "", ["v1"], ["pods"])]
    asks = match_conditions.asks(catalog)
    if chosen.claims == "Off":
        asks = match_conditions.either(match_conditions.fractions(), asks)
    named = {"not-a-mirror-pod": match_conditions.NOT_A_MIRROR, "names-an-accelerator": asks}
    pods = Entry(name=f"{phase}.pods", path=f"/{phase}", rules=rules, conditions=named, failure_policy="Fail")
    if chosen.claims == "Off":
        return [pods]
    others = {
        "has-claims-or-a-fraction-alone": match_conditions.in_turn(match_conditions.claims(), match_conditions.NOT_A_MIRROR, f"!({asks})")
    }
    return [pods, Entry(name=f"{phase}.claims", path=f"/{phase}", rules=rules, conditions=others, failure_policy=chosen.claims)]


def _made_claims(catalog: Catalog, failure_policy: FailurePolicy) -> Entry:
    """In every version that is served, since each may be the only one. Their spec can't be changed."""
    return Entry(
        name="validate.claims-made",
        path="/validate",
        rules=[_rule(["CREATE"], "resource.k8s.io", ["v1", "v1beta2", "v1beta1"], ["resourceclaims", "resourceclaimtemplates"])],
        conditions={"asks-for-what-may-be-an-accelerator": match_conditions.made_claims(catalog)},
        failure_policy=failure_policy,
    )


def _updates(catalog: Catalog, chosen: Chosen) -> Entry:
    """What an update may not add."""
    changed = match_conditions.in_turn(
        match_conditions.updated(catalog), match_conditions.NOT_A_MIRROR, match_conditions.judged(catalog, with_claims=chosen.with_claims)
    )
    return Entry(
        name="validate.updates",
        path="/validate",
        rules=[_rule(["UPDATE"], "", ["v1"], ["pods", "pods/resize"])],
        conditions={"what-is-judged-of-an-accelerator-pod-changed": changed},
    )


def _workloads(catalog: Catalog, chosen: Chosen) -> Entry:
    """Every kind of the catalog with templates, one rule for those of the same API group and versions."""
    resources: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {}
    for workload in catalog.workloads:
        if workload.templates:
            groups = {version.rpartition("/")[0]: None for version in workload.api_version}
            for group in groups:
                versions = tuple(v.rpartition("/")[2] for v in workload.api_version if v.rpartition("/")[0] == group)
                resources.setdefault((group, versions), {})[workload.resource] = None
    asking = match_conditions.in_turn(
        match_conditions.MADE_BY_NO_CONTROLLER,
        match_conditions.changed(catalog),
        match_conditions.templates(catalog, with_claims=chosen.with_claims),
    )
    return Entry(
        name="advise.workloads",
        path="/advise",
        rules=[_rule(["CREATE", "UPDATE"], group, versions, names) for (group, versions), names in resources.items()],
        conditions={"a-new-template-asks-for-an-accelerator": asking},
        timeout=ADVICE_TIMEOUT,
    )
