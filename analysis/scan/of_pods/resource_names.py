"""Names of resources that are or look like accelerators and that no registration of Berth's webhooks catches: pods
that ask by them are never judged. And misspellings, which nothing offers."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.scan.finding import MOST_NAMED, Finding, FindingSubject, Hit
from analysis.scan.seen import ScannedCluster
from policies.pods.unlisted_accelerators import is_extended, looks_like_one, overlooked


def find(seen: ScannedCluster) -> Iterator[Finding]:
    """Yield each unlisted name that nodes, DeviceClasses or pods have."""
    catalog, facts = seen.catalog, seen.cluster.facts
    names = set(overlooked(facts, catalog))
    asked: dict[str, list[str]] = {}
    gpus: dict[str, int] = {}
    for pod in seen.pods:
        for name in pod.names:
            listed = catalog.resource(name) is not None or catalog.measure(name) is not None or name in catalog.misspellings
            if listed or not is_extended(name):
                continue
            if name in names or looks_like_one(name, catalog):
                asked.setdefault(name, []).append(f"{pod.stored.namespace}/{pod.stored.name}")
                gpus[name] = gpus.get(name, 0) + pod.gpus
    for name in sorted(names | set(asked)):
        nodes = sorted(node for node, offered in facts.resources.items() if name in offered)
        classes = sorted(one for one, known in facts.device_classes.items() if known.extended == name)
        yield Finding(
            kind="unlisted-name",
            where=FindingSubject("resource", "", name),
            values={"classes": tuple(classes[:MOST_NAMED])},
            pods=len(asked.get(name, ())),
            nodes=len(nodes),
            names=tuple((asked.get(name) or nodes)[:MOST_NAMED]),
            gpus=gpus.get(name, 0),
            rests_on=("Node", "DeviceClass"),
        )


def misspelt(seen: ScannedCluster) -> Iterator[Hit]:
    """Yield the pods that wait for a name that nothing offers. That the shipped library denies them with the right name is no fix:
    they are not counted as such."""
    for pod in seen.pods:
        for name in pod.names:
            if name in seen.catalog.misspellings and not pod.stored.node:
                yield Hit("misspelt-name", pod, (("name", name), ("right", seen.catalog.misspellings[name])), None)
