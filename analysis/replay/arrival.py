"""The pod of an audit event as webhooks met it. The event has the pod as its author sent it, with the defaults of the
API server; its built-in plugins, and webhooks that are called earlier, have changed it since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analysis.replay import effects
from kube.pod import CONTAINERS, NODE_SELECTOR
from kube.tree import Raw, apply_patch, map_at, maps_in
from policies.pods.projection import ORDINARY

_SECONDS = 300
_ADDED: tuple[Raw, ...] = tuple(
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
    for name in ("not-ready", "unreachable")
)
"""What DefaultTolerationSeconds, which is on unless it is turned off, adds to every pod without them
(plugin/pkg/admission/defaulttolerationseconds)."""


def as_met(pod: Raw, stored: Mapping[str, Any] | None, before: Iterable[Sequence[object]], all_patches: Iterable[object]) -> Raw:
    """Return the pod as Berth's webhook met it; ``pod`` is not changed.

    ``stored``: the pod in the answer, if the event has it. ``before``: patches of webhooks that were called earlier.
    ``all_patches``: the operations of every webhook's patch. A patch that does not fit is left out.
    """
    if stored is not None:
        pod = _as_completed(pod, stored, all_patches)
    pod = _tolerating(pod)
    for patch in before:
        try:
            pod = apply_patch(pod, [one for one in patch if isinstance(one, dict)])
        except (LookupError, TypeError, ValueError, AttributeError):
            continue
    return pod


def _tolerating(pod: Raw) -> Raw:
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return pod
    there = spec.get("tolerations")
    listed = there if isinstance(there, list) else []
    missing = [one for one in _ADDED if not any(_covers(other, one) for other in listed)]
    return {**pod, "spec": {**spec, "tolerations": [*listed, *missing]}} if missing else pod


def _covers(toleration: object, wanted: Raw) -> bool:
    if not isinstance(toleration, dict):
        return False
    return toleration.get("key") in (wanted["key"], "", None) and toleration.get("effect") in (wanted["effect"], "", None)


def _as_completed(pod: Raw, stored: Mapping[str, Any], patches: Iterable[object]) -> Raw:
    """Return the pod with what the API server's own plugins added: what is stored and neither the author nor a webhook wrote.

    RuntimeClass, PodNodeSelector and PodTolerationRestriction write selectors and tolerations, LimitRanger amounts.
    """
    spec, after = pod.get("spec"), map_at(stored, "spec")
    if not isinstance(spec, dict):
        return pod
    written = effects.of_patch(list(patches))
    made = dict(spec)
    listed = [*maps_in(spec.get("tolerations"))]
    theirs = [*listed, *(one for one in maps_in(after.get("tolerations")) if one not in listed and not _wrote(written, "tolerations", one))]
    if len(theirs) > len(listed):
        made["tolerations"] = theirs
    selector, kept = map_at(after, "nodeSelector"), map_at(spec, "nodeSelector")
    if more := {key: one for key, one in selector.items() if key not in kept and not _selected(written, key)}:
        made["nodeSelector"] = {**kept, **more}
    for group in CONTAINERS:
        if isinstance(spec.get(group), list):
            stored_by_name = {str(one.get("name")): one for one in maps_in(after.get(group))}
            made[group] = [_limited(one, stored_by_name) for one in spec[group]]
    return {**pod, "spec": made}


def _wrote(written: Mapping[effects.EditEffect, int], field: str, value: Mapping[Any, Any]) -> bool:
    return any(effect in written for effect in effects.of_patch([{"op": "add", "path": f"/spec/{field}/-", "value": dict(value)}]))


def _selected(written: Mapping[effects.EditEffect, int], key: str) -> bool:
    return any(effect.path == (*NODE_SELECTOR, key) for effect in written)


def _limited(container: Any, stored: Mapping[str, Mapping[Any, Any]]) -> Any:
    """Return a container with the amounts of CPU, memory and storage that LimitRanger gave it."""
    if not isinstance(container, dict) or (after := stored.get(str(container.get("name")))) is None:
        return container
    resources = map_at(container, "resources")
    sides = {}
    for side in ("limits", "requests"):
        own, found = map_at(resources, side), map_at(after, "resources", side)
        if more := {name: found[name] for name in ORDINARY if name in found and name not in own}:
            sides[side] = {**own, **more}
    return {**container, "resources": {**resources, **sides}} if sides else container
