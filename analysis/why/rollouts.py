"""Rolling updates whose new pod waits for devices that the old pods of the same Deployment hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analysis.why.explanation import PlaceKind, RolloutWait
from analysis.why.surroundings import Surroundings
from kube.node import occupant
from kube.pod import controlling_owner
from kube.requests import is_native
from kube.templates import rolling_update
from kube.tree import Raw, map_at, text_of


def find_rollout(read: Surroundings, pod: Raw, where: Sequence[PlaceKind]) -> RolloutWait | None:
    """Return the rolling update that a pod waits in; None where it is in none, or does not wait for what its Deployment holds."""
    owners = [read.value, *read.owners]
    at = next((number for number, value in enumerate(owners) if _is_deployment(value)), None)
    short = {blocker.key for place in where for blocker, _ in place.blockers if blocker.kind == "capacity" and not is_native(blocker.key)}
    if at is None or not short:
        return None
    update = rolling_update(owners[at])
    holders = [_name(other) for other in (*read.siblings, *read.pods) if _replica_set(other) != _replica_set(pod) and _holds(other, short)]
    if update is None or update.unavailable or not holders:
        return None
    above = owners[at + 1] if at + 1 < len(owners) else None
    return RolloutWait(
        deployment=_name(owners[at]),
        resource=min(short),
        surge=update.surge,
        holders=tuple(dict.fromkeys(holders)),
        owner="" if above is None else f"{text_of(above.get('kind'))} {_name(above)}",
    )


def starts_update(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether a Deployment that is applied over another one replaces its pods."""
    return bool(before) and map_at(before, "spec").get("template") != map_at(after, "spec").get("template")


def _holds(pod: Raw, resources: Iterable[str]) -> bool:
    taken = occupant(pod)
    return taken is not None and any(taken.requests.get(name, 0) > 0 for name in resources)


def _replica_set(pod: Raw) -> str:
    return text_of(controlling_owner(map_at(pod, "metadata")).get("uid"))


def _name(value: Mapping[str, Any]) -> str:
    return text_of(map_at(value, "metadata").get("name"))


def _is_deployment(value: Mapping[str, Any]) -> bool:
    return value.get("kind") == "Deployment" and text_of(value.get("apiVersion")).startswith("apps/")
