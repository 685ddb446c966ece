"""One of our objects as a cluster stores it, and what of it acts: its newest form, or the last one that was understood."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from policies.catalog import Catalog
from policies.catalog.names import Names
from policies.objects.parse import Understood, understand
from policies.objects.shape import Kind
from policies.policy import API_VERSION, NodeTemplate, Policy

Key = tuple[str, str, str]
"""(kind, namespace or "", name)"""
Change = Mapping[str, Any] | None
"""an object as it is now, or None: it is gone"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One of our objects: what is stored, and what of it acts."""

    kind: Kind
    namespace: str
    """"" of those of the cluster"""
    name: str
    uid: str
    generation: int
    resource_version: str
    status: Mapping[str, Any]
    understood: Understood
    acting: Policy | NodeTemplate | None
    stale: bool
    """what acts is its last good form, because what is stored is not understood"""
    spec: str
    """as stored, JSON; "" where it is nested too deep to be written"""
    last_good: Mapping[str, Any] | None
    """{generation, spec} of what acts; None where nothing does"""

    @property
    def key(self) -> Key:
        return self.kind, self.namespace, self.name


def id_of(key: Key) -> str:
    """``GPUPolicy/ml-team/own``, as policies are named in messages."""
    return "/".join(part for part in key if part)


class Stored:
    """Reads objects. Whatever is in one, nothing is raised."""

    def __init__(self, catalog: Catalog) -> None:
        self._names = Names(catalog)

    def entry(self, key: Key, value: Mapping[str, Any], before: Entry | None) -> Entry:
        """As it is now. ``before``: what was known of it; None of a new one."""
        kind, namespace, name = key
        metadata, status = as_map(value.get("metadata")), as_map(value.get("status"))
        uid, generation = str(metadata.get("uid", "")), _whole(metadata.get("generation"))
        version = str(metadata.get("resourceVersion", ""))
        spec = _text(value)
        if before is not None and before.uid == uid and before.spec == spec and spec and not _told_of_good(before, status):
            return replace(before, generation=generation, resource_version=version, status=status)
        understood = self._understood(key, value)
        acting: Policy | NodeTemplate | None = understood.policy or understood.template
        last_good: Mapping[str, Any] | None = {"generation": generation, "spec": value.get("spec")} if acting is not None else None
        stale = False
        if acting is None:
            acting, last_good = self._last_good(key, uid, status, before)
            stale = acting is not None
        return Entry(
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
        """By the key that the API server knows it by: its own metadata may have been written past it."""
        kind, namespace, name = key
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        own = {**value, "apiVersion": API_VERSION, "kind": kind, "metadata": metadata}
        return understand(own, cast(Kind, kind), self._names)

    def _last_good(
        self, key: Key, uid: str, status: Mapping[str, Any], before: Entry | None
    ) -> tuple[Policy | NodeTemplate | None, Mapping[str, Any] | None]:
        """What acts in place of a form that is not understood: what did until now, or what the status has kept of it, whichever is
        newer. A form that was in force elsewhere, and here came in one batch with the wrong one, is in the status alone."""
        known = (before.acting, before.last_good) if before is not None and before.uid == uid else (None, None)
        kept = as_map(status.get("lastGood"))
        generation = _whole(kept.get("generation"))
        if "spec" not in kept or (known[1] is not None and generation <= known[1]["generation"]):
            return known
        found = self._understood(key, {"spec": kept["spec"]})
        return known if found.errors else (found.policy or found.template, {"generation": generation, "spec": kept["spec"]})


def as_map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _told_of_good(before: Entry, status: Mapping[str, Any]) -> bool:
    """Whether the status of an object that is wrong has another last good form now: replicas that have not seen it learn of it."""
    return bool(before.understood.errors) and "lastGood" in status and before.status.get("lastGood") != status["lastGood"]


def _text(value: Mapping[str, Any]) -> str:
    """Its spec, to tell whether that is another one; "" where it has none, or what is too deep to be compared."""
    try:
        return json.dumps(value["spec"], separators=(",", ":"), sort_keys=True) if "spec" in value else ""
    except RecursionError:  # at some 950 levels
        return ""
