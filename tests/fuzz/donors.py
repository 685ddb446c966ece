"""What mutations are made from: the recorded reviews, random pods and workloads around every rule, and their values by key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.worlds import worlds
from tests.support.cases.kind_manifests import kind_cases
from tests.support.cases.workload_manifests import WORKLOADS, template_of, with_templates
from tests.support.generators.random_cluster import NAMESPACES
from tests.support.generators.random_oddities import odd_pod
from tests.support.generators.random_pods import pod
from tests.support.generators.random_worlds import USERS, catalog

Raw = dict[str, Any]
REVIEWS = sorted((Path(__file__).parent.parent / "reviews").glob("*.json"))
KINDS = tuple(WORKLOADS)
PODS = 600
"""random pods among the donors: each value that a rule knows comes up in some of them"""
MOST_VALUES = 60
"""kept of one key"""


@cache
def recorded() -> tuple[Raw, ...]:
    """The recorded reviews without managedFields, half of their size, which nothing reads."""
    found = [json.loads(path.read_text()) for path in REVIEWS]
    for review in found:
        for field in ("object", "oldObject"):
            ((review["request"].get(field) or {}).get("metadata") or {}).pop("managedFields", None)
    return tuple(found)


@cache
def pods() -> tuple[Raw, ...]:
    """Random pods and odd ones, always the same."""
    random = Random(5)
    found = [pod(random, random.choice(worlds())) for _ in range(PODS // 2)]
    return (*found, *(odd_pod(random, canonical=False) for _ in range(PODS // 2)))


@cache
def _whole_pods() -> tuple[Raw, ...]:
    return tuple(one for one in pods() if isinstance(one.get("spec"), dict))


@cache
def seeds() -> tuple[bytes, ...]:
    """Bodies to begin with: every recorded review, one of each kind of workload, and a pod for each of many shapes."""
    random = Random(6)
    drawn = [review_of(random, pods()[i]) for i in range(0, PODS, 10)]
    described = (manifest_review(random, manifest) for manifest in written())
    every = (*recorded(), *drawn, *(workload_review(random, name) for name in WORKLOADS), *described)
    return tuple(json.dumps(review, separators=(",", ":")).encode() for review in every)


def review_of(random: Random, a_pod: object) -> Raw:
    """A review of this pod: of its creation, or now and then of an update from another."""
    request: Raw = {
        "uid": f"{random.getrandbits(64):016x}",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": random.choice(NAMESPACES),
        "operation": "CREATE",
        "userInfo": {"username": random.choice(USERS)},
        "object": a_pod,
        "oldObject": None,
        "dryRun": random.random() < 0.1,
    }
    if random.random() < 0.15:
        request |= {"operation": "UPDATE", "oldObject": random.choice(pods())}
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def workload_review(random: Random, name: str) -> Raw:
    """A review of a workload of the catalog whose templates are random pods."""
    workload = WORKLOADS[name]
    manifest = with_templates(
        workload, random.choice(workload.api_version), [template_of(random.choice(_whole_pods())) for _ in range(random.randint(1, 3))]
    )
    return manifest_review(random, manifest, workload.resource)


@cache
def written() -> tuple[Raw, ...]:
    """Manifests of kinds that say in other fields than templates what their pods are like, as their authors write them."""
    return tuple(case["manifest"] for _, _, case in kind_cases())


def manifest_review(random: Random, manifest: Raw, resource: str = "") -> Raw:
    """A review of a workload's manifest."""
    group, _, plain = manifest["apiVersion"].rpartition("/")
    review = review_of(random, manifest)
    review["request"] |= {
        "operation": random.choice(("CREATE", "UPDATE")),
        "kind": {"group": group, "version": plain, "kind": manifest["kind"]},
        "resource": {"group": group, "version": plain, "resource": resource or f"{manifest['kind'].lower()}s"},
    }
    return review


@cache
def values() -> dict[str, tuple[Any, ...]]:
    """By key, different values that the donors have there: what a mutation may put where a key is known."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in (pair for donor in (*pods(), *recorded()) for pair in _pairs(donor)):
        here = found.setdefault(key, {})
        if len(here) < MOST_VALUES:
            here[json.dumps(value)] = value
    for key, names in _catalog_names().items():
        found.setdefault(key, {}).update({json.dumps(name): name for name in names})
    return {key: tuple(here.values()) for key, here in found.items()}


def _catalog_names() -> dict[str, list[str]]:
    """The keys that platforms label and taint their nodes with."""
    return {"key": sorted({key for platform in catalog().platforms.values() for key in (*platform.labels, *platform.after_boot)})}


@cache
def keys() -> tuple[str, ...]:
    """Every key of a donor."""
    return tuple(values())


@cache
def map_keys() -> dict[str, tuple[str, ...]]:
    """By field, the keys that maps there have: names of resources, labels, annotations."""
    fields = ("limits", "requests", "labels", "annotations", "nodeSelector", "matchLabels")
    return {field: tuple({key for value in values().get(field, ()) if isinstance(value, dict) for key in value}) for field in fields}


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from _pairs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _pairs(inner)
