"""Which request of a pod is the one that is counted, or that can't be: its words and its path."""

from __future__ import annotations

from collections.abc import Iterator

from kube.pod import Container, of_amounts
from kube.tree import Path
from policies.messages import At, Phrase, phrase
from policies.planning.plan import Plan
from policies.pods import unlisted_accelerators
from policies.pods.permissions import FRACTION_DEVICES

ANNOTATIONS: Path = ("metadata", "annotations")
_CLAIMS: Path = ("spec", "resourceClaims")


def only_request(plan: Plan) -> Path:
    """Return the path of the one amount that is the pod's count; () if several are added up, or claims."""
    paths = [amount_path(container, asked.resource.name) for asked in plan.asked for container in asked.containers]
    return paths[0] if len(paths) == 1 and not plan.devices.claimed else ()


def amount_path(container: Container, name: str) -> Path:
    """Return the path of a container's amount of a device: of its limit, where it has one."""
    return (*container.path, "resources", "limits" if name in container.limits else "requests", name)


def what_is_open(plan: Plan) -> tuple[Phrase, Phrase, Path]:
    """Return phrases for the first request that can't be counted, and for what to write instead, and its path."""
    for asked in plan.asked:
        if unlisted_accelerators.is_part(asked.resource):
            first, name = asked.containers[0], asked.resource.name
            return phrase("part", container=first.name, name=name), phrase("ask by name"), amount_path(first, name)
        if asked.count.most is None:
            container = next((c for c in asked.containers if _unreadable(c, asked.resource.name)), asked.containers[0])
            path = (*container.path, "resources", "limits", asked.resource.name)
            return phrase("amount", container=container.name, name=asked.resource.name), phrase("set whole", path=At(path)), path
    for claim in plan.devices.claimed:
        if not claim.found:
            return phrase("claim missing", kind=claim.kind, claim=claim.name), phrase("create the claim"), _CLAIMS
        if claim.unread:
            return phrase("claim unread", kind=claim.kind, claim=claim.name), phrase("shorten the claim"), _CLAIMS
        if claim.count.most is None:
            return phrase("all", kind=claim.kind, claim=claim.name), phrase("ask for count"), _CLAIMS
    return phrase("fraction", annotations=At(ANNOTATIONS), name=FRACTION_DEVICES), phrase("write whole"), ANNOTATIONS


def _unreadable(container: Container, name: str) -> bool:
    return of_amounts(container.limits.get(name), container.requests.get(name)).most is None


def of_no_known_class(plan: Plan) -> Iterator[tuple[Phrase, Phrase, Path]]:
    """Yield the same for each device of a class that nobody knows, or of a claim that is missing."""
    for asked in plan.asked:
        if asked.resource.vendor == "":
            place = amount_path(asked.containers[0], asked.resource.name)
            yield phrase("resource", name=asked.resource.name), phrase("ask by name"), place
    for claim in plan.devices.claimed:
        if not claim.found:
            yield phrase("claim missing", kind=claim.kind, claim=claim.name), phrase("create the claim"), _CLAIMS
        elif claim.unread:
            yield phrase("claim unread", kind=claim.kind, claim=claim.name), phrase("shorten the claim"), _CLAIMS
        elif "" in claim.vendors:
            yield phrase("driver", kind=claim.kind, claim=claim.name), phrase("name class"), _CLAIMS
