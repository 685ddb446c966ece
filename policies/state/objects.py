"""One of Berth's own objects as the cluster stores it, and the form of it that is in force: the newest one,
or the last valid one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from catalog import Catalog
from catalog.names import CatalogNames
from policies.objects.field_types import Kind
from policies.objects.parse import Understood, understand
from policies.policy import API_VERSION, NodeTemplate, Policy

Key = tuple[str, str, str]
"""(kind, namespace, name); the namespace is "" for cluster-scoped objects."""
Acting = Policy | NodeTemplate
Change = Mapping[str, Any] | None
"""The current object, or None if it was deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEntry:
    """One object: the stored form, and the form in force."""

    kind: Kind
    namespace: str
    """Empty for cluster-scoped objects."""
    name: str
    uid: str
    generation: int
    resource_version: str
    status: Mapping[str, Any]
    understood: Understood
    acting: Acting | None
    stale: bool
    """True if the last valid form is in force, because the stored one has errors."""
    spec: str
    """The stored spec as JSON; "" if it is nested too deep to be serialized."""
    last_good: Mapping[str, Any] | None
    """{generation, spec} of the form in force; None if there is none."""

    @property
    def key(self) -> Key:
        return self.kind, self.namespace, self.name


def id_of(key: Key) -> str:
    """Return the id by which messages name the object: ``GPUPolicy/ml-team/own``."""
    return "/".join(part for part in key if part)


class ObjectReader:
    """Parses objects. No content of an object makes it raise."""

    def __init__(self, catalog: Catalog) -> None:
        self._names = CatalogNames(catalog)

    def entry(self, key: Key, value: Mapping[str, Any], before: ObjectEntry | None) -> ObjectEntry:
        """Return the entry for the current object. ``before``: the previous entry, None for a new object."""
        kind, namespace, name = key
        metadata, status = as_map(value.get("metadata")), as_map(value.get("status"))
        uid, generation = str(metadata.get("uid", "")), _whole(metadata.get("generation"))
        version = str(metadata.get("resourceVersion", ""))
        spec = _text(value)
        if before is not None and before.uid == uid and before.spec == spec and spec and not _has_new_last_good(before, status):
            return replace(before, generation=generation, resource_version=version, status=status)
        understood = self._understood(key, value)
        acting: Acting | None = understood.acting
        last_good: Mapping[str, Any] | None = {"generation": generation, "spec": value.get("spec")} if acting is not None else None
        stale = False
        if acting is None:
            acting, last_good = self._last_good(key, uid, status, before)
            stale = acting is not None
        return ObjectEntry(
            kind=cast(Kind, kind),
            namespace=namespace,
            name=name,
            uid=uid,
            generation=generation,
            resource_version=version,
            status=status,
            understood=understood,
            acting=acting,
            stale=stale,
            spec=spec,
            last_good=last_good,
        )

    def _understood(self, key: Key, value: Mapping[str, Any]) -> Understood:
        """Parse the object under the key by which the API server knows it, whatever its own metadata
        contain."""
        kind, namespace, name = key
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        own = {**value, "apiVersion": API_VERSION, "kind": kind, "metadata": metadata}
        return understand(own, cast(Kind, kind), self._names)

    def _last_good(
        self, key: Key, uid: str, status: Mapping[str, Any], before: ObjectEntry | None
    ) -> tuple[Acting | None, Mapping[str, Any] | None]:
        """Return what is in force instead of a form with errors: the form in force until now, or ``lastGood``
        of the status if that is newer. A form that was in force on another replica, and that arrived here in
        one batch with its invalid successor, is in the status alone."""
        known = (before.acting, before.last_good) if before is not None and before.uid == uid else (None, None)
        kept = as_map(status.get("lastGood"))
        generation = _whole(kept.get("generation"))
        if "spec" not in kept or (known[1] is not None and generation <= known[1]["generation"]):
            return known
        found = self._understood(key, {"spec": kept["spec"]})
        return known if found.errors else (found.acting, {"generation": generation, "spec": kept["spec"]})


def as_map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _has_new_last_good(before: ObjectEntry, status: Mapping[str, Any]) -> bool:
    """Return whether the status of an object with errors has a new ``lastGood``, from which replicas that
    never saw that form learn it."""
    return bool(before.understood.errors) and "lastGood" in status and before.status.get("lastGood") != status["lastGood"]


def _text(value: Mapping[str, Any]) -> str:
    """Return the spec as JSON, for comparison; "" if there is none, or if it is nested too deep."""
    try:
        return json.dumps(value["spec"], separators=(",", ":"), sort_keys=True) if "spec" in value else ""
    except RecursionError:  # at some 950 levels
        return ""
