"""The pod that ``effective`` asks the engine about: one that says nothing itself, of a kind as far as that is known.

What a kind leaves open (which workload, which labels, how many GPUs) is left out of a policy's ``match`` before the engine matches it:
then the policy acts on some of these pods, and ``condition`` says on which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from policies import duration, plan
from policies.actor import workloads_of
from policies.author import DURATION
from policies.catalog import Catalog, Workload
from policies.compiled import Compiled
from policies.extract import extract
from policies.pod import Pod
from policies.policy import Bounds, LabelExpression, LabelSelector, Match
from policies.request import Request
from policies.snapshot import Facts
from policies.workloads.made import bare_pod, made_by, pod_of

RESOURCE = "nvidia.com/gpu"
POD = "Pod"
"""the catalog's name for what no workload made"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Pods by what policies choose by. None: any."""

    workload: str | None = None
    """as in ``match.workloads``; ``Pod``: a bare one"""
    labels: tuple[tuple[str, str], ...] | None = None
    gpus: int | None = None
    seconds: int | None = None
    """how long the author says that it runs; None: nothing is said"""

    def __str__(self) -> str:
        """``a Job's pod of 8 GPUs, labelled tier=batch, for 6h``"""
        whose = {None: "any pod", POD: "a bare pod"}.get(self.workload, f"a {self.workload}'s pod")
        count = "" if self.gpus is None else f" of {gpus_text(self.gpus)}"
        labels = ", ".join(f"{key}={value}" for key, value in self.labels or ())
        labelled = "" if self.labels is None else f", labelled {labels}" if labels else ", without labels"
        return f"{whose}{count}{labelled}" + ("" if self.seconds is None else f", for {duration.text(self.seconds)}")


def gpus_text(number: int) -> str:
    return f"{number} GPU{'' if number == 1 else 's'}"


def request_for(kind: Kind, namespace: str, catalog: Catalog) -> Request:
    """The creation of such a pod: of one GPU where the number is open, bare where the workload is."""
    manifest: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": POD,
        "metadata": {"labels": dict(kind.labels or ())} | _annotated(kind),
        "spec": {"containers": [{"name": "main", "resources": {"limits": {RESOURCE: 1 if kind.gpus is None else kind.gpus}}}]},
    }
    workload = workload_named(kind.workload, catalog)
    if workload is None or workload.name == POD:
        return Request(namespace=namespace, pod=bare_pod(manifest, namespace))
    api_version = workload.api_version[0] if workload.api_version else "v1"
    made = made_by(api_version, workload.name, workload)
    return Request(namespace=namespace, user=made.user, pod=pod_of(manifest, name="effective", namespace=namespace, made=made))


def _annotated(kind: Kind) -> dict[str, Any]:
    return {} if kind.seconds is None else {"annotations": {DURATION: f"{kind.seconds}s"}}


def workload_named(name: str | None, catalog: Catalog) -> Workload | None:
    """The catalog's workload of this name."""
    return next((w for w in catalog.workloads if w.name == name), None)


def known_as(name: str, catalog: Catalog) -> tuple[str, ...]:
    """The workloads whose signature the pods of this one carry: a CronJob's are a Job's. A bare pod is itself."""
    if name == POD:
        return (POD,)
    made = Pod(request_for(Kind(workload=name), "default", catalog).pod)
    return tuple(workload.name for workload in workloads_of(made, catalog))


# --- which policies act ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """A namespace's policies against a kind of pod, each in one of the three, sorted by id."""

    always: tuple[Compiled, ...]
    sometimes: tuple[Compiled, ...]
    """on some of these pods: what they choose by is open"""
    never: tuple[Compiled, ...]


def match(facts: Facts, kind: Kind, user: str | None = None) -> Matched:
    """The engine's own matching, of what is known of the pods."""
    request = request_for(kind, facts.namespace, facts.snapshot.catalog)
    if user is not None:
        request = replace(request, user=user)
    pod = Pod(extract(request.pod, facts.reads))
    known = {c.policy.id: replace(c, policy=replace(c.policy, match=_known(c.policy.match, kind))) for c in facts.policies}
    hold = {c.policy.id for c in plan.subject(request, replace(facts, policies=tuple(known.values())), pod).possible}
    open_ = {name for name in hold for c in facts.policies if c.policy.id == name and known[name].policy.match != c.policy.match}
    return Matched(
        always=tuple(c for c in facts.policies if c.policy.id in hold - open_),
        sometimes=tuple(c for c in facts.policies if c.policy.id in open_),
        never=tuple(c for c in facts.policies if c.policy.id not in hold),
    )


def _known(chosen: Match, kind: Kind) -> Match:
    """The part of ``match`` that this kind decides."""
    return replace(
        chosen,
        pod_selector=None if kind.labels is None else chosen.pod_selector,
        workloads=() if kind.workload is None else chosen.workloads,
        gpus=None if kind.gpus is None else chosen.gpus,
    )


def example(facts: Facts, compiled: Compiled, kind: Kind) -> Kind | None:
    """A kind within this one on which the policy acts; None where no pod that asks for a GPU is one."""
    chosen = compiled.policy.match
    for workload in chosen.workloads if kind.workload is None and chosen.workloads else (kind.workload,):
        one = replace(
            kind,
            workload=workload,
            labels=kind.labels if kind.labels is not None or chosen.pod_selector is None else _labels_for(chosen.pod_selector),
            gpus=kind.gpus if kind.gpus is not None or chosen.gpus is None else _count_for(chosen.gpus),
        )
        if one.gpus != 0 and compiled in match(facts, one).always:
            return one
    return None


def _labels_for(selector: LabelSelector) -> tuple[tuple[str, str], ...]:
    wanted = dict(selector.match_labels)
    for expression in selector.match_expressions:
        if expression.operator == "In":
            wanted.setdefault(expression.key, expression.values[0])
        elif expression.operator == "Exists":
            wanted.setdefault(expression.key, "")
    return tuple(sorted(wanted.items()))


def _count_for(bounds: Bounds) -> int:
    """The smallest that is inside, but for zero, which asks for nothing."""
    least = max(bounds.min or 1, 1)
    return least if bounds.max is None or least <= bounds.max else bounds.max


# --- in words ----------------------------------------------------------------------------------------------------------


def condition(chosen: Match) -> str:
    """Which pods a policy acts on: ``Jobs and PyTorchJobs of at least 8 GPUs``; "" for all."""
    parts = list(_conditions(chosen))
    return " ".join([*([] if chosen.workloads or not parts else ["pods"]), *parts])


def _conditions(chosen: Match) -> Iterator[str]:
    if chosen.workloads:
        plural = [f"{name}s" for name in chosen.workloads]
        yield " and ".join([", ".join(plural[:-1]), plural[-1]] if plural[1:] else plural)
    if chosen.gpus is not None:
        yield _counted(chosen.gpus)
    if chosen.pod_selector is not None:
        yield f"labelled {selector_text(chosen.pod_selector)}"


def _counted(bounds: Bounds) -> str:
    if bounds.min is not None and bounds.max is not None:
        return f"of {gpus_text(bounds.min)}" if bounds.min == bounds.max else f"of {bounds.min} to {gpus_text(bounds.max)}"
    return f"of at least {gpus_text(bounds.min)}" if bounds.min is not None else f"of at most {gpus_text(bounds.max or 0)}"


def selector_text(selector: LabelSelector) -> str:
    """As ``kubectl -l`` takes it: ``team=research,environment notin (dev),!tier``; an empty one is ``anything``."""
    pairs = [f"{key}={value}" for key, value in selector.match_labels]
    return ",".join([*pairs, *map(_expression_text, selector.match_expressions)]) or "anything"


def _expression_text(expression: LabelExpression) -> str:
    match expression.operator:
        case "Exists":
            return expression.key
        case "DoesNotExist":
            return f"!{expression.key}"
    return f"{expression.key} {expression.operator.lower()} ({', '.join(expression.values)})"


def scope(compiled: Compiled) -> str:
    """Where a policy acts: ``all namespaces``, ``namespaces team=research``, ``this namespace``."""
    if compiled.policy.namespace is not None:
        return "this namespace"
    selector = compiled.policy.match.namespace_selector
    return "all namespaces" if selector is None or selector == LabelSelector() else f"namespaces {selector_text(selector)}"


def labels_of(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """In the order of their keys, as a Kind has them."""
    return tuple(sorted(labels.items()))
