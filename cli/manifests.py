"""An object of a document as what Berth judges: the pod it is, the pods its controller makes, or the review it holds.

Pure. What is wrong raises ``InputError`` with file, document and path; what is only wrong by Kubernetes' own rules, and not
about accelerators, is left to the API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from policies.catalog import Catalog
from policies.document import Document, InputError, kind_of
from policies.edit_tree import value_at
from policies.verdict import Path
from policies.workloads import shape
from policies.workloads.made import bare_pod
from policies.workloads.pods import Owner, pods_of
from policies.workloads.shape import map_at
from policies.workloads.templates import workload_of
from webhook import review
from webhook.review import Review, ReviewError

Raw = dict[str, Any]
REVIEWED: Path = ("request", "object")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One pod to judge, as a review of it."""

    template: Path
    """where in the object its template is; () when the object is the pod itself"""
    review: Review


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One object, with the pods to judge in it: none, one, or one per template."""

    document: Document
    """what holds the object: for one under review, ``path`` leads to it and ``value`` is it"""
    kind: str
    name: str
    namespace: str
    subjects: tuple[Subject, ...] = ()
    note: str = ""
    """why there is nothing to judge, where that is not plain"""
    reviewed: bool = False
    """it came inside an AdmissionReview"""

    @property
    def value(self) -> Raw:
        """The object itself."""
        value: Raw = self.document.value
        return value


def read(document: Document, catalog: Catalog, namespace: str, *, as_served: bool = False) -> Manifest:
    """The object of ``document`` (one item, if it was a List). Raises InputError.

    ``namespace`` is for objects that name none. ``as_served``: a review of anything but a pod is bad input, as it is to the
    server; else the templates of the object under review are judged.
    """
    if document.value.get("kind") == review.KIND:
        return _review(document, catalog, namespace, as_served)
    return _subjected(_named(document, namespace), catalog)


def _named(document: Document, namespace: str) -> Manifest:
    kind = _text(document, "kind", "Pod or Job")
    _text(document, "apiVersion", "v1 or batch/v1")
    metadata = map_at(document, document.value.get("metadata"), ("metadata",))
    return Manifest(
        document=document,
        kind=kind,
        name=str(metadata.get("name") or metadata.get("generateName") or ""),
        namespace=str(metadata.get("namespace") or namespace),
    )


def _text(document: Document, key: str, example: str) -> str:
    value = document.value.get(key)
    if not isinstance(value, str) or not value:
        raise document.error((key,), f"wants text such as {example}; found {kind_of(value)}")
    return value


def _subjected(manifest: Manifest, catalog: Catalog) -> Manifest:
    """The manifest with the pods to judge in it."""
    value, api_version = manifest.value, manifest.value["apiVersion"]
    if manifest.namespace in catalog.excluded_namespaces:
        return replace(manifest, note=f"namespace {manifest.namespace} is excluded")
    if (api_version, manifest.kind) == ("v1", "Pod"):
        shape.check(manifest.document, value, (), catalog)
        return replace(manifest, subjects=(_created((), bare_pod(value, manifest.namespace), manifest, ""),))
    workload = workload_of(catalog, api_version, manifest.kind)
    if workload is None:
        return replace(manifest, note=_unknown_kind(value))
    owner = Owner(api_version=api_version, kind=manifest.kind, name=manifest.name, namespace=manifest.namespace, workload=workload)
    subjects = tuple(_from_templates(manifest, catalog, owner))
    return replace(manifest, subjects=subjects, note="" if subjects else "the catalog knows no pod template in it")


def _created(template: Path, pod: Raw, manifest: Manifest, user: str) -> Subject:
    made = Review(
        uid="", operation="CREATE", namespace=manifest.namespace, user=user, groups=(), subresource="", pod=pod, old_pod=None, dry_run=False
    )
    return Subject(template=template, review=made)


def _unknown_kind(value: Raw) -> str:
    """Said only where an unknown kind looks as if it made pods."""
    looks = isinstance(value_at(value, ("spec", "template", "spec", "containers")), list)
    return "its kind is not in the catalog; lay a file that says where its templates are over it: --catalog FILE" if looks else ""


def _from_templates(manifest: Manifest, catalog: Catalog, owner: Owner) -> Iterator[Subject]:
    for made in pods_of(manifest.document, owner, catalog):
        if isinstance(made, InputError):
            raise made
        yield _created(made.template, made.pod, manifest, made.user)


def _review(document: Document, catalog: Catalog, namespace: str, as_served: bool) -> Manifest:
    """The object under review. A pod stays byte for byte as it came: the API server has defaulted it."""
    request = map_at(document, document.value.get("request"), ("request",), null=False)
    value = request.get("object")
    if not isinstance(value, dict):
        raise document.error(REVIEWED, f"wants an object, a map with apiVersion and kind; found {kind_of(value)}")
    inner = replace(document, value=value, path=document.path + REVIEWED)
    manifest = replace(_named(inner, str(request.get("namespace") or namespace)), reviewed=True)
    if not as_served and (value["apiVersion"], manifest.kind) != ("v1", "Pod"):
        return _subjected(manifest, catalog)
    try:
        asked = review.from_document(document.value)
    except ReviewError as error:
        raise document.error((), error.sentence) from None
    shape.check(inner, value, (), catalog)
    return replace(manifest, namespace=asked.namespace, subjects=(Subject(template=(), review=asked),))
