"""Nodes as they really stand, one value per label, keys missing here and there: does the written affinity keep the pod inside?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from catalog import Catalog
from policies.request import Request
from tests.reference.evaluator import Judged, Reference
from tests.reference.nodes import LONGEST, Node, in_template, terms_of
from tests.support.generators.random_worlds import World, catalog

Raw = dict[str, Any]
SAMPLES = 40


def broken(world: World, request: Request, final: Raw, random: Random) -> list[str]:
    """Each sampled node that the final pod's affinity matches and that no policy allows. ``request``: the pod as it came."""
    reference = Reference(
        world.policy_set, catalog(), platforms=world.platforms, mig_strategy=world.mig_strategy, queues=world.queues, cluster=world.cluster
    )
    case = reference.judged(request)
    offers = [n for name, count in case.now.items() for n in case.offers(name, count) if n.platform in possible(case)]
    found = []
    for node in random.sample(offers, min(SAMPLES, len(offers))):
        for labels, missing in _as_they_stand(node, case, random):
            if _selects(terms_of(final), labels) and (why := outside(case, node, missing)):
                found.append(f"{why}: {dict(labels)} without {sorted(missing)}")
    return found


def possible(case: Judged) -> set[str]:
    return case.platforms_left(lambda n: True, case.now, case.terms)


def _as_they_stand(node: Node, case: Judged, random: Random) -> Iterator[tuple[Mapping[str, str], set[str]]]:
    """Whole, then twice with a few keys missing, then by other names. Labels that the author's terms want and no table has are there."""
    wanted = {e["key"]: str(random.choice(e["values"])) for t in case.terms for e in t if e["operator"] == "In"}
    known = {key for table in case.atlas.tables.values() for key in table.keys}
    labels = {key: value for key, value in wanted.items() if key not in known and chance(random)}
    for key, values in node.labels.items():
        value = random.choice(values)
        if value is not None:
            labels[key] = wanted.get(key, "9") if value == "*" else ("never-seen" if value == "?" else value)
    if not _can_be(node, labels, case):
        return
    yield labels, set()
    anchors = {table.platform.anchor for table in case.atlas.tables.values()}  # without it a node is another platform's
    loose = sorted(set(labels) - anchors)
    for _ in range(2):
        missing = set(random.sample(loose, min(len(loose), random.randint(1, 3))))
        yield {key: value for key, value in labels.items() if key not in missing}, missing
    if (renamed := _renamed(node, labels, case.catalog, random)) != labels:
        scheme = case.catalog.schemes[case.catalog.platforms[node.platform].sharing]
        yield renamed, {key for variant in scheme.variants for key in variant.labels}


def _renamed(node: Node, labels: Mapping[str, str], known: Catalog, random: Random) -> Mapping[str, str]:
    """The labels where the machine is in another group of its cloud (SageMaker HyperPod's types), or its GPU is cut under the strategy
    ``single`` (the profile is in GPU Feature Discovery's product)."""
    platform, found = known.platforms[node.platform], dict(labels)
    prefixes = {other.type_prefix for other in known.platforms.values() if other.cloud == platform.cloud} if platform.cloud else set()
    for key, attribute in (*platform.labels.items(), *platform.after_boot.items()):
        if key not in found or found[key] == "never-seen":
            continue
        match attribute.rpartition(":")[2]:
            case "type" if not platform.type_prefix and (others := sorted(prefixes - {""})):
                found[key] = random.choice(others) + found[key]
            case "product" if node.gpu is not None and found[key] in node.gpu.products and node.gpu.mig:
                cut = f"{found[key]}-MIG-{random.choice(node.gpu.mig).name.replace('+', '.')}"
                found[key] = cut if platform.sharing == "gfd" and len(cut) <= LONGEST else found[key]
    return found


def chance(random: Random) -> bool:
    return random.random() < 0.9


def _can_be(node: Node, labels: Mapping[str, str], case: Judged) -> bool:
    """Whether such a node is where its labels say: inside every template whose labels it has, slices only on those."""
    templates = [t for t in case.atlas.templates.values() if all(labels.get(k) == v for k, v in t.labels)]
    known: Catalog = case.catalog
    return all(in_template(node, t, known) for t in templates) and (bool(templates) or not node.scarce)


def _selects(terms: list[list[Raw]], labels: Mapping[str, str]) -> bool:
    return any(all(_holds(e, labels.get(e["key"])) for e in term) for term in terms)


def _holds(expression: Raw, value: str | None) -> bool:
    """v1.NodeSelectorRequirement on one label; a value that is no number satisfies neither Gt nor Lt."""
    values = [str(v) for v in expression.get("values") or ()]
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    if value is None or not value.lstrip("-").isdigit() or not values[0].lstrip("-").isdigit():
        return False
    return int(value) > int(values[0]) if expression["operator"] == "Gt" else int(value) < int(values[0])


def outside(case: Judged, node: Node, missing: set[str]) -> str:
    """Why a matched node should not have matched: machine and capacity always, sharing where its keys are there."""
    platform = case.catalog.platforms[node.platform]
    unheard = set(platform.capacity_keys) if not all(platform.capacity.values()) else set()  # on-demand is said by absence
    scheme = {key for variant in case.catalog.schemes[platform.sharing].variants for key in variant.labels}
    for axis, silent in (("machine", set[str]()), ("capacity", unheard), ("sharing", scheme)):
        if missing & silent:
            continue
        if not any(case.sayable(node.platform, axis, term)[0](node) for term in case.terms):
            return (
                f"{node.platform} {node.machine_family} {node.gpu and node.gpu.model} {node.capacity} {node.sharing} is outside on {axis}"
            )
    return ""
