"""ResourceQuota: what it counts of pods, and which pods it refuses (k8s.io/kubernetes 1.37 pkg/quota/v1/evaluator/core/pods.go and
k8s.io/apiserver pkg/admission/plugin/resourcequota/controller.go, ``CheckRequest``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kube.labels import Expression
from kube.namespace_limits.refusal import Refusal
from kube.pod import containers_of
from kube.requests import COMPUTE, has_pod_level, is_native, limits, requests, to_units
from kube.tree import Path, map_at, maps_in, text_of

REQUESTS, LIMITS = "requests.", "limits."
OF_CLASS = ".deviceclass.resource.k8s.io/devices"
"""Ends the name of an entry for devices of a DeviceClass, which claims use (k8s.io/api/core/v1 ``ResourceClaimsPerClass``)."""
_OF_STORAGE_CLASS = ".storageclass.storage.k8s.io/"
_OF_PODS = ("pods", "count/pods")
_WITH_LIMITS = (*COMPUTE, "ephemeral-storage")
_HUGE = "hugepages-"
_REQUIRED = frozenset((*COMPUTE, *(f"{side}{name}" for side in (REQUESTS, LIMITS) for name in COMPUTE)))
"""Entries for which every container must set an amount (``validationSet``)."""


class ResourceQuota(NamedTuple):
    """One ResourceQuota."""

    name: str
    hard: Mapping[str, int]
    used: Mapping[str, int] | None = None
    """None if it is not known."""
    scopes: tuple[Expression, ...] = ()
    """``spec.scopes`` and ``spec.scopeSelector``: it counts pods for which all of them hold."""


class PodUsage(NamedTuple):
    """What one pod counts for."""

    amounts: Mapping[str, int]
    """Entry of a quota -> amount."""
    paths: Mapping[str, Path]


def unit_of(entry: str) -> str:
    """Return the resource in whose units an entry of a quota is counted."""
    return entry.removeprefix(REQUESTS).removeprefix(LIMITS)


def read_quota(thing: Mapping[str, Any]) -> ResourceQuota:
    """Return a ResourceQuota. What is enforced is ``status.hard``, which the controller copies from the spec; without it the usage is
    not known either."""
    spec, status = map_at(thing, "spec"), map_at(thing, "status")
    scopes = spec.get("scopes")
    expressions = [Expression(text_of(scope), "Exists", ()) for scope in (scopes if isinstance(scopes, list) else ())]
    for item in maps_in(map_at(spec, "scopeSelector").get("matchExpressions")):
        values = item.get("values")
        texts = tuple(map(text_of, values)) if isinstance(values, list) else ()
        expressions.append(Expression(text_of(item.get("scopeName")), text_of(item.get("operator")), texts))
    counted = "hard" in status and "used" in status
    return ResourceQuota(
        name=text_of(map_at(thing, "metadata").get("name")),
        hard=_amounts(map_at(status if counted else spec, "hard")),
        used=_amounts(map_at(status, "used")) if counted else None,
        scopes=tuple(expressions),
    )


def _amounts(value: Mapping[Any, Any]) -> dict[str, int]:
    read = ((text_of(name), to_units(unit_of(text_of(name)), amount)) for name, amount in value.items())
    return {name: amount for name, amount in read if amount is not None}


def is_counted(entry: str) -> bool:
    """Return whether anything ever counts for an entry. Of an extended resource only ``requests.<name>`` does
    (``isExtendedResourceNameForQuota``); the API server stores others without a word."""
    if "/" not in entry or is_native(entry) or entry.startswith((REQUESTS, "count/")):
        return True
    return entry.endswith(OF_CLASS) or _OF_STORAGE_CLASS in entry


def pod_usage(spec: Mapping[Any, Any]) -> PodUsage:
    """Return what a pod counts for in quotas (``PodUsageFunc``)."""
    requested, limited = requests(spec), limits(spec)
    amounts = dict.fromkeys(_OF_PODS, 1)
    paths: dict[str, Path] = {}
    for resource, amount in requested.amounts.items():
        both = resource in _WITH_LIMITS or resource.startswith(_HUGE)
        if both or not is_native(resource):
            for entry in (resource, f"{REQUESTS}{resource}") if both else (f"{REQUESTS}{resource}",):
                amounts[entry] = amount
                paths[entry] = requested.paths.get(resource, ())
    for resource, amount in limited.amounts.items():
        if resource in _WITH_LIMITS:
            amounts[f"{LIMITS}{resource}"] = amount
            paths[f"{LIMITS}{resource}"] = limited.paths.get(resource, ())
    return PodUsage(amounts, paths)


def applies(quota: ResourceQuota, spec: Mapping[Any, Any]) -> bool:
    """Return whether a quota counts pods with this spec (``podMatchesScopeFunc``)."""
    return all(_in_scope(scope, spec) for scope in quota.scopes)


def _in_scope(scope: Expression, spec: Mapping[Any, Any]) -> bool:
    deadline = spec.get("activeDeadlineSeconds")
    match scope.key:
        case "Terminating":
            return isinstance(deadline, int) and deadline >= 0
        case "NotTerminating":
            return not (isinstance(deadline, int) and deadline >= 0)
        case "BestEffort":
            return _is_best_effort(spec)
        case "NotBestEffort":
            return not _is_best_effort(spec)
        case "PriorityClass":
            name = text_of(spec.get("priorityClassName"))
            return scope.holds({scope.key: name} if name else {})
        case "CrossNamespacePodAffinity":
            return any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in _pod_affinity_terms(spec))
    return False


def _is_best_effort(spec: Mapping[Any, Any]) -> bool:
    """Return whether a pod is of QoS class BestEffort (pkg/apis/core/v1/helper/qos)."""
    levels = (
        [map_at(spec, "resources")] if has_pod_level(spec) else [map_at(container, "resources") for _, container in containers_of(spec)]
    )
    sides = [map_at(level, side) for level in levels for side in ("requests", "limits")]
    return not any(to_units(name, side.get(name, 0)) for side in sides for name in COMPUTE)


def _pod_affinity_terms(spec: Mapping[Any, Any]) -> Iterator[Mapping[Any, Any]]:
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = map_at(spec, "affinity", kind)
        yield from maps_in(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
        for weighted in maps_in(affinity.get("preferredDuringSchedulingIgnoredDuringExecution")):
            yield map_at(weighted, "podAffinityTerm")


def quota_refusals(
    spec: Mapping[Any, Any], quotas: Iterable[ResourceQuota], *, pods: int = 1, claimed: Mapping[str, int] | None = None
) -> Iterator[Refusal]:
    """Yield what quotas refuse of a workload whose pods have this spec.

    ``pods``: how many it has at once, at least one. ``claimed``: entries for what the claims count that are made for one pod: such a pod
    is created, and waits for them.
    """
    usage = pod_usage(spec)
    for quota in quotas:
        if applies(quota, spec):
            yield from _unset(spec, quota)
            yield from _exceeded(quota, usage.amounts, usage.paths, pods)
        if claimed and not quota.scopes:
            yield from _exceeded(quota, claimed, {}, pods)


def _exceeded(quota: ResourceQuota, amounts: Mapping[str, int], paths: Mapping[str, Path], pods: int) -> Iterator[Refusal]:
    for entry, hard in quota.hard.items():
        need, used = amounts.get(entry, 0), (quota.used or {}).get(entry, 0)
        if need <= 0 or used + need * pods <= hard:
            continue
        kind = "exceeded" if used + need > hard else "some"
        yield Refusal(kind, quota.name, entry, need, hard, used, path=paths.get(entry, ()), pods=pods)  # type: ignore[arg-type]


def _unset(spec: Mapping[Any, Any], quota: ResourceQuota) -> Iterator[Refusal]:
    """Yield the amounts that a container lacks (``enforcePodContainerConstraints``)."""
    if has_pod_level(spec):
        return
    for entry in sorted(_REQUIRED & quota.hard.keys()):
        side, name = "limits" if entry.startswith(LIMITS) else "requests", unit_of(entry)
        for path, container in containers_of(spec):
            resources = map_at(container, "resources")
            if name not in map_at(resources, side) and (side == "limits" or name not in map_at(resources, "limits")):
                where = (*path, "resources", side, name)
                yield Refusal("unset", quota.name, entry, container=text_of(container.get("name")), path=where)
                break
