"""Define the webhooks: the objects for which the API server calls Berth, and what happens if Berth does not answer.

- ``mutate.pods``, ``validate.pods``: new pods that request an accelerator by name, by resource claim, or as a fraction by annotation. Fail:
  without Berth such a pod could run on the wrong machine or stay Pending while it costs a GPU node. While Berth is down they are denied.
- ``mutate.claims-made``, ``validate.claims-made``: new claims and templates for devices that may be accelerators. Fail, unless
  ``InstallChoices.claims`` says otherwise. With Ignore a claim is stored unchanged, and its size is only checked with its pod.
- ``mutate.claims``, ``validate.claims`` if ``InstallChoices.claims`` is Ignore: pods with claims, instead of the first entry. While Berth
  is down they are created unchecked. With Fail, pods whose only claims are for other devices (network cards) are denied too.
- ``validate.updates``: pods, with accelerators or claims, whose tolerations, owners, queues, protection or amounts change. Ignore: while
  Berth is down, Fail would keep Kueue from releasing pods into a flavor with tolerations, KAI from grouping pods, and the garbage collector
  from orphaning them. With Ignore such updates are not checked meanwhile.
- ``mutate.updates``: pods with edits by policies whose spec changes, as when an author applies a manifest again. Ignore: without an answer
  the API server reports that these fields cannot be removed.
- ``label.workloads``, ``label.operators`` with ``InstallChoices.queues``: new workloads of the kinds that Kueue suspends, with or without
  a queue.
  They are in a separate configuration, which is called before Kueue's. ``validate.workloads``, ``validate.operators``: workloads that are
  new, or whose template or queue changed. Ignore: a queue can wait.
- ``advise.workloads``: new workloads with a template of such a pod, and those whose spec changed. Ignore, after 2 s: it only warns.
  ``advise.operators``: the same for all custom workloads. The API server does not guarantee the types in a custom resource, so a condition
  that reads it could be made to fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import indent
from typing import Any, Literal

from catalog import Catalog, ResourcePattern, Workload
from registration import match_conditions

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
"""The most seconds for which ``kubectl apply`` waits for warnings."""
ALWAYS = ("kube-system", "kube-public", "kube-node-lease")
"""Namespaces that kube-apiserver creates itself, so that no user can (k8s.io/kubernetes
pkg/controlplane/controller/systemnamespaces)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallChoices:
    """The choices of the operator who installs Berth."""

    claims: Claims = "Fail"
    """The failurePolicy for resource claims and for pods that have some. Off, for a cluster without DRA: pods whose only device is a
    claim are not checked."""

    excluded: tuple[str, ...] = ALWAYS
    """Namespaces whose pods are not checked. Only existing names are excluded, because any user could create
    a missing one."""
    names: tuple[str, ...] = ()
    """Extended resources for which Berth is called besides those of the catalog."""

    queues: bool = False
    """Whether policies are about queues: workloads are then labelled and checked too."""

    @property
    def with_claims(self) -> bool:
        return self.claims != "Off"


DEFAULT = InstallChoices()


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEntry:
    """One webhook: the fields in which it differs from the others."""

    name: str
    """The name without the domain."""
    path: str
    rules: Sequence[Manifest]
    conditions: Mapping[str, str]
    """Name -> CEL; all must hold."""
    failure_policy: FailurePolicy = "Ignore"
    timeout: int = POD_TIMEOUT

    @property
    def at(self) -> str:
        """Return the path that is called. With failurePolicy Ignore, Berth denies objects for which it has no capacity."""
        judges = self.path in ("/mutate", "/validate")
        return f"{self.path}/ignore" if judges and self.failure_policy == "Ignore" else self.path


Entries = tuple[list[WebhookEntry], list[WebhookEntry]]
"""The entries of the mutating and of the validating configuration."""


def entries(catalog: Catalog, chosen: InstallChoices) -> Entries:
    named = _with_names(catalog, chosen.names)
    advised = _of_kinds("advise", ["CREATE", "UPDATE"], _described(named), named, chosen)
    validating = [*_new_pods_and_claims(named, "validate", chosen), _updates(named, chosen), *advised]
    if chosen.queues:
        validating += _of_kinds("validate", ["CREATE", "UPDATE"], _queued(named), named, chosen)
    return [*_new_pods_and_claims(named, "mutate", chosen), APPLIED_AGAIN], validating


def _new_pods_and_claims(catalog: Catalog, phase: Phase, chosen: InstallChoices) -> list[WebhookEntry]:
    made = [_made_claims(catalog, phase, chosen.claims)] if chosen.claims != "Off" else []
    return [*_new_pods(catalog, phase, chosen), *made]


def labelling(catalog: Catalog, chosen: InstallChoices) -> list[WebhookEntry]:
    """Return the entries of the mutating configuration that is called before Kueue's."""
    named = _with_names(catalog, chosen.names)
    return _of_kinds("label", ["CREATE"], [w for w in _queued(named) if w.kueue is not None], named, chosen)


def _described(catalog: Catalog) -> list[Workload]:
    """Return every kind of the catalog that describes pods and is namespaced."""
    return [workload for workload in catalog.workloads if workload.describes_pods and not workload.cluster]


def _queued(catalog: Catalog) -> list[Workload]:
    return [workload for workload in _described(catalog) if workload.name != "Pod"]


def _of_kinds(
    verb: Literal["advise", "label", "validate"], operations: list[Operation], workloads: Sequence[Workload], catalog: Catalog,
    chosen: InstallChoices,
) -> list[WebhookEntry]:  # fmt: skip
    """Return the entries for these kinds, of ``_divided``, which call the path of the verb."""
    webhooks = []
    for name, kinds, asked in _divided(workloads, catalog, chosen):
        tests = asked
        if verb == "advise":
            tests = [match_conditions.MADE_BY_NO_CONTROLLER, match_conditions.changed(kinds), *asked]
        elif verb == "validate":  # a template whose GPUs go as its workload moves leaves their pods behind
            moved = f"oldObject != null && (\n{indent(match_conditions.moved(), '  ')}\n)"
            tests = [f"{match_conditions.changed(kinds)} ||\n{match_conditions.moved()}", *(f"{moved} ||\n{test}" for test in asked)]
        webhooks.append(
            WebhookEntry(
                name=f"{verb}.{name}",
                path=f"/{verb}",
                rules=_rules(operations, kinds),
                conditions={"may-be-of-pods-with-an-accelerator": match_conditions.in_turn(*tests)} if tests else {},
                timeout=ADVICE_TIMEOUT if verb == "advise" else POD_TIMEOUT,
            )
        )
    return webhooks


_OWN_GROUPS = ("", "apps", "batch")
"""API groups of the kinds of Kubernetes itself that have a template."""


def _divided(workloads: Sequence[Workload], catalog: Catalog, chosen: InstallChoices) -> Iterator[tuple[str, list[Workload], list[str]]]:
    """Yield ``workloads``, the kinds of Kubernetes itself, with the test that their pods ask for an accelerator, and ``operators``, all
    other kinds, without."""
    own = [w for w in workloads if all(version.rpartition("/")[0] in _OWN_GROUPS for version in w.api_version)]
    if own:
        yield "workloads", own, [match_conditions.asked_in(catalog, own, with_claims=chosen.with_claims)]
    if others := [workload for workload in workloads if workload not in own]:
        yield "operators", others, []


def _with_names(catalog: Catalog, names: Sequence[str]) -> Catalog:
    """Return the catalog with further resource names, which conditions match like listed ones.

    To a condition it does not matter which device a name means.
    """
    patterns = (ResourcePattern(pattern=re.compile(re.escape(name)), vendor="any", kind="other", name=name) for name in names)
    return replace(catalog, resources=(*catalog.resources, *patterns)) if names else catalog


def _rule(operations: Iterable[Operation], group: str, versions: Iterable[str], resources: Iterable[str]) -> Manifest:
    where = {"apiGroups": [group], "apiVersions": list(versions), "resources": list(resources)}
    return {"operations": list(operations), **where, "scope": "Namespaced"}


def _new_pods(catalog: Catalog, phase: Phase, chosen: InstallChoices) -> list[WebhookEntry]:
    """Return the entries for new pods.

    Both phases have the same conditions, so /validate is called for the same pods as /mutate.
    """
    rules = [_rule(["CREATE"], "", ["v1"], ["pods"])]
    asks = match_conditions.is_evaluated(catalog, with_claims=chosen.claims == "Fail")
    named = {"not-a-mirror-pod": match_conditions.NOT_A_MIRROR, "asks-for-an-accelerator": asks}
    pods = WebhookEntry(name=f"{phase}.pods", path=f"/{phase}", rules=rules, conditions=named, failure_policy="Fail")
    if chosen.claims != "Ignore":
        return [pods]
    others = {"has-claims": match_conditions.in_turn(match_conditions.claims(), match_conditions.NOT_A_MIRROR)}
    return [pods, WebhookEntry(name=f"{phase}.claims", path=f"/{phase}", rules=rules, conditions=others)]


def _made_claims(catalog: Catalog, phase: Phase, failure_policy: FailurePolicy) -> WebhookEntry:
    """Return the entry for new claims, in every version, since each may be the only one served.

    The spec of a claim cannot change. /mutate is called for updates that would change it, as when a claim is applied again."""
    operations: list[Operation] = ["CREATE", "UPDATE"] if phase == "mutate" else ["CREATE"]
    return WebhookEntry(
        name=f"{phase}.claims-made",
        path=f"/{phase}",
        rules=[_rule(operations, "resource.k8s.io", ["v1", "v1beta2", "v1beta1"], ["resourceclaims", "resourceclaimtemplates"])],
        conditions={"asks-for-what-may-be-an-accelerator": match_conditions.made_claims(catalog)},
        failure_policy=failure_policy,
    )


def _updates(catalog: Catalog, chosen: InstallChoices) -> WebhookEntry:
    """Return the entry for updates of pods."""
    judged = match_conditions.is_evaluated(catalog, with_claims=chosen.with_claims)
    changed = match_conditions.in_turn(
        match_conditions.updated(catalog),
        match_conditions.NOT_A_MIRROR,
        f"{judged} ||\n{match_conditions.fractions('oldObject')}",  # the other names of accelerators can't be changed
    )
    return WebhookEntry(
        name="validate.updates",
        path="/validate",
        rules=[_rule(["UPDATE"], "", ["v1"], ["pods", "pods/resize"])],
        conditions={"evaluated-fields-of-an-accelerator-pod-changed": changed},
    )


APPLIED_AGAIN = WebhookEntry(
    name="mutate.updates",
    path="/mutate",
    rules=[_rule(["UPDATE"], "", ["v1"], ["pods"])],
    conditions={"what-policies-wrote-may-be-sent-back": match_conditions.SENT_BACK},
)
"""The entry for pods that are applied again."""


def _rules(operations: list[Operation], workloads: Iterable[Workload]) -> list[Manifest]:
    """Return one rule for the workloads of the same API group and versions."""
    resources: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {}
    for workload in workloads:
        for group in dict.fromkeys(version.rpartition("/")[0] for version in workload.api_version):
            versions = tuple(v.rpartition("/")[2] for v in workload.api_version if v.rpartition("/")[0] == group)
            resources.setdefault((group, versions), {})[workload.resource] = None
    return [_rule(operations, group, versions, names) for (group, versions), names in resources.items()]
