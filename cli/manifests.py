"""An object of a document as what Berth judges: the pod it is, the pods its controller makes, the claim it is, or the review it holds.

Pure. What is wrong raises ``InputError`` with file, document and path; what is only wrong by Kubernetes' own rules, and not
about accelerators, is left to the API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from cli import embedded
from policies.catalog import Catalog
from policies.claims import ClaimRequest
from policies.document import Document, InputError, kind_of
from policies.edit_tree import value_at
from policies.verdict import Path
from policies.workloads import parts, shape
from policies.workloads.made import RETIRED, bare_pod
from policies.workloads.parts import Parts
from policies.workloads.pods import ALONE, Around, Owner, pods_of, references
from policies.workloads.shape import map_at
from policies.workloads.templates import workload_of
from webhook import claim_review, review
from webhook.review import Review, ReviewError

Raw = dict[str, Any]
REVIEWED: Path = ("request", "object")
_CLAIMS = ("ResourceClaim", "ResourceClaimTemplate")
_FACTS = {"Namespace": "", "Node": "", "NodePool": "karpenter.sh", "DeviceClass": claim_review.GROUP} | dict.fromkeys(
    _CLAIMS, claim_review.GROUP
)
"""Kinds of which objects tell something of the cluster, and their API groups (``cluster_facts.KINDS``)"""
_UNREAD_VERSIONS = (f"{claim_review.GROUP}/v1alpha1", f"{claim_review.GROUP}/v1alpha2", f"{claim_review.GROUP}/v1alpha3")
"""of claims: their devices are said in other objects, or in fields that no served version has"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One pod to judge, as a review of it."""

    template: Path
    """where in the object its template is, or what stands in its place; () when the object is the pod itself"""
    review: Review
    written: Any
    """the pod or template, as it stands or as it was put together"""
    parts: Parts
    """where in the object each part of it stands"""
    elsewhere: str = ""
    """what else makes the pod and is not in the input: ``ServingRuntime "vllm"``"""
    unread: tuple[InputError, ...] = ()
    """what is said of the pod in a form that can't be read"""

    @property
    def is_template(self) -> bool:
        """Whether it stands in one piece."""
        return self.parts == parts.template(self.template)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One object, with the pods to judge in it: none, one, or one per template."""

    document: Document
    """what holds the object: for one under review, ``path`` leads to it and ``value`` is it"""
    kind: str
    name: str
    namespace: str
    subjects: tuple[Subject, ...] = ()
    claim: ClaimRequest | None = None
    """what it asks for, where it is a claim or a template of claims"""
    fact: bool = False
    """it tells something of the cluster, which holds for the whole run"""
    note: str = ""
    """why there is nothing to judge, where that is not plain"""
    known: bool = True
    """False for a kind of which nobody knows whether it makes pods"""
    aside: str = ""
    """what else is to be said of it"""
    reviewed: bool = False
    """it came inside an AdmissionReview"""

    @property
    def value(self) -> Raw:
        """The object itself."""
        value: Raw = self.document.value
        return value


def fact_of(document: Document, namespace: str) -> Raw | None:
    """The object as a fact for the whole run, in its namespace; None where it is none."""
    value = document.value
    if not isinstance(value, dict) or not _is_fact(str(value.get("apiVersion")), value.get("kind")):
        return None
    metadata = value.get("metadata")
    if value["kind"] not in _CLAIMS or not isinstance(metadata, dict) or metadata.get("namespace"):
        return value
    return {**value, "metadata": {**metadata, "namespace": namespace}}


def _is_fact(api_version: str, kind: object) -> bool:
    group = api_version.rpartition("/")[0]
    return isinstance(kind, str) and _FACTS.get(kind) == group and api_version not in _UNREAD_VERSIONS


def read(document: Document, catalog: Catalog, namespace: str, *, as_served: bool = False, around: Around = ALONE) -> Manifest:
    """The object of ``document`` (one item, if it was a List). Raises InputError.

    ``namespace`` is for objects that name none. ``as_served``: a review of anything but a pod is bad input, as it is to the
    server; else the templates of the object under review are judged. ``around``: the other objects of the run.
    """
    if document.value.get("kind") == review.KIND:
        return _review(document, catalog, namespace, as_served)
    return _subjected(_named(document, namespace), catalog, around)


def _named(document: Document, namespace: str) -> Manifest:
    kind = _text(document, "kind", "Pod or Job")
    _text(document, "apiVersion", "v1 or batch/v1")
    metadata = map_at(document, document.value.get("metadata"), ("metadata",))
    names = [_name(document, metadata.get(key), ("metadata", key)) for key in ("name", "generateName", "namespace")]
    return Manifest(document=document, kind=kind, name=names[0] or names[1], namespace=names[2] or namespace)


def _name(document: Document, value: object, path: Path) -> str:
    if value is not None and not isinstance(value, str):
        quotes = "; put it in quotes" if isinstance(value, int | float) else ""
        raise document.error(path, f"wants text; found {kind_of(value)}{quotes}")
    return value or ""


def _text(document: Document, key: str, example: str) -> str:
    value = document.value.get(key)
    if not isinstance(value, str) or not value:
        raise document.error((key,), f"wants text such as {example}; found {kind_of(value)}")
    return value


def _subjected(manifest: Manifest, catalog: Catalog, around: Around) -> Manifest:
    """The manifest with the pods to judge in it."""
    value, api_version = manifest.value, manifest.value["apiVersion"]
    if manifest.namespace in catalog.excluded_namespaces:
        return replace(manifest, note=f"namespace {manifest.namespace} is excluded")
    if (api_version, manifest.kind) == ("v1", "Pod"):
        shape.check(manifest.document, value, (), catalog)
        return replace(manifest, subjects=(_bare(manifest, value),))
    if _is_fact(api_version, manifest.kind):
        return replace(manifest, fact=True, claim=_claim(manifest))
    workload = workload_of(catalog, api_version, manifest.kind)
    if workload is None:
        subjects = tuple(_embedded(manifest, catalog, around))
        known = _makes_no_pods(api_version, catalog)
        return replace(manifest, subjects=subjects, known=known, note=_meant(catalog, api_version, manifest.kind))
    owner = Owner(api_version=api_version, kind=manifest.kind, name=manifest.name, namespace=manifest.namespace, workload=workload)
    subjects = tuple(_from_templates(manifest, catalog, owner, around))
    note = "" if subjects else "; ".join(_elsewhere(manifest, owner, around)) or "the catalog knows no pod template in it"
    return replace(manifest, subjects=subjects, note=note, aside=_retired(api_version))


def _bare(manifest: Manifest, value: Raw) -> Subject:
    return _created((), bare_pod(value, manifest.namespace), manifest, "", value, parts.template(()))


def _created(template: Path, pod: Raw, manifest: Manifest, user: str, written: Raw, where: Parts) -> Subject:
    made = Review(
        uid="", operation="CREATE", namespace=manifest.namespace, user=user, groups=(), subresource="", pod=pod, old_pod=None, dry_run=False
    )
    return Subject(template=template, review=made, written=written, parts=where)


def _claim(manifest: Manifest) -> ClaimRequest | None:
    if manifest.kind not in _CLAIMS:
        return None
    return claim_review.asked_by(manifest.kind, manifest.value)


def _makes_no_pods(api_version: str, catalog: Catalog) -> bool:
    """Whether a kind that is not among the catalog's workloads is of a group that has no other: Kubernetes' own, or a listed one."""
    group = api_version.rpartition("/")[0]
    return (
        group in catalog.podless_groups
        or group in ("", "apps", "batch", "autoscaling", "policy")
        or (group.endswith(".k8s.io") and not group.endswith("x-k8s.io"))
    )


def _meant(catalog: Catalog, api_version: str, kind: str) -> str:
    """The kind that was probably meant: one of another case."""
    near = next((w.kind for w in catalog.workloads if api_version in w.api_version and w.kind.lower() == kind.lower()), None)
    return f"there is no kind {kind}; write {near}" if near is not None else ""


def _retired(api_version: str) -> str:
    group = api_version.rpartition("/")[0]
    return f"{api_version} is served no more; write {RETIRED[group]}/v1" if group in RETIRED else ""


def _from_templates(manifest: Manifest, catalog: Catalog, owner: Owner, around: Around) -> Iterator[Subject]:
    for made in pods_of(manifest.document, owner, catalog, around):
        if isinstance(made, InputError):
            raise made
        one = _created(made.template, made.pod, manifest, made.user, made.written, made.parts)
        yield replace(one, elsewhere=made.elsewhere, unread=made.unread)


def _elsewhere(manifest: Manifest, owner: Owner, around: Around) -> Iterator[str]:
    """Where the pods are said that the object itself says nothing of."""
    for named in references(manifest.document, owner):
        found = around.find(named.kinds, manifest.namespace, named.name)
        title = named.title if found is None else f'{found.value["kind"]} "{named.name}"'
        yield f"its pods are those of {title}, which is {'not in the input' if found is None else 'judged by itself'}"


def _embedded(manifest: Manifest, catalog: Catalog, around: Around) -> Iterator[Subject]:
    """Of the objects that stand whole in an object of another kind, in whose namespace they will be."""
    for path, value in embedded.inside(manifest.value):
        document = replace(manifest.document, value=value, path=manifest.document.path + path)
        inner = _subjected(replace(_named(document, manifest.namespace), name=_inner_name(document) or manifest.name), catalog, around)
        for one in inner.subjects:
            yield replace(one, template=path + one.template, parts=parts.moved(one.parts, path))


def _inner_name(document: Document) -> str:
    metadata = value_at(document.value, ("metadata", "name"))
    return metadata if isinstance(metadata, str) else ""


def _review(document: Document, catalog: Catalog, namespace: str, as_served: bool) -> Manifest:
    """The object under review. A pod stays byte for byte as it came: the API server has defaulted it."""
    request = map_at(document, document.value.get("request"), ("request",), null=False)
    value = request.get("object")
    if not isinstance(value, dict):
        raise document.error(REVIEWED, f"wants an object, a map with apiVersion and kind; found {kind_of(value)}")
    inner = replace(document, value=value, path=document.path + REVIEWED)
    manifest = replace(_named(inner, str(request.get("namespace") or namespace)), reviewed=True)
    if not as_served and (value["apiVersion"], manifest.kind) != ("v1", "Pod"):
        return _subjected(manifest, catalog, ALONE)
    try:
        asked = review.from_document(document.value)
    except ReviewError as error:
        raise document.error((), error.sentence) from None
    shape.check(inner, value, (), catalog)
    subject = Subject(template=(), review=asked, written=value, parts=parts.template(()))
    return replace(manifest, namespace=asked.namespace, subjects=(subject,))
