"""The pods of one workload, one per template: what ``berth try`` and /advise judge in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from policies.catalog import Catalog, Workload
from policies.document import Document, InputError
from policies.edit_tree import value_at
from policies.verdict import Path
from policies.workloads import shape
from policies.workloads.made import CONTROLLERS, Made, Raw, group_of, made_by, pod_of
from policies.workloads.templates import templates

_QUEUE_NAME = "kueue.x-k8s.io/queue-name"
_PODSET = "kueue.x-k8s.io/podset"
"""Kueue writes it on the pods of a workload that it admitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A workload, as far as its pods tell of it."""

    api_version: str
    kind: str
    """as in the manifest: Volcano's ``VolcanoJob`` is ``Job``"""
    name: str
    namespace: str
    workload: Workload
    """what the catalog knows of the kind"""

    @property
    def built_in(self) -> bool:
        """Whether Kubernetes itself makes its pods."""
        return (group_of(self.api_version), self.kind) in CONTROLLERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Templated:
    """The pod that is made from one template."""

    template: Path
    """where in the workload the template is"""
    pod: Raw
    user: str
    """who creates it; "" where nobody can tell"""


def pods_of(document: Document, owner: Owner, catalog: Catalog) -> Iterator[Templated | InputError]:
    """The pod of each template that is there, or what is wrong with the template; none for a kind without templates.

    ``document`` holds the workload.
    """
    made, extra = made_by(owner.api_version, owner.kind, owner.workload), _kueue_labels(document.value)
    try:
        found = templates(document, owner.workload, required=owner.built_in)
    except InputError as error:
        yield error
        return
    for path, template in found:
        try:
            shape.check(document, template, path, catalog)
        except InputError as error:
            yield error
        else:
            yield _templated(path, template, owner, made, extra)


def _templated(path: Path, template: Raw, owner: Owner, made: Made, extra: Mapping[str, str]) -> Templated:
    pod = pod_of(template, name=owner.name, namespace=owner.namespace, made=made, labels=extra)
    return Templated(template=path, pod=pod, user=made.user)


def _kueue_labels(value: Raw) -> Mapping[str, str]:
    """What Kueue adds to the pods of a workload that has a queue (a CronJob's Jobs have it in their template)."""
    places: tuple[Path, ...] = (("metadata",), ("spec", "jobTemplate", "metadata"))
    queued = any(value_at(value, (*place, "labels", _QUEUE_NAME)) for place in places)
    return {_PODSET: "main"} if queued else {}
