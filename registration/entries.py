"""The webhooks: for which objects the API server calls Berth, and what it does if Berth does not answer.

- ``mutate.pods``, ``validate.pods``: new pods that name an accelerator. Fail: such a pod would land on the
  wrong machine or wait for ever, at the price of a GPU node.
- ``mutate.claims``, ``validate.claims``: new pods with resource claims or a fraction by annotation, and none
  of the above. ``mutate.claims-made``, ``validate.claims-made``: new claims and templates for devices that may be
  accelerators. Their failurePolicy is ``Chosen.claims``.
- ``validate.updates``: pods of either kind of which tolerations, protection or amounts are changed. Ignore:
  at Fail on updates no finished Job completes, no finalizer is removed and no gate is lifted while Berth is
  down.
- with ``Chosen.queues`` ``label.workloads``, ``label.operators``: new workloads of the kinds that Kueue holds back, with
  or without a queue. They are in a configuration of their own, which is called before Kueue's. ``validate.workloads``,
  ``validate.operators``: workloads that are new, or of which a template or a queue changed. Ignore: a queue may wait.
- ``advise.workloads``: new workloads with a template of such a pod, and those whose spec changed. Ignore,
  after 2 s: it only ever warns. ``advise.operators``: the same for kinds that describe their pods in other
  fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from policies.catalog import Catalog, ResourcePattern, Workload
from registration import match_conditions, match_places

Manifest = dict[str, Any]
FailurePolicy = Literal["Fail", "Ignore"]
Operation = Literal["CREATE", "UPDATE"]
Claims = Literal["Fail", "Ignore", "Off"]
Phase = Literal["mutate", "validate"]
CLAIMS: tuple[Claims, ...] = ("Fail", "Ignore", "Off")


POD_TIMEOUT = 5
"""Seconds. A review takes about a millisecond; the rest is for the retries of a 503 with Retry-After.

All mutating webhooks of a request share 34 s (apiserver endpoints/handlers/rest.go).
"""
ADVICE_TIMEOUT = 2
"""Seconds that somebody who types ``kubectl apply`` waits at most."""
ALWAYS = ("kube-system", "kube-public", "kube-node-lease")
"""Namespaces that kube-apiserver makes itself, so that nobody else can (k8s.io/kubernetes
pkg/controlplane/controller/systemnamespaces)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The choices of the operator who installs Berth."""

    claims: Claims = "Ignore"
    """The failurePolicy of entries for resource claims. Off, for a cluster without DRA: there is no such
    entry and no such condition, so that a plain pod meets two conditions in place of four, and pods whose
    only device is a claim are not judged."""

    excluded: tuple[str, ...] = ALWAYS
    """Namespaces whose pods are not judged. Only names that exist are excluded: anybody could create
    another one."""
    names: tuple[str, ...] = ()
    """Extended resources for which Berth is called besides those of the catalog."""

    queues: bool = False
    """True where policies are about queues: workloads are then labelled and judged too."""

    @property
    def with_claims(self) -> bool:
        return self.claims != "Off"


DEFAULT = Chosen()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One webhook: the fields in which it differs from the others."""

    name: str
    """The name without the domain."""
    path: str
    rules: Sequence[Manifest]
    conditions: Mapping[str, str]
    """Name -> CEL; all must hold."""
    failure_policy: FailurePolicy = "Ignore"
    timeout: int = POD_TIMEOUT


Entries = tuple[list[Entry], list[Entry]]
"""The entries of the mutating and of the validating configuration."""


def entries(catalog: Catalog, chosen: Chosen) -> Entries:
    named = _with_names(catalog, chosen.names)
    validating = [*_new_pods_and_claims(named, "validate", chosen), _updates(named, chosen), *_workloads(named, chosen)]
    if chosen.queues:
        validating += _of_kinds("validate", "/validate", ["CREATE", "UPDATE"], _queued(named), named, chosen)
    return _new_pods_and_claims(named, "mutate", chosen), validating


def _new_pods_and_claims(catalog: Catalog, phase: Phase, chosen: Chosen) -> list[Entry]:
    made = [_made_claims(catalog, phase, chosen.claims)] if chosen.claims != "Off" else []
    return [*_new_pods(catalog, phase, chosen), *made]


def labelling(catalog: Catalog, chosen: Chosen) -> list[Entry]:
    """Return the entries of the mutating configuration that is called before Kueue's."""
    named = _with_names(catalog, chosen.names)
    return _of_kinds("label", "/label", ["CREATE"], [w for w in _queued(named) if w.kueue is not None], named, chosen)


def _queued(catalog: Catalog) -> list[Workload]:
    return [workload for workload in catalog.workloads if workload.describes_pods and not workload.cluster and workload.name != "Pod"]


def _of_kinds(
    verb: str, path: str, operations: list[Operation], workloads: Sequence[Workload], catalog: Catalog, chosen: Chosen
) -> list[Entry]:
    """Return the entries for these kinds, of ``_divided``."""
    found = []
    for name, kinds, asked in _divided(workloads, catalog, chosen):
        judged = asked if verb == "label" else match_conditions.in_turn(match_conditions.requeued(kinds), asked)
        conditions = {"its-pods-ask-for-an-accelerator": judged}
        found.append(Entry(name=f"{verb}.{name}", path=path, rules=_rules(operations, kinds), conditions=conditions))
    return found


def _divided(workloads: Sequence[Workload], catalog: Catalog, chosen: Chosen) -> Iterator[tuple[str, list[Workload], str]]:
    """Yield ``workloads``, the kinds that have nothing but templates, and ``operators``, the others, whose condition costs more; with the
    test that their pods ask for an accelerator."""
    for name, kinds in (("workloads", [w for w in workloads if not w.places]), ("operators", [w for w in workloads if w.places])):
        described = match_places.described(catalog, kinds, with_claims=chosen.with_claims)
        if kinds:
            found = [*match_places.templates(kinds), *described]
            yield name, kinds, match_conditions.asked_in(catalog, found, with_claims=chosen.with_claims)


def _with_names(catalog: Catalog, names: Sequence[str]) -> Catalog:
    """Return the catalog with further resource names, which conditions match like listed ones.

    To a condition it does not matter which device a name means.
    """
    patterns = (ResourcePattern(pattern=re.compile(re.escape(name)), vendor="any", kind="other", name=name) for name in names)
    return replace(catalog, resources=(*catalog.resources, *patterns)) if names else catalog


def _rule(operations: Iterable[Operation], group: str, versions: Iterable[str], resources: Iterable[str]) -> Manifest:
    return {
        "operations": list(operations),
        "apiGroups": [group],
        "apiVersions": list(versions),
        "resources": list(resources),
        "scope": "Namespaced",
    }


def _new_pods(catalog: Catalog, phase: Phase, chosen: Chosen) -> list[Entry]:
    """Return the entries for new pods.

    Both phases judge the same pods: what /mutate was not called for, /validate would not be called for
    either.
    """
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


def _made_claims(catalog: Catalog, phase: Phase, failure_policy: FailurePolicy) -> Entry:
    """Return the entry for new claims, in every version, since each may be the only one served. Their spec
    can't be changed."""
    return Entry(
        name=f"{phase}.claims-made",
        path=f"/{phase}",
        rules=[_rule(["CREATE"], "resource.k8s.io", ["v1", "v1beta2", "v1beta1"], ["resourceclaims", "resourceclaimtemplates"])],
        conditions={"asks-for-what-may-be-an-accelerator": match_conditions.made_claims(catalog)},
        failure_policy=failure_policy,
    )


def _updates(catalog: Catalog, chosen: Chosen) -> Entry:
    """Return the entry for updates of pods."""
    changed = match_conditions.in_turn(
        match_conditions.updated(catalog), match_conditions.NOT_A_MIRROR, match_conditions.judged(catalog, with_claims=chosen.with_claims)
    )
    return Entry(
        name="validate.updates",
        path="/validate",
        rules=[_rule(["UPDATE"], "", ["v1"], ["pods", "pods/resize"])],
        conditions={"what-is-judged-of-an-accelerator-pod-changed": changed},
    )


_ADVISED = {
    "workloads": "a-new-template-asks-for-an-accelerator",
    "operators": "what-a-new-one-says-of-pods-asks-for-an-accelerator",
}
"""The name of the condition of each entry of ``_workloads``."""


def _workloads(catalog: Catalog, chosen: Chosen) -> list[Entry]:
    """Return the entries for every kind of the catalog that describes pods and is namespaced."""
    described = [workload for workload in catalog.workloads if workload.describes_pods and not workload.cluster]
    return [
        Entry(
            name=f"advise.{name}",
            path="/advise",
            rules=_rules(["CREATE", "UPDATE"], kinds),
            conditions={
                _ADVISED[name]: match_conditions.in_turn(match_conditions.MADE_BY_NO_CONTROLLER, match_conditions.changed(kinds), asked)
            },
            timeout=ADVICE_TIMEOUT,
        )
        for name, kinds, asked in _divided(described, catalog, chosen)
    ]


def _rules(operations: list[Operation], workloads: Iterable[Workload]) -> list[Manifest]:
    """Return one rule for the workloads of the same API group and versions."""
    resources: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {}
    for workload in workloads:
        for group in dict.fromkeys(version.rpartition("/")[0] for version in workload.api_version):
            versions = tuple(v.rpartition("/")[2] for v in workload.api_version if v.rpartition("/")[0] == group)
            resources.setdefault((group, versions), {})[workload.resource] = None
    return [_rule(operations, group, versions, names) for (group, versions), names in resources.items()]
