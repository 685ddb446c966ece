"""What others tell of a pod: the scheduler, Karpenter, controllers, Kueue, in their own words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from analysis.why.explanation import Told
from analysis.why.surroundings import Surroundings
from kube.tree import Raw, map_at, maps_in, text_of
from registration.configurations import DOMAIN

MOST_TOLD = 6
"""Things told that are shown: the newest of each reporter and reason."""
_NOISE = ("Pulled", "Pulling", "Created", "Started", "Scheduled", "SuccessfulCreate", "ScalingReplicaSet", "SuccessfulDelete", "Completed")
"""Reasons of events that tell nothing of why a pod waits."""


def collect_messages(asked: Surroundings, pod: Raw | None) -> Iterator[Told]:
    """Yield what the scheduler, Karpenter, controllers and Kueue tell: the newest of each."""
    newest: dict[tuple[str, str], Told] = {}
    for one in maps_in(map_at(pod, "status").get("conditions")) if pod is not None else ():
        if one.get("type") == "PodScheduled" and one.get("status") != "True":
            newest["scheduler", "PodScheduled"] = _words("kube-scheduler", one, "lastTransitionTime")
    for event in asked.events:
        who = text_of(event.get("reportingComponent")) or text_of(map_at(event, "source").get("component")) or "?"
        reason = text_of(event.get("reason"))
        at = next((text for name in ("lastTimestamp", "eventTime", "firstTimestamp") if (text := text_of(event.get(name)))), "")
        words = Told(who, reason, at, text_of(event.get("message")))
        same = any(other.text == words.text for other in newest.values())
        if (reason not in _NOISE and not same and (who, reason) not in newest) or at > newest.get((who, reason), words).at:
            newest[who, reason] = words
    uids = {map_at(one, "metadata").get("uid") for one in (*asked.pods, *asked.owners, asked.value)}
    for workload in asked.queued:
        if uids.isdisjoint(one.get("uid") for one in maps_in(map_at(workload, "metadata").get("ownerReferences"))):
            continue
        for one in maps_in(map_at(workload, "status").get("conditions")):
            if one.get("message"):
                newest["Kueue", text_of(one.get("type"))] = _words("Kueue", one, "lastTransitionTime")
    yield from sorted(newest.values(), key=lambda one: one.at, reverse=True)[:MOST_TOLD]


def is_unanswered(told: Iterable[Told]) -> bool:
    """Return True if the newest message about pods that are not created says that the call of Berth's webhook failed
    (k8s.io/apiserver pkg/admission/plugin/webhook/errors/statuserror.go)."""
    newest = next((message.text for message in told if message.reason == "FailedCreate"), "")
    called = newest.partition('failed calling webhook "')[2].partition('"')[0]
    return called.endswith(f".{DOMAIN}")


def _words(who: str, one: Mapping[Any, Any], at: str) -> Told:
    reason = f"{text_of(one.get('type'))}={text_of(one.get('status'))} {text_of(one.get('reason'))}".strip()
    return Told(who, reason, text_of(one.get(at)), text_of(one.get("message")))
