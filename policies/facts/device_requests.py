"""The requests of a claim and the selectors of a class, as Kubernetes writes them. No content of an object makes these raise."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kube.tree import LARGEST, map_at, maps_in, text_of
from policies.document import UNREAD

TEMPLATE = "ResourceClaimTemplate"


class RequestChoice(NamedTuple):
    """One way to satisfy a request for devices (k8s.io/api/resource/v1 ExactDeviceRequest,
    DeviceSubRequest)."""

    device_class: str
    least: int = 1
    most: int | None = 1
    """The most devices; None if unknown (``allocationMode: All`` or one that is not known, or a count that cannot be read)."""
    admin: bool = False
    """``adminAccess``: the request gets devices that are in use by others."""
    tolerations: str = ""
    """Tolerations of device taints, as ``TolerationsJson``."""

    def read_tolerations(self) -> list[dict[str, Any]]:
        """Return the tolerations as they are written."""
        parsed: list[dict[str, Any]] = json.loads(self.tolerations) if self.tolerations else []
        return parsed


Claim = tuple[tuple[RequestChoice, ...], ...]
"""The ways to satisfy each request: one, or as many as ``firstAvailable`` lists."""
UNREAD_CLAIM: Claim = ((RequestChoice("", 1, None),),)
"""A claim of which nothing but the name is known: it may ask for any number of any devices."""
Place = tuple[str | int, ...]


class WrittenRequest(NamedTuple):
    """One way to satisfy a request, where it stands in the object."""

    path: Place
    """``("spec", "devices", "requests", 0, "exactly")``: of the map with deviceClassName and selectors."""
    request: int
    way: int | None
    """The index in ``firstAvailable``; None outside of it."""
    value: Mapping[Any, Any]


class DeviceClass(NamedTuple):
    """The fields of a DeviceClass that are read."""

    driver: str = ""
    """The only driver that the selectors admit; "" if they do not name one."""
    extended: str = ""
    """``extendedResourceName``, by which pods may ask for its devices instead of by a claim (KEP-5004)."""
    equal: tuple[tuple[str, str], ...] = ()
    """The values that the selectors demand of attributes, by qualified name: ``("gpu.nvidia.com/type", "mig")``."""
    plain: bool = False
    """True if the selectors demand nothing else."""


# --- claims ------------------------------------------------------------------------------------------------------------


def spec_path(kind: str) -> tuple[str, ...]:
    """Return the path of the claim's spec in an object of this kind."""
    return ("spec", "spec") if kind == TEMPLATE else ("spec",)


def claim(kind: str, thing: Any) -> Claim:
    """Return the requests of a claim or template."""
    if UNREAD in thing:
        return UNREAD_CLAIM
    ways: dict[int, list[RequestChoice]] = {index: [] for index, _ in _requests(kind, thing)}
    for one in written_requests(kind, thing):
        ways[one.request].append(choice(one.value))
    return tuple(map(tuple, ways.values()))


class TolerationsJson(str):
    """Tolerations of device taints as JSON, which takes a fifth of the memory; "" for none."""

    __slots__ = ()


def slimmed(kind: str, thing: Any) -> dict[str, Any]:
    """Return the spec of a claim or template with nothing but what ``claim`` reads of it, and tolerations as ``TolerationsJson``: no
    selectors, constraints or parameters of drivers."""
    ways: dict[int, list[dict[str, Any]]] = {index: [] for index, _ in _requests(kind, thing)}
    for one in written_requests(kind, thing):
        way = {name: one.value[name] for name in _READ if name in one.value}
        ways[one.request].append(way | {"tolerations": _tolerations(one.value)})
    requests = [{"firstAvailable": some} if len(some) > 1 else {"exactly": some[0]} for some in ways.values()]
    spec = {"devices": {"requests": requests}}
    return {"spec": spec} if kind == TEMPLATE else spec


_READ = ("deviceClassName", "count", "allocationMode", "adminAccess")
"""The fields that ``choice`` reads beside tolerations."""


def written_requests(kind: str, thing: Any) -> Iterator[WrittenRequest]:
    """Yield the ways to satisfy each request. v1beta1 has the fields of ``exactly`` in place; ``firstAvailable``
    lists alternatives, the preferred one first."""
    root = (*spec_path(kind), "devices", "requests")
    for i, request in _requests(kind, thing):
        ways = request.get("firstAvailable")
        several = [(j, way) for j, way in enumerate(ways) if isinstance(way, Mapping)] if isinstance(ways, list) else []
        for j, way in several:
            yield WrittenRequest((*root, i, "firstAvailable", j), i, j, way)
        if not several:
            exactly = map_at(request, "exactly")
            yield WrittenRequest((*root, i, "exactly") if exactly else (*root, i), i, None, exactly or request)


def _requests(kind: str, thing: Any) -> Iterator[tuple[int, Mapping[Any, Any]]]:
    requests = map_at(thing, *spec_path(kind), "devices").get("requests")
    return ((i, item) for i, item in enumerate(requests if isinstance(requests, list) else ()) if isinstance(item, Mapping))


_COUNTED = (None, "", "ExactCount")
"""Modes in which ``count`` says how many; more may be added (k8s.io/api/resource/v1 ExactDeviceRequest)."""


def choice(value: Mapping[Any, Any]) -> RequestChoice:
    """Return one way to satisfy a request."""
    least, most = _count(value.get("count")) if value.get("allocationMode") in _COUNTED else (1, None)
    is_admin = value.get("adminAccess") is True
    return RequestChoice(text_of(value.get("deviceClassName")), least, most, is_admin, _tolerations(value))


def _tolerations(value: Mapping[Any, Any]) -> TolerationsJson:
    tolerations = value.get("tolerations")
    if isinstance(tolerations, TolerationsJson):
        return tolerations
    maps = list(maps_in(tolerations))
    try:
        return TolerationsJson(json.dumps(maps, separators=(",", ":"), skipkeys=True, default=str) if maps else "")
    except (RecursionError, ValueError):  # none that an API server admits: the worst is assumed
        return TolerationsJson('[{"operator":"Exists"}]')


def expressions(value: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the CEL of the selectors of a class, or of one way to satisfy a request; "" for one that is no text."""
    return tuple(text_of(map_at(selector, "cel").get("expression")) for selector in maps_in(value.get("selectors")))


def _count(value: Any) -> tuple[int, int | None]:
    """Return (least, most) of a count. Absent and 0 mean 1 (k8s.io/kubernetes
    pkg/apis/resource/v1/defaults.go); a value that is no valid count is at least 1, with no known upper
    bound."""
    if value is None:
        return 1, 1
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < LARGEST:
        return 1, None
    return value or 1, value or 1


# --- classes -----------------------------------------------------------------------------------------------------------

_DRIVER = re.compile(r"""device\.driver\s*==\s*["']([^"'\\]+)["']""")
"""The CEL by which every published DeviceClass names its driver (k8s.io/api/resource/v1 DeviceSelector)."""
_ATTRIBUTE = re.compile(r"""device\.attributes\[["']([^"'\\]+)["']\]\.(\w+)\s*==\s*("[^"\\]*"|'[^'\\]*')""")
_STRINGS = re.compile(r""""[^"\\]*"|'[^'\\]*'""")
_AMONG = re.compile(rf"""device\.attributes\[["']([^"'\\]+)["']\]\.(\w+)\s+in\s+\[\s*((?:(?:{_STRINGS.pattern})[\s,]*)+)\]""")
_TOKEN = re.compile(
    r"""(?P<odd>//|[rRbB]["']|\"{3}|'{3})|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|(?P<lone>["'])"""
    r"""|(?P<both>&&)|(?P<open>[(\[{])|(?P<close>[)\]}])|.""",
    re.DOTALL,
)
"""What tells which ``&&`` of CEL stands outside of brackets and strings. ``odd``: comments, and strings other than plain ones."""
_NESTED = 8
"""Brackets around brackets that are looked into."""


def device_class(thing: Any) -> DeviceClass:
    """Return what a DeviceClass demands. Selectors, and the parts of one, are ANDed: so one part that names a driver is enough. An
    OR, a conditional or a negation is not evaluated."""
    spec = map_at(thing, "spec")
    driver, equal, plain = "", {}, True
    for text in expressions(spec):
        for part in [""] if _is_unread(text) else _demanded(text):
            if (found := _DRIVER.fullmatch(part)) is not None:
                driver = driver or found[1]
            elif (found := _ATTRIBUTE.fullmatch(part)) is not None:
                equal[f"{found[1]}/{found[2]}"] = found[3][1:-1]
            else:
                plain = False
    return DeviceClass(driver, text_of(spec.get("extendedResourceName")), tuple(sorted(equal.items())), plain)


def selected_values(texts: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the values that selectors together leave to attributes, by qualified name: of parts ``==`` and ``in`` that are ANDed. An OR,
    a conditional or a negation is not evaluated, as in a class."""
    left: dict[str, frozenset[str]] = {}
    for part in (part for text in texts if not _is_unread(text) for part in _demanded(text)):
        if (match := _ATTRIBUTE.fullmatch(part)) is None and (match := _AMONG.fullmatch(part)) is None:
            continue
        name, values = f"{match[1]}/{match[2]}", frozenset(text[1:-1] for text in _STRINGS.findall(match[3]))
        left[name] = left.get(name, values) & values
    return left


def _is_unread(text: str) -> bool:
    return any(mark in text for mark in ("||", "?", "!"))


def _demanded(text: str, nested: int = _NESTED) -> list[str]:
    """Return the parts of CEL that are ANDed, without brackets around them. A part inside of a call or of a comparison demands
    nothing: ``(false && device.driver == "x") == false`` is true of every device."""
    whole = text.strip()
    parts = _split(whole)
    if len(parts) > 1:
        return [one for part in parts for one in _demanded(part, nested)]
    if nested and whole.startswith("(") and whole.endswith(")") and _split(whole[1:-1]):
        return _demanded(whole[1:-1], nested - 1)
    return [whole if parts else ""]


def _split(text: str) -> list[str]:
    """Return what stands between two ``&&`` outside of brackets; nothing if the text can't be read."""
    depth, start, found = 0, 0, list[str]()
    for token in _TOKEN.finditer(text):
        depth += (token["open"] is not None) - (token["close"] is not None)
        if token["odd"] is not None or token["lone"] is not None or depth < 0:
            return []
        if token["both"] is not None and not depth:
            found.append(text[start : token.start()])
            start = token.end()
    return [] if depth else [*found, text[start:]]


def of_compute_domain(value: Any) -> Any:
    """Return the ResourceClaimTemplate that NVIDIA's DRA driver creates for a ComputeDomain, for a channel and no GPU (k8s-dra-driver-gpu,
    cmd/compute-domain-controller); any other value unchanged. Where Berth serves, it awaits that template and reads it like any other."""
    if not isinstance(value, dict) or value.get("kind") != "ComputeDomain":
        return value
    if text_of(value.get("apiVersion")).partition("/")[0] != "resource.nvidia.com":
        return value
    name = map_at(value, "spec", "channel", "resourceClaimTemplate").get("name")
    request = {"name": "channel", "exactly": {"deviceClassName": "compute-domain-default-channel.nvidia.com"}}
    metadata = {**map_at(value, "metadata"), "name": name}
    spec = {"spec": {"devices": {"requests": [request]}}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": TEMPLATE, "metadata": metadata, "spec": spec}
