"""Every change of a pod by one step, found without looking at what is in its way: to search all changes of so many steps."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import combinations
from typing import Any

from analysis.admission_preview import AdmittedPod
from kube.requests import to_units
from policies.placement.fleet import Fleet, best
from policies.request import Request
from policies.verdict import Verdict, Violation

Raw = dict[str, Any]
Change = Callable[[Raw], None]
"""Writes into a pod's spec."""
RENAMED = ("nvidia.com/gpu", "nvidia.com/mig-1g.10gb")


def admitted_as(pod: Mapping[str, Any], violations: tuple[Violation, ...] = ()) -> AdmittedPod:
    """What becomes of a pod where no policy writes anything: it is admitted as it is, or denied."""
    request = Request(namespace="default", pod=dict(pod))
    return AdmittedPod(request=request, mutate=Verdict(), violations=violations, remarks=(), is_evaluated=True, pod=request.pod)


def fits_after(pod: Raw, fleet: Fleet, steps: int) -> Raw | None:
    """The pod after some change of so many steps that makes it fit, or None."""
    for chosen in combinations(list(_steps(pod["spec"], fleet)), steps):
        tried = copy.deepcopy(pod)
        for change in chosen:
            change(tried["spec"])
        _emptied(tried["spec"])
        if best(tried, fleet) == "now":
            return tried
    return None


def _steps(spec: Raw, fleet: Fleet) -> Iterator[Change]:
    for key in {taint.key for node in fleet.nodes for taint in node.taints}:
        yield partial(_tolerate, key)
    for key in spec.get("nodeSelector", {}):
        yield partial(_select, key, None)
        for value in {node.labels[key] for node in fleet.nodes if key in node.labels}:
            yield partial(_select, key, value)
    for t, term in enumerate(_terms(spec)):
        for field in ("matchExpressions", "matchFields"):
            for e in range(len(term.get(field, ()))):
                yield partial(_drop, t, field, e)
    yield from _amounts(spec, fleet)
    for number in {port["hostPort"] for one in _containers(spec) for port in one.get("ports", ())}:
        yield partial(_unport, number)


def _amounts(spec: Raw, fleet: Fleet) -> Iterator[Change]:
    for i, container in enumerate(_containers(spec)):
        resources = container.get("resources", {})
        for name in {**resources.get("limits", {}), **resources.get("requests", {})}:
            most = to_units(name, resources.get("limits", {}).get(name, 0)) or 0
            for value in range(1, most) if "/" in name else (0,):
                yield partial(_lower, i, name, str(value))
    if "requests" in spec.get("resources", {}):
        yield _whole_pod
    for old, new in (RENAMED, RENAMED[::-1]):
        if any(old in one.get("resources", {}).get("limits", {}) for one in _containers(spec)):
            yield partial(_rename, old, new)


def _tolerate(key: str, spec: Raw) -> None:
    spec.setdefault("tolerations", []).append({"key": key, "operator": "Exists"})


def _select(key: str, value: str | None, spec: Raw) -> None:
    if value is None:
        spec["nodeSelector"].pop(key, None)
    else:
        spec["nodeSelector"][key] = value


def _drop(term: int, field: str, at: int, spec: Raw) -> None:
    _terms(spec)[term][field][at] = None


def _whole_pod(spec: Raw) -> None:
    spec["resources"]["requests"]["cpu"] = "0"


def _lower(i: int, name: str, value: str, spec: Raw) -> None:
    resources = _containers(spec)[i]["resources"]
    resources["requests"] = {**resources.get("requests", {}), name: value}
    if "/" in name:
        resources["limits"][name] = value


def _rename(old: str, new: str, spec: Raw) -> None:
    for container in _containers(spec):
        for side in ("limits", "requests"):
            amounts = container.get("resources", {}).get(side, {})
            if old in amounts and new not in amounts:
                amounts[new] = amounts.pop(old)


def _unport(number: int, spec: Raw) -> None:
    for container in _containers(spec):
        container["ports"] = [port for port in container.get("ports", ()) if port["hostPort"] != number]


def _containers(spec: Raw) -> list[Raw]:
    return [*spec.get("containers", ()), *spec.get("initContainers", ())]


def _terms(spec: Raw) -> Any:
    required: Any = spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    return required.get("nodeSelectorTerms", ())


def _emptied(spec: Raw) -> None:
    """Expressions that went; a term that lost all lets everything in."""
    for term in _terms(spec):
        before = [one for field in ("matchExpressions", "matchFields") for one in term.get(field, ())]
        for field in ("matchExpressions", "matchFields"):
            if field in term:
                term[field] = _left(term[field])
        if before and not _left(before):
            spec.pop("affinity")
            return


def _left(found: Iterable[Raw | None]) -> list[Raw]:
    return [one for one in found if one is not None]
