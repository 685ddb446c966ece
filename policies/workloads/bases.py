"""Pods of two objects: a runtime or a task that has their template, and an object that names it and sets
other fields of them.

Sources: kserve pkg/controller/v1beta1/inferenceservice/utils (MergeRuntimeContainers, MergePodSpec: strategic
merge); kubeflow/trainer pkg/runtime/framework/plugins/jobset/builder.go (the node's resources are replaced).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kube.pod import CONTAINERS
from kube.templates import merge_strategic
from kube.tree import Raw
from policies.workloads.described import Described
from policies.workloads.parts import Parts, PodPart


def laid(base: Described, over: Described, *, replaced: bool) -> Described:
    """Return ``over`` laid over ``base``, with the parts of ``over``.

    ``replaced``: its resources take the place of those of the container of that name, and a pod without such
    a container has no use for them.
    """
    spec, says = base.template.get("spec"), over.template["spec"]
    if not isinstance(spec, dict) or not all(_named(spec.get(group)) for group in CONTAINERS):
        return Described(at=over.at, template=base.template, parts=())  # reported where it stands
    if replaced:
        says = {**says, "containers": _those_of(spec, says)}
        spec = {**spec, "containers": [_without_resources(one, says) for one in spec.get("containers") or ()]}
    template = {"metadata": _metadata(base, over), "spec": merge_strategic(spec, says)}
    return Described(at=over.at, template=template, parts=_moved(over, template["spec"]), place=over.place, unread=over.unread)


def _named(containers: Any) -> bool:
    return containers is None or (
        isinstance(containers, list) and all(isinstance(c, dict) and isinstance(c.get("name"), str) for c in containers)
    )


def _those_of(spec: Raw, says: Raw) -> list[Raw]:
    names = [container["name"] for container in spec.get("containers") or ()]
    return [container for container in says.get("containers") or () if container["name"] in names]


def _without_resources(container: Raw, says: Raw) -> Raw:
    over = any(one["name"] == container["name"] and one.get("resources") for one in says["containers"])
    return {key: value for key, value in container.items() if key != "resources"} if over else container


def _metadata(base: Described, over: Described) -> Raw:
    """Return labels and annotations of both; those that are laid over win."""
    under, says = base.template.get("metadata") or {}, over.template.get("metadata") or {}
    found = {name: {**(under.get(name) or {}), **(says.get(name) or {})} for name in ("labels", "annotations")}
    return {name: values for name, values in found.items() if values}


def _moved(over: Described, spec: Raw) -> Parts:
    """Return the parts at their new places. Of a container that both have only the resources are the
    author's to write here."""
    out = []
    for part in over.parts:
        if len(part.pod) < 3 or part.pod[1] not in CONTAINERS:
            out.append(part)
            continue
        group, number, *rest = part.pod[1:]
        name = over.template["spec"][group][number].get("name")
        place = next((n for n, one in enumerate(spec.get(str(group)) or ()) if one.get("name") == name), None)
        if place is None:
            continue
        if rest:
            out.append(replace(part, pod=("spec", group, place, *rest)))
        else:
            own = None if part.own is None else (*part.own, "resources")
            out.append(PodPart(("spec", group, place, "resources"), (*part.at, "resources"), own))
    return tuple(out)
