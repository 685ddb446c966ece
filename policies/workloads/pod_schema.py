"""Check that a pod, or a pod template, has the types that the rules read; an error is bad input and has its
path.

Only types are checked, of the fields that rules read: the API server decodes before it calls a webhook, but a
manifest has passed no decoder yet. Values are for the API server to validate, except amounts of accelerators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog import Catalog
from kube.tree import Path, kind_of
from policies.document import Document
from policies.pods.projection import ANY_KEY, POD, PodField, Shape


def check(document: Document, pod: Any, at: Path, catalog: Catalog) -> None:
    """Raise InputError unless ``pod``, which stands at ``at`` of the object, can be judged.

    Null counts as absent, as in Kubernetes; but a pod has a spec with containers.
    """
    if not isinstance(pod, dict):
        raise document.error(at, f"must be a pod template, a map with metadata and spec; found {kind_of(pod)}")
    containers = map_at(document, pod.get("spec"), (*at, "spec"), null=False).get("containers")
    if not isinstance(containers, list) or not containers:
        found = "an empty list" if containers == [] else kind_of(containers)
        raise document.error((*at, "spec", "containers"), f"must be a list of containers; found {found}")
    _check_shape(document, pod, POD, at)
    _check_amounts(document, pod["spec"], (*at, "spec"), catalog)


def _check_shape(document: Document, value: Any, shape: Shape, at: Path) -> None:
    """Compare a value that is not null with its shape, recursively. Raises InputError."""
    if isinstance(shape, PodField):
        shape = shape.shape
    if shape is str:
        if not isinstance(value, str):
            quotes = "; put it in quotes" if isinstance(value, int | float) else ""
            raise document.error(at, f"must be text; found {kind_of(value)}{quotes}")
    elif shape is int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise document.error(at, f"must be a whole number; found {kind_of(value)}")
    elif isinstance(shape, list):
        for number, item in enumerate(list_at(document, value, at)):
            _check_shape(document, item, shape[0], (*at, number))
    elif isinstance(shape, dict):
        _check_fields(document, map_at(document, value, at, null=False), shape, at)


def _check_fields(document: Document, value: Mapping[str, Any], shape: Mapping[str, Shape], at: Path) -> None:
    every = shape.get(ANY_KEY)
    for name, inner in value.items():
        wanted = every or shape.get(name)
        if wanted is not None and inner is not None:
            _check_shape(document, inner, wanted, (*at, name))


def _check_amounts(document: Document, spec: Mapping[str, Any], at: Path, catalog: Catalog) -> None:
    """Raise InputError if an amount of an accelerator is neither a text nor a number.

    Whether it is a quantity is judged with the pod (BERTH-102). All other amounts are read by the API server
    alone.
    """
    for group in ("initContainers", "containers"):
        for number, container in enumerate(spec.get(group) or ()):
            resources = container.get("resources") or {}
            for side in ("limits", "requests"):
                for name, amount in (resources.get(side) or {}).items():
                    if amount is not None and catalog.resource(name) is not None:
                        _check_amount(document, (*at, group, number, "resources", side, name), amount)


def _check_amount(document: Document, path: Path, amount: object) -> None:
    if isinstance(amount, bool) or not isinstance(amount, str | int | float):
        raise document.error(path, f"must be a quantity such as 1; found {kind_of(amount)}")


def map_at(document: Document, value: Any, path: Path, *, null: bool = True) -> Mapping[str, Any]:
    """Return ``value`` as a map; where ``null`` is allowed it reads as empty. Raises InputError."""
    if value is None and null:
        return {}
    if not isinstance(value, dict):
        raise document.error(path, f"must be a map; found {kind_of(value)}")
    return value


def list_at(document: Document, value: Any, path: Path) -> list[Any]:
    """Return ``value`` as a list; null reads as empty. Raises InputError."""
    if value is not None and not isinstance(value, list):
        raise document.error(path, f"must be a list; found {kind_of(value)}")
    return value or []
