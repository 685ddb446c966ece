"""Berth's reports as the cluster stores them, of each a digest of what Berth writes and the causes that it names; and the choice
between the kinds of report that a cluster may have."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from cluster.client.errors import GIVE_RIGHTS
from cluster.watch.kinds import REPORTS, Watched
from cluster.watch.reflector import Reflector
from cluster.watch.trims import kept_metadata
from kube.tree import Raw, map_at, maps_in, text_of

ReportKey = tuple[str, str]
"""(namespace, name)"""
Cause = tuple[str, str, str]
"""(policies, finding, codes) of a result: an Event is sent for each, once."""
_CONTENT = ("source", "scope", "summary", "results")
_METADATA = ("labels", "annotations", "ownerReferences")


class StoredObject(NamedTuple):
    """One report."""

    digest: str
    causes: frozenset[Cause]


def digest(report: Raw) -> str:
    """Return a digest of the parts of a report that Berth writes. Neither definition has default values, so it is the
    same for what is sent and what is stored."""
    metadata = map_at(report, "metadata")
    parts = {name: report.get(name) for name in _CONTENT} | {name: metadata.get(name) or None for name in _METADATA}
    return hashlib.blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()


def causes(report: Raw) -> frozenset[Cause]:
    """Return the causes that its results name."""
    return frozenset(map(cause_of, maps_in(report.get("results"))))


def cause_of(result: Mapping[str, Any]) -> Cause:
    """Return the cause of one result."""
    properties = map_at(result, "properties")
    return text_of(result.get("policy")), text_of(properties.get("finding")), text_of(properties.get("codes"))


def _trimmed(value: Raw, api_version: str, kind: str) -> Raw:
    return {"metadata": kept_metadata(value), "stored": as_stored(value)}


def as_stored(report: Raw) -> StoredObject:
    """Return the report as it is remembered."""
    return StoredObject(digest(report), causes(report))


FORMS = tuple(replace(kind, trim=_trimmed) for kind in REPORTS)
"""The kinds of report, as the writer follows them."""


class StoredReports:
    """The store of a reflector of one of ``FORMS``."""

    def __init__(self, filled: asyncio.Event) -> None:
        self._filled = filled
        self.reports: dict[ReportKey, StoredObject] = {}
        self._changed: set[ReportKey] = set()

    async def replace(self, kind: str, objects: Sequence[Raw]) -> None:
        """Take a full list."""
        listed: dict[ReportKey, StoredObject] = {_key(one): one["stored"] for one in objects}
        self._changed |= {key for key in self.reports.keys() | listed.keys() if self.reports.get(key) != listed.get(key)}
        self.reports = listed
        self._filled.set()

    def put(self, kind: str, obj: Any) -> None:
        """Take a new or changed report."""
        self.wrote(_key(obj), obj["stored"])

    def remove(self, kind: str, obj: Any) -> None:
        """Take the end of a report."""
        self.wrote(_key(obj), None)

    def wrote(self, key: ReportKey, stored: StoredObject | None) -> None:
        """Take the state of one report."""
        if self.reports.get(key) == stored:
            return
        if stored is None:
            self.reports.pop(key, None)
        else:
            self.reports[key] = stored
        self._changed.add(key)
        self._filled.set()

    def changed(self) -> set[ReportKey]:
        """Return the reports that changed since the last call."""
        found, self._changed = self._changed, set()
        return found


def _key(one: Raw) -> ReportKey:
    return one["metadata"]["namespace"], one["metadata"]["name"]


GOES_ON = "statuses, Events and `berth audit` still work"


class ReportForm(NamedTuple):
    """A kind of report, and what is known of its objects."""

    watched: Watched
    followed: Reflector
    stored: StoredReports

    @property
    def api_version(self) -> str:
        return self.watched.api_version(self.watched.versions[0])

    @property
    def usable(self) -> bool:
        """True if the cluster has the kind, and Berth may read it."""
        return self.followed.healthy and not self.followed.absent

    def path(self, key: ReportKey) -> str:
        """Return the URL path of one report."""
        return self.watched.path(self.watched.versions[0], *key)


def choice(forms: Sequence[ReportForm]) -> tuple[ReportForm | None, str]:
    """Return the first form that can be used, if there is one, and what to log of it."""
    usable = next((form for form in forms if form.usable), None)
    if usable is not None:
        return usable, f"reports are written as {usable.watched.resource}"
    if all(form.followed.absent for form in forms):
        return None, f"no report CRD is installed: install those of OpenReports (openreports.io); {GOES_ON}"
    return None, f"Berth may not read reports: {GIVE_RIGHTS}; {GOES_ON}"
