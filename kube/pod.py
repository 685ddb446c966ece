"""A read-only view of a pod: the only file that knows its shape. The pod itself stays the dict it came as.

A field that is null or absent reads as empty, as the API server reads it. A field of the wrong type raises
PodError with its path: no answer is given on a guess.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kube.labels import OLDER_NAMES, OS
from kube.quantity import QuantityError, parse
from kube.tree import Path, Raw, dotted, maps_in

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ANNOTATIONS: Path = ("metadata", "annotations")
OWNERS: Path = ("metadata", "ownerReferences")
NODE_NAME: Path = ("spec", "nodeName")
NODE_SELECTOR: Path = ("spec", "nodeSelector")
POD_LEVEL: Path = ("spec", "resources")
"""Requests and limits of the pod itself (KEP-2837)."""
SCHEDULER: Path = ("spec", "schedulerName")
TERMS: Path = ("spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
TOLERATIONS: Path = ("spec", "tolerations")
CONTAINERS = ("containers", "initContainers")
"""The lists of containers that take resources: an ephemeral container takes none."""
MIRROR = "kubernetes.io/config.mirror"
"""Annotation of a static pod's mirror (k8s.io/api/core/v1 MirrorPodAnnotationKey)."""
GRACE = "terminationGracePeriodSeconds"
DEADLINE = "activeDeadlineSeconds"
OF_NO_CLASS = ("priority", "preemptionPolicy")
"""What the API server writes of a pod's priority class, or of none (k8s.io/kubernetes plugin/pkg/admission/priority)."""
DEFAULT_SCHEDULER = "default-scheduler"
"""k8s.io/api core/v1 DefaultSchedulerName, which the API server writes where a pod names none."""
FINISHED = ("Succeeded", "Failed")
"""Phases in which a pod takes nothing of its node (kube-scheduler's informer of pods leaves them out)."""
PROBES = ("livenessProbe", "startupProbe")
"""Probes with a grace period of their own (KEP-2238); a readiness probe ends nothing."""


class PodError(ValueError):
    """The pod does not have the shape of a pod. ``path`` is the path of the value, ``wanted`` what belongs
    there."""

    def __init__(self, path: Path, wanted: str) -> None:
        super().__init__(f"{dotted(path)}: expected {wanted}")
        self.path = path
        self.wanted = wanted


@dataclass(frozen=True, slots=True)
class CountInterval:
    """A count that cannot be known exactly: it is no less than ``least`` and no more than
    ``most``, which is None if it has no known upper bound."""

    least: int
    most: int | None

    def __add__(self, other: CountInterval) -> CountInterval:
        if self is NONE:
            return other
        if other is NONE:
            return self
        return CountInterval(self.least + other.least, None if self.most is None or other.most is None else self.most + other.most)

    def __or__(self, other: CountInterval) -> CountInterval:
        """Return the larger of the two."""
        if self is NONE:
            return other
        if other is NONE:
            return self
        return CountInterval(max(self.least, other.least), None if self.most is None or other.most is None else max(self.most, other.most))

    def __str__(self) -> str:
        """Return ``8``, ``at least 8`` or ``1 to 8``."""
        if self.most is None:
            return f"at least {self.least}"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"

    def certainly(self, least: int | None, most: int | None) -> bool:
        """Return whether every number in the interval lies within the bounds (None: no bound)."""
        return (least is None or self.least >= least) and (most is None or (self.most is not None and self.most <= most))

    def possibly(self, least: int | None, most: int | None) -> bool:
        """Return whether some number in the interval lies within the bounds (None: no bound)."""
        if least is not None and most is not None and least > most:
            return False
        return (most is None or self.least <= most) and (least is None or self.most is None or self.most >= least)


NONE = CountInterval(0, 0)
ONE = CountInterval(1, 1)
ANY_NUMBER = CountInterval(0, None)


def of_amounts(limit: Any, request: Any, *, both: bool = False) -> CountInterval:
    """Return the devices of one container's limit and request, of which either may be absent (None): by
    limit if there is one. ``both``: where the API server lets the two differ, as it does for DRA's
    extended resources, the scheduler allocates by the request, so the number lies between them. A fraction
    is rounded up, as the scheduler rounds (k8s.io/apimachinery Quantity.Value)."""
    counts = [_whole(amount) for amount in (limit, request) if amount is not None]
    if len(counts) > 1 and both:
        most = None if any(count.most is None for count in counts) else max(count.most or 0 for count in counts)
        return CountInterval(min(count.least for count in counts), most)
    return counts[0] if counts else NONE


def _whole(amount: Any) -> CountInterval:
    try:
        number = parse(amount)
    except QuantityError:
        return ANY_NUMBER
    if number.numerator < 0:
        return ANY_NUMBER
    whole = number.numerator if number.denominator == 1 else math.ceil(number)
    return CountInterval(whole, whole)


def mapping_at(parent: Mapping[str, Any], key: str, path: Path) -> Raw:
    """Return ``parent[key]`` as a map; {} if it is absent or null. Raises PodError."""
    value = parent.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise PodError((*path, key), "a map")
    return value


def list_at(parent: Mapping[str, Any], key: str, path: Path) -> list[Raw]:
    """Return ``parent[key]`` as a list of maps; [] if it is absent or null. Raises PodError."""
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise PodError((*path, key), "a list")
    for item in value:
        if not isinstance(item, dict):
            raise PodError((*path, key, value.index(item)), "a map")
    return value


def text_at(parent: Mapping[str, Any], key: str, path: Path) -> str:
    """Return ``parent[key]`` as text; "" if it is absent or null. Raises PodError."""
    value = parent.get(key)
    if value is not None and not isinstance(value, str):
        raise PodError((*path, key), "a string")
    return value or ""


def containers_of(spec: Mapping[Any, Any]) -> Iterator[tuple[Path, Mapping[Any, Any]]]:
    """Yield each container and init container in the spec of a pod, whatever its shape, with its path in the pod."""
    for field in CONTAINERS:
        for i, container in enumerate(maps_in(spec.get(field))):
            yield ("spec", field, i), container


def controlling_owner(metadata: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the reference to the controlling owner of any object; {} if it has none (k8s.io/apimachinery pkg/apis/meta/v1
    ``GetControllerOf``)."""
    return next((owner for owner in maps_in(metadata.get("ownerReferences")) if owner.get("controller") is True), {})


def field_of(path: Sequence[str | int]) -> str:
    """Return the field of a pod that a path leads into: ``tolerations``, ``affinity``, ``resources`` of a container, or the key of
    a label or annotation."""
    if path[0] == "metadata":
        return str(path[2] if len(path) > 2 else path[-1])
    return str(path[3] if len(path) > 3 and path[1] in CONTAINERS else path[min(1, len(path) - 1)])


def _check_term(term: Raw, path: Path) -> None:
    """Check that key, operator and values of a node selector term's requirements are text. Raises
    PodError."""
    for field in ("matchExpressions", "matchFields"):
        for j, requirement in enumerate(list_at(term, field, path)):
            where = (*path, field, j)
            text_at(requirement, "key", where)
            text_at(requirement, "operator", where)
            values = requirement.get("values") or []
            if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
                raise PodError((*where, "values"), "a list of strings")


class Container(NamedTuple):
    """One container or init container, with its path."""

    raw: Raw
    path: Path
    sidecar: bool
    requests: Mapping[str, Any]
    limits: Mapping[str, Any]
    resource_names: tuple[str, ...]
    """Every name in limits or requests, limits first, each once."""

    @property
    def name(self) -> str:
        return str(self.raw.get("name", ""))

    @property
    def init(self) -> bool:
        return self.path[1] == "initContainers"

    def amount(self, name: str) -> Any:
        """Return the amount by limit if present, else by request, else None."""
        return self.limits.get(name, self.requests.get(name))


def _containers(spec: Raw, field: str) -> Iterator[Container]:
    for i, raw in enumerate(list_at(spec, field, ("spec",))):
        path: Path = ("spec", field, i)
        resources = mapping_at(raw, "resources", path)
        where = (*path, "resources")
        sidecar = field == "initContainers" and raw.get("restartPolicy") == "Always"
        requests, limits = mapping_at(resources, "requests", where), mapping_at(resources, "limits", where)
        yield Container(raw, path, sidecar, requests, limits, tuple({**limits, **requests}))


def _pod_level(spec: Raw) -> tuple[Raw, Raw] | None:
    """Return (requests, limits) of the pod itself (KEP-2837); None if it has none, which differs from an
    empty map."""
    if spec.get("resources") is None:
        return None
    resources = mapping_at(spec, "resources", POD_LEVEL[:1])
    return mapping_at(resources, "requests", POD_LEVEL), mapping_at(resources, "limits", POD_LEVEL)


class Pod:
    """A view of one pod. Everything but the properties is read once, by the constructor, which raises
    PodError."""

    __slots__ = (
        "annotations", "containers", "labels", "metadata", "node_name", "node_selector", "owner",
        "raw", "required", "scheduler", "spec", "terms", "tolerations",
    )  # fmt: skip

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self.metadata = mapping_at(raw, "metadata", ())
        self.spec = mapping_at(raw, "spec", ())
        self.annotations = mapping_at(self.metadata, "annotations", ("metadata",))
        self.labels = mapping_at(self.metadata, "labels", ("metadata",))
        owners = list_at(self.metadata, "ownerReferences", ("metadata",))
        self.owner = next((o for o in owners if o.get("controller")), {})
        self.containers = (*_containers(self.spec, "initContainers"), *_containers(self.spec, "containers"))
        self.node_name = text_at(self.spec, "nodeName", ("spec",))
        self.node_selector = mapping_at(self.spec, "nodeSelector", ("spec",))
        self.tolerations = list_at(self.spec, "tolerations", ("spec",))
        affinity = mapping_at(self.spec, "affinity", ("spec",))
        node_affinity = mapping_at(affinity, "nodeAffinity", TERMS[:2])
        self.required = mapping_at(node_affinity, REQUIRED, TERMS[:3])
        self.terms = list_at(self.required, "nodeSelectorTerms", TERMS[:4])
        for i, term in enumerate(self.terms):
            _check_term(term, (*TERMS, i))
        self.scheduler = text_at(self.spec, "schedulerName", ("spec",))

    @property
    def is_windows(self) -> bool:
        """True if the pod is for nodes with Windows: by ``spec.os``, or by its node selector. Raises PodError."""
        labels = (value for key, value in self.node_selector.items() if OLDER_NAMES.get(key, key) == OS)
        return mapping_at(self.spec, "os", ("spec",)).get("name") == "windows" or "windows" in labels

    @property
    def resources(self) -> tuple[Raw, Raw] | None:
        """(requests, limits) of the pod itself (KEP-2837); None if it has none. Raises PodError."""
        return _pod_level(self.spec)

    @property
    def preferred(self) -> list[Raw]:
        """The preferred node affinity terms, as written. Raises PodError."""
        affinity = mapping_at(self.spec, "affinity", ("spec",))
        node_affinity = mapping_at(affinity, "nodeAffinity", TERMS[:2])
        terms = list_at(node_affinity, PREFERRED, TERMS[:3])
        for i, term in enumerate(terms):
            path = (*TERMS[:3], PREFERRED, i)
            _check_term(mapping_at(term, "preference", path), (*path, "preference"))
        return terms

    @property
    def grace(self) -> int | None:
        """``terminationGracePeriodSeconds`` as written; the API server has already defaulted it to 30. None
        if it is absent or no whole number."""
        value = self.spec.get(GRACE)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def deadline(self) -> int | None:
        """``activeDeadlineSeconds``; None if it is absent or no whole number."""
        value = self.spec.get(DEADLINE)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def pinned_node(self) -> str | None:
        """The node that every required term names by matchFields metadata.name, as in DaemonSet pods; None if
        there is none."""
        names = {_pinned(term) for term in self.terms}
        return names.pop() if len(names) == 1 else None

    @property
    def claims(self) -> list[tuple[str, str]]:
        """(kind, name) of each resource claim: ``("ResourceClaimTemplate", "single-gpu")``."""
        out = []
        for claim in list_at(self.spec, "resourceClaims", ("spec",)):
            template = claim.get("resourceClaimTemplateName")
            kind = "ResourceClaimTemplate" if template else "ResourceClaim"
            out.append((kind, str(template or claim.get("resourceClaimName") or "")))
        return out

    @property
    def misnamed_claims(self) -> list[tuple[int, bool]]:
        """(index, True if it has both names) of each resource claim that has not exactly one name: the API server refuses the pod
        (pkg/apis/core/validation, validatePodResourceClaim)."""
        entries = enumerate(list_at(self.spec, "resourceClaims", ("spec",)))
        names = ((i, [claim.get(f"{name}Name") is not None for name in ("resourceClaim", "resourceClaimTemplate")]) for i, claim in entries)
        return [(i, all(given)) for i, given in names if sum(given) != 1]

    def devices(self, name: str, *, both: bool = False) -> CountInterval:
        """Return how many devices of one resource the pod needs at once. ``both``: see
        ``kube.pod.of_amounts``."""
        return self.at_once(lambda container: of_amounts(container.limits.get(name), container.requests.get(name), both=both))

    def at_once(self, of_container: Callable[[Container], CountInterval]) -> CountInterval:
        """Return how many of something the pod needs at once, given what each container needs:

        max(any init container plus the sidecars started before it, all containers plus all sidecars):
        k8s.io/component-helpers resource.PodRequests.
        """
        peak = sidecars = total = NONE
        for container in self.containers:
            count = of_container(container)
            if container.sidecar:
                sidecars += count
                peak |= sidecars
            elif container.init:
                peak |= sidecars + count
            else:
                total += count
        return peak | (total + sidecars)


def _pinned(term: Raw) -> str | None:
    for field in term.get("matchFields") or ():
        if field.get("key") == "metadata.name" and field.get("operator") == "In" and len(field.get("values") or ()) == 1:
            return str(field["values"][0])
    return None


def is_requested(container: Container, name: str) -> bool:
    """Return True unless limit and request are absent or zero. An amount that cannot be read counts as
    asked for."""
    for amounts in (container.limits, container.requests):
        if name in amounts:
            try:
                if parse(amounts[name]):
                    return True
            except QuantityError:
                return True
    return False
