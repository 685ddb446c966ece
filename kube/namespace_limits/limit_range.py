"""LimitRange: the amounts that it gives containers without any, and those that it refuses (k8s.io/kubernetes 1.37
plugin/pkg/admission/limitranger/admission.go, with the defaults of pkg/apis/core/v1/defaults.go)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kube.namespace_limits.refusal import Refusal
from kube.pod import CONTAINERS, containers_of
from kube.quantity import QuantityError, parse
from kube.requests import limits, requests, to_units
from kube.tree import Path, Raw, map_at, maps_in, text_of


class Limit(NamedTuple):
    """One item of ``spec.limits``; amounts as they are written."""

    type: str
    """``Container``, ``Pod`` or ``PersistentVolumeClaim``."""
    min: Mapping[str, Any]
    max: Mapping[str, Any]
    ratio: Mapping[str, Any]
    """``maxLimitRequestRatio``"""
    default: Mapping[str, Any]
    """The limits of containers that set none."""
    default_request: Mapping[str, Any]


class LimitRange(NamedTuple):
    """One LimitRange."""

    name: str
    limits: tuple[Limit, ...]


def read_limit_range(thing: Mapping[str, Any]) -> LimitRange:
    """Return a LimitRange with the defaults that the API server fills in (``SetDefaults_LimitRangeItem``)."""
    items = tuple(_limit(item) for item in maps_in(map_at(thing, "spec").get("limits")))
    return LimitRange(text_of(map_at(thing, "metadata").get("name")), items)


def _limit(item: Mapping[Any, Any]) -> Limit:
    type_ = text_of(item.get("type"))
    least, most = map_at(item, "min"), map_at(item, "max")
    default, default_request = map_at(item, "default"), map_at(item, "defaultRequest")
    if type_ == "Container":
        default = {**most, **default}
        default_request = {**least, **default, **default_request}
    return Limit(type_, least, most, map_at(item, "maxLimitRequestRatio"), default, default_request)


def with_defaults(pod: Raw, ranges: Iterable[LimitRange]) -> Raw:
    """Return a pod as webhooks get it: its containers with the default limits and requests. The same object if nothing is added."""
    spec: Raw = dict(map_at(pod, "spec"))
    for limit in (limit for limit_range in ranges for limit in limit_range.limits if limit.type == "Container"):
        for field in CONTAINERS:
            if isinstance(spec.get(field), list):
                spec[field] = [_filled(item, limit) if isinstance(item, dict) else item for item in spec[field]]
    return pod if spec == map_at(pod, "spec") else {**pod, "spec": spec}


def _filled(container: Raw, limit: Limit) -> Raw:
    """Return a container with the defaults of one item. A request that the author left out is the limit of the author's, which the API
    server has filled in by then."""
    resources = map_at(container, "resources")
    own = {side: map_at(resources, side) for side in ("limits", "requests")}
    added = {
        "limits": {name: amount for name, amount in limit.default.items() if name not in own["limits"]},
        "requests": {n: amount for n, amount in limit.default_request.items() if n not in own["requests"] and n not in own["limits"]},
    }
    if not any(added.values()):
        return container
    return {**container, "resources": {**resources, **{side: {**own[side], **more} for side, more in added.items() if more or own[side]}}}


_FIRST: Path = ("spec", "containers", 0, "resources")
"""Where an amount that the whole pod lacks may be set."""


class _Bounded(NamedTuple):
    """Requests and limits of one container, or of the whole pod, in the units of ``kube.requests``."""

    container: str
    path: Path
    requests: Mapping[str, int]
    limits: Mapping[str, int]


def limit_range_refusals(spec: Mapping[Any, Any], ranges: Iterable[LimitRange]) -> Iterator[Refusal]:
    """Yield what LimitRanges refuse of a pod with this spec, which has their defaults (``PodValidateLimitFunc``)."""
    whole = {key: value for key, value in spec.items() if key != "overhead"}
    of_pod = _Bounded("", _FIRST, requests(whole).amounts, limits(whole).amounts)
    for limit_range in ranges:
        for limit in limit_range.limits:
            levels = _containers(spec) if limit.type == "Container" else [of_pod] if limit.type == "Pod" else ()
            for level in levels:
                yield from _outside(limit_range.name, limit, level)


def _containers(spec: Mapping[Any, Any]) -> Iterator[_Bounded]:
    for path, container in containers_of(spec):
        resources = map_at(container, "resources")
        limited = map_at(resources, "limits")
        requested = {**limited, **map_at(resources, "requests")}
        yield _Bounded(text_of(container.get("name")), (*path, "resources"), _read(requested), _read(limited))


def _read(amounts: Mapping[Any, Any]) -> dict[str, int]:
    read = ((text_of(name), to_units(text_of(name), amount)) for name, amount in amounts.items())
    return {name: amount for name, amount in read if amount is not None}


def _below_request(limit: Limit, level: _Bounded) -> Iterator[tuple[str, int, int]]:
    """Yield (resource, request, limit) where the limit is the one that this item fills in, and too small for the request."""
    for resource, filled in _read(limit.default).items():
        request = level.requests.get(resource, 0)
        if request > filled and level.limits.get(resource) == filled and resource not in limit.max:
            yield resource, request, filled


def _outside(name: str, limit: Limit, level: _Bounded) -> Iterator[Refusal]:
    """Yield each bound that requests or limits break (``minConstraint``, ``maxConstraint``, ``limitRequestRatioConstraint``), and each
    default limit that is below the request (pkg/apis/core/validation ``ValidateResourceRequirements``)."""
    if level.container:
        for resource, need, filled in _below_request(limit, level):
            yield _refusal("default", name, resource, need, filled, level, "limits")
    for resource, least in _read(limit.min).items():
        request, limited = level.requests.get(resource), level.limits.get(resource)
        if request is None or request < least:
            yield _refusal("min", name, resource, request, least, level, "requests")
        elif limited is not None and limited < least:
            yield _refusal("min", name, resource, limited, least, level, "limits")
    for resource, most in _read(limit.max).items():
        request, limited = level.requests.get(resource), level.limits.get(resource)
        if limited is None or limited > most:
            yield _refusal("max", name, resource, limited, most, level, "limits")
        elif request is not None and request > most:
            yield _refusal("max", name, resource, request, most, level, "requests")
    for resource, text in limit.ratio.items():
        request, limited = level.requests.get(resource, 0), level.limits.get(resource, 0)
        try:
            ratio = parse(text)
        except QuantityError:
            continue
        if not request or not limited or limited > ratio * request:
            yield _refusal("ratio", name, resource, limited or None, int(ratio * request), level, "limits" if request else "requests")


def _refusal(kind: Any, name: str, resource: str, need: int | None, hard: int, level: _Bounded, side: str) -> Refusal:
    return Refusal(kind, name, resource, need, hard, container=level.container, path=(*level.path, side, resource))
