"""What was decided lately, as the cluster remembers it: Events of Berth's and of controllers whose pods were not created, and Berth's
reports. What stands in them comes from anybody who may write Events: it is shown, and nothing rests on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from analysis.audit.stored_report import KINDS as REPORT_KINDS
from analysis.audit.stored_report import StoredReport, is_ours, stored_report
from kube.tree import Raw, map_at, text_of
from policies.policy import CONTROLLER

MOST = 2000
"""Events that are held, the newest: two hours of what Berth sends at most (``cluster/status/events``)."""
EVENT_NOTE = 1024
"""The most characters of an Event's note (k8s.io/kubernetes pkg/apis/core/validation/events.go NoteLengthLimit)."""
NOT_CREATED = "FailedCreate"
"""Reason with which controllers of Kubernetes tell that a pod of theirs was denied (pkg/controller/controller_utils.go)."""


class Happening(NamedTuple):
    """One Event."""

    namespace: str
    """Of the Event: those about objects of the whole cluster are in ``default``."""
    at: str
    """As the API server writes times; the last one of an Event that counts."""
    who: str
    subject: str
    """``Job/train``"""
    reason: str
    well: bool
    text: str
    times: int


def happening(event: Mapping[str, Any]) -> Happening:
    """Read one Event of either API (v1, events.k8s.io/v1). Nothing in it makes this fail."""
    regarding = map_at(event, "involvedObject") or map_at(event, "regarding")
    series = map_at(event, "series")
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"), event.get("firstTimestamp"))
    count = series.get("count") or event.get("count") or 1
    return Happening(
        namespace=text_of(map_at(event, "metadata").get("namespace")),
        at=next((text for one in times if (text := text_of(one))), ""),
        who=text_of(event.get("reportingComponent")) or text_of(map_at(event, "source").get("component")) or "unknown",
        subject=f"{text_of(regarding.get('kind'))}/{text_of(regarding.get('name'))}",
        reason=text_of(event.get("reason")),
        well=event.get("type") != "Warning",
        text=(text_of(event.get("message")) or text_of(event.get("note")))[:EVENT_NOTE],
        times=count if isinstance(count, int) and not isinstance(count, bool) else 1,
    )


def newest(found: Iterable[Happening]) -> Sequence[Happening]:
    """Return the newest, in order."""
    return sorted(found, key=lambda one: (one.at, one), reverse=True)[:MOST]


def read_events(values: Iterable[Raw]) -> tuple[Sequence[Happening], Sequence[StoredReport]]:
    """Return what Events and reports among these objects say."""
    events, reports = [], []
    for value in values:
        if value.get("kind") == "Event" and _tells(value):
            events.append(happening(value))
        elif value.get("kind") in REPORT_KINDS and is_ours(value):
            reports.append(stored_report(value))
    return newest(events), reports


def _tells(event: Raw) -> bool:
    return (
        event.get("reason") == NOT_CREATED
        or event.get("reportingComponent") == CONTROLLER
        or event.get("reportingController") == CONTROLLER
    )
