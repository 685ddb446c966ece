"""Findings of objects as a cluster would hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.conditions import ObjectStatus, compute_conditions
from analysis.conditions.conditions import Condition
from kube.labels import LabelSelector
from policies.policy import API_VERSION
from policies.state.objects import Change, Key
from policies.state.updater import Options, Updater
from tests.support.cases import golden

Raw = dict[str, Any]
TEMPLATE: Raw = {"gpus": {"families": {"in": ["ampere"]}}, "labels": {"karpenter.sh/nodepool": "gpu"}}


def policy(name: str, *, match: Raw | None = None, **spec: Any) -> Raw:
    """A ClusterGPUPolicy that is enforced."""
    return _object("ClusterGPUPolicy", {"name": name}, {"mode": "Enforce", **({"match": match} if match else {}), **spec})


def own(name: str, namespace: str, *, match: Raw | None = None, **spec: Any) -> Raw:
    """A GPUPolicy that is enforced."""
    return _object("GPUPolicy", {"name": name, "namespace": namespace}, {"mode": "Enforce", **({"match": match} if match else {}), **spec})


def template(name: str, **spec: Any) -> Raw:
    return _object("GPUNodeTemplate", {"name": name}, {**TEMPLATE, **spec})


def namespace(name: str, **labels: str) -> Raw:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _object(kind: str, metadata: Raw, spec: Raw) -> Raw:
    place = f"{metadata.get('namespace', '')}/{metadata['name']}"
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {**metadata, "uid": place, "generation": 1, "resourceVersion": "1"},
        "spec": spec,
    }


def key(value: Raw) -> Key:
    metadata = value["metadata"]
    return value["kind"], metadata.get("namespace", ""), metadata["name"]


def new_updater(platforms: Sequence[str] = ("karpenter-aws",), **options: Any) -> Updater:
    return Updater(golden.catalog_with(), Options(platforms=tuple(platforms), **options))


def found(
    *objects: Raw,
    platforms: Sequence[str] = ("karpenter-aws",),
    quotas: Mapping[str, list[dict[str, str]]] | None = None,
    registered: LabelSelector | None = None,
    **options: Any,
) -> dict[str, ObjectStatus]:
    """By name of the object. Without a namespace among them there are two, ``ml`` and ``web``."""
    world = new_updater(platforms, **options)
    spaces = [] if any(o["kind"] == "Namespace" for o in objects) else [namespace("ml"), namespace("web")]
    changes: dict[Key, Change] = {key(one): one for one in (*objects, *spaces)}
    lived = world.apply(changes)
    return {k[2]: finding for k, finding in compute_conditions(lived.snapshot, lived.entries, quotas or {}, registered).items()}


def condition(finding: ObjectStatus, name: str) -> Condition | None:
    return next((c for c in finding.conditions if c.type == name), None)


def message_of(finding: ObjectStatus, name: str) -> str:
    """The message of a condition that is True; "" where it is not."""
    one = condition(finding, name)
    return one.message if one is not None and one.status == "True" else ""
