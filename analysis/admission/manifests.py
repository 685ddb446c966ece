"""The pods, claims and reviews to judge in an object of a document: the object itself, the pods that its
controller creates, or the object of an AdmissionReview. Errors raise ``InputError`` with file, document and
path; violations of Kubernetes' own rules that do not concern accelerators are left to the API server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from analysis.reviews import claim_review, review
from analysis.reviews.review import ReviewError
from catalog import Catalog
from kube.review import KIND, OBJECT
from kube.templates import CONTROLLERS, RETIRED, bare_pod, group_of
from kube.tree import Path, Raw, kind_of, value_at
from policies.claims.claim_request import ClaimRequest
from policies.document import Document, InputError
from policies.facts import admission_queues, device_requests, scheduler_queues
from policies.facts.cluster_facts import NAMESPACE_LIMITS
from policies.facts.offered_devices import OPERATOR, STACKS
from policies.request import Request
from policies.workloads import parts, pod_schema
from policies.workloads.parts import Parts
from policies.workloads.pod_schema import map_at
from policies.workloads.pods import ALONE, Around, Owner, pods_of, references
from policies.workloads.templates import workload_of

_CLAIMS = ("ResourceClaim", "ResourceClaimTemplate")
_FACTS = {"Namespace": "", "Node": "", "NodePool": "karpenter.sh"} | dict.fromkeys(STACKS, OPERATOR)
_FACTS |= dict.fromkeys(("DeviceClass", "ResourceSlice", *_CLAIMS), claim_review.GROUP) | dict.fromkeys(NAMESPACE_LIMITS, "")
_FACTS |= dict.fromkeys(admission_queues.KINDS, admission_queues.GROUP)
"""The kinds whose objects are facts about the cluster, and their API groups (``cluster_facts.KINDS``)."""
_UNREAD_VERSIONS = (f"{claim_review.GROUP}/v1alpha1", f"{claim_review.GROUP}/v1alpha2", f"{claim_review.GROUP}/v1alpha3")
"""API versions of claims whose devices are in other objects, or in fields that no served version has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestPod:
    """One pod to judge, as a review of it."""

    template: Path
    """The path in the object of its template, or of what replaces one; () if the object is the pod itself."""
    review: Request
    written: Any
    """The pod or template as written, or as assembled from several parts of the object."""
    parts: Parts
    """The path of each part of the pod in the object."""
    elsewhere: str = ""
    """An object that also determines the pod and is not in the input, such as ``ServingRuntime "vllm"``."""
    unread: tuple[InputError, ...] = ()
    """Errors of the parts of the pod that can't be parsed."""

    @property
    def is_template(self) -> bool:
        """True if the template stands in the object in one piece."""
        return self.parts == parts.template(self.template)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One object, with the pods to judge in it: none, one, or one per template."""

    document: Document
    """The object's document. Under review, ``path`` leads to the object and ``value`` is the object."""
    kind: str
    name: str
    namespace: str
    subjects: tuple[ManifestPod, ...] = ()
    claim: ClaimRequest | None = None
    """The requests of a ResourceClaim or ResourceClaimTemplate; None for other kinds."""
    fact: bool = False
    """True if the object is a fact about the cluster, which holds for the whole run."""
    note: str = ""
    """The reason why there is nothing to judge, if that is not obvious."""
    known: bool = True
    """False if it is unknown whether the kind creates pods."""
    aside: str = ""
    """A further remark on the object, such as on an API version that is no longer served."""
    reviewed: bool = False
    """True if the object came inside an AdmissionReview."""

    @property
    def value(self) -> Raw:
        """The object itself."""
        value: Raw = self.document.value
        return value


def fact_of(document: Document, namespace: str) -> Raw | None:
    """Return the object as a fact for the whole run, with its namespace; None if it is no fact."""
    value = device_requests.of_compute_domain(document.value)
    if not isinstance(value, dict) or not _is_fact(str(value.get("apiVersion")), value.get("kind")):
        return None
    metadata = value.get("metadata")
    if value["kind"] not in (*_CLAIMS, "LocalQueue", *NAMESPACE_LIMITS) or not isinstance(metadata, dict) or metadata.get("namespace"):
        return value
    return {**value, "metadata": {**metadata, "namespace": namespace}}


def _is_fact(api_version: str, kind: object) -> bool:
    group = api_version.rpartition("/")[0]
    if kind == scheduler_queues.KIND:
        return group in scheduler_queues.GROUPS
    return isinstance(kind, str) and _FACTS.get(kind) == group and api_version not in _UNREAD_VERSIONS


def read_manifest(document: Document, catalog: Catalog, namespace: str, *, as_served: bool = False, around: Around = ALONE) -> Manifest:
    """Return the object of ``document`` (one item, if it was a List). Raises InputError. ``namespace``: for
    objects that name none. ``as_served``: a review of anything but a pod is an error, as for the server;
    otherwise the templates of the object under review are judged. ``around``: the other objects of the
    run."""
    if document.value.get("kind") == KIND:
        return _review(document, catalog, namespace, as_served=as_served)
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
        raise document.error(path, f"must be text; found {kind_of(value)}{quotes}")
    return value or ""


def _text(document: Document, key: str, example: str) -> str:
    value = document.value.get(key)
    if not isinstance(value, str) or not value:
        raise document.error((key,), f"must be text such as {example}; found {kind_of(value)}")
    return value


def _subjected(manifest: Manifest, catalog: Catalog, around: Around) -> Manifest:
    """Return the manifest with the pods to judge in it."""
    value, api_version = manifest.value, manifest.value["apiVersion"]
    if manifest.namespace in catalog.excluded_namespaces:
        return replace(manifest, note=f"Berth is not called in namespace {manifest.namespace}")
    if (api_version, manifest.kind) == ("v1", "Pod"):
        pod_schema.check(manifest.document, value, (), catalog)
        return replace(manifest, subjects=(_bare(manifest, value),))
    if _is_fact(api_version, manifest.kind) or device_requests.of_compute_domain(value) is not value:
        return replace(manifest, fact=True, claim=_claim(manifest))
    workload = workload_of(catalog, api_version, manifest.kind)
    if workload is None:
        subjects = tuple(_embedded(manifest, catalog, around))
        known = _makes_no_pods(api_version, catalog)
        return replace(manifest, subjects=subjects, known=known, note=_meant(catalog, api_version, manifest.kind))
    owner = Owner(api_version=api_version, kind=manifest.kind, name=manifest.name, namespace=manifest.namespace, workload=workload)
    subjects = tuple(_from_templates(manifest, catalog, owner, around))
    note = "" if subjects else "; ".join(_elsewhere(manifest, owner, around)) or "the catalog has no pod template for it"
    return replace(manifest, subjects=subjects, note=note, aside=_retired(api_version))


def _bare(manifest: Manifest, value: Raw) -> ManifestPod:
    return _created((), bare_pod(value, manifest.namespace), manifest, "", value, parts.template(()))


def _created(template: Path, pod: Raw, manifest: Manifest, user: str, written: Raw, where: Parts) -> ManifestPod:
    review = Request(namespace=manifest.namespace, user=user, pod=pod)
    return ManifestPod(template=template, review=review, written=written, parts=where)


def _claim(manifest: Manifest) -> ClaimRequest | None:
    if manifest.kind not in _CLAIMS:
        return None
    return ClaimRequest(kind=manifest.kind, made=manifest.value)


def _makes_no_pods(api_version: str, catalog: Catalog) -> bool:
    """Return whether a kind that is not in the catalog's workloads creates no pods, by its API group.

    That is so for Kubernetes' own groups, and for those that the catalog lists.
    """
    group = api_version.rpartition("/")[0]
    return (
        group in catalog.podless_groups
        or group in ("", "apps", "batch", "autoscaling", "policy")
        or (group.endswith(".k8s.io") and not group.endswith("x-k8s.io"))
    )


def _meant(catalog: Catalog, api_version: str, kind: str) -> str:
    """Return a note with the kind that was probably meant, one that differs only in letter case, or the API group of Kubernetes that
    has the kind."""
    near = next((w.kind for w in catalog.workloads if api_version in w.api_version and w.kind.lower() == kind.lower()), None)
    if near is not None:
        return f"there is no kind {kind}; write {near}"
    built_in = (("", "Pod"), *CONTROLLERS)
    right = [group for group, name in built_in if name == kind]
    if not right or group_of(api_version) not in dict(built_in):
        return ""
    return f"there is no kind {kind} in {api_version}; write apiVersion: {f'{right[0]}/v1' if right[0] else 'v1'}"


def _retired(api_version: str) -> str:
    group = api_version.rpartition("/")[0]
    return f"{api_version} is no longer served; write {RETIRED[group]}/v1" if group in RETIRED else ""


def _from_templates(manifest: Manifest, catalog: Catalog, owner: Owner, around: Around) -> Iterator[ManifestPod]:
    for made in pods_of(manifest.document, owner, catalog, around):
        if isinstance(made, InputError):
            raise made
        one = _created(made.template, made.pod, manifest, made.user, made.written, made.parts)
        review_of_pod = replace(one.review, single_run=made.single_run)
        yield replace(one, review=review_of_pod, elsewhere=made.elsewhere, unread=made.unread)


def _elsewhere(manifest: Manifest, owner: Owner, around: Around) -> Iterator[str]:
    """Yield a note for each referenced object that defines the pods in place of this one."""
    for named in references(manifest.document, owner):
        found = around.find(named.kinds, manifest.namespace, named.name)
        title = named.title if found is None else f'{found.value["kind"]} "{named.name}"'
        yield f"its pods come from {title}, which is {'not in the input' if found is None else 'checked separately'}"


def _embedded(manifest: Manifest, catalog: Catalog, around: Around) -> Iterator[ManifestPod]:
    """Yield the pods of complete objects within one of another kind, in whose namespace they are created."""
    for path, value in inside(manifest.value):
        document = replace(manifest.document, value=value, path=manifest.document.path + path)
        inner = _subjected(replace(_named(document, manifest.namespace), name=_inner_name(document) or manifest.name), catalog, around)
        for one in inner.subjects:
            run = one.review.single_run
            moved = replace(one.review, single_run=run and run._replace(path=path + run.path))
            yield replace(one, review=moved, template=path + one.template, parts=parts.moved(one.parts, path))


def _inner_name(document: Document) -> str:
    metadata = value_at(document.value, ("metadata", "name"))
    return metadata if isinstance(metadata, str) else ""


def _review(document: Document, catalog: Catalog, namespace: str, *, as_served: bool) -> Manifest:
    """Return the object under review. A pod is not changed, as the API server has already defaulted it."""
    request = map_at(document, document.value.get("request"), ("request",), null=False)
    value = request.get("object")
    if not isinstance(value, dict):
        raise document.error(OBJECT, f"must be an object, a map with apiVersion and kind; found {kind_of(value)}")
    inner = replace(document, value=value, path=document.path + OBJECT)
    manifest = replace(_named(inner, str(request.get("namespace") or namespace)), reviewed=True)
    if not as_served and (value["apiVersion"], manifest.kind) != ("v1", "Pod"):
        return _subjected(manifest, catalog, ALONE)
    try:
        asked = review.from_document(document.value)
    except ReviewError as error:
        raise document.error((), error.sentence) from None
    pod_schema.check(inner, value, (), catalog)
    subject = ManifestPod(template=(), review=asked, written=value, parts=parts.template(()))
    return replace(manifest, namespace=asked.namespace, subjects=(subject,))


_MOST = 64
"""Most embedded objects that are read of one object."""


def inside(value: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield (path, object) of each map in ``value`` that has apiVersion, kind and a spec, which mere
    references lack.

    Maps inside such a map are not searched.
    """
    todo: list[tuple[Path, Any]] = [((key,), inner) for key, inner in reversed(value.items()) if key not in ("metadata", "status")]
    found = 0
    while todo and found < _MOST:
        path, here = todo.pop()
        if isinstance(here, dict):
            if isinstance(here.get("apiVersion"), str) and isinstance(here.get("kind"), str) and isinstance(here.get("spec"), dict):
                found += 1
                yield path, here
            else:
                todo += [((*path, key), inner) for key, inner in reversed(here.items())]
        elif isinstance(here, list):
            todo += [((*path, number), inner) for number, inner in reversed(list(enumerate(here)))]
