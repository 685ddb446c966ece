"""Build the pods of one workload, one per template or place: ``berth try`` and /advise judge these in its
stead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from catalog import Catalog, Workload
from catalog.workload import BaseObject, DescribedPods, join_path
from kube.pod import CONTAINERS
from kube.templates import CONTROLLERS, JOB_TEMPLATE, group_of, merge_strategic, pod_of
from kube.tree import Path, Raw, value_at
from policies.document import Document, InputError
from policies.pods.actors import QUEUE_NAME
from policies.pods.queue_systems import VOLCANO_JOB
from policies.request import SingleRun
from policies.workloads import parts, pod_schema
from policies.workloads.described import Described, Texts, described
from policies.workloads.in_queue import in_kueue, in_volcano
from policies.workloads.parts import Parts, PodPart
from policies.workloads.single_runs import find_single_run
from policies.workloads.templates import expand, find_pod_maker, steps, templates, workload_of

Find = Callable[[Sequence[tuple[str, str]], str, str], "Document | None"]
"""Finds another object: ((API group, kind) that it may be of, the namespace of the object that names it,
its name) -> the document that holds it."""


def _nothing(kinds: Sequence[tuple[str, str]], namespace: str, name: str) -> Document | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The sources that are available besides the workload's own manifest."""

    find: Find = _nothing
    texts: Texts | None = None
    """Parses a YAML text within a manifest."""


ALONE = Around()


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A workload, as far as it shows in its pods."""

    api_version: str
    kind: str
    """The kind in the manifest: that of Volcano's ``VolcanoJob`` is ``Job``."""
    name: str
    namespace: str
    workload: Workload
    """The catalog's entry for the kind."""

    @property
    def built_in(self) -> bool:
        """True if Kubernetes itself makes its pods."""
        return (group_of(self.api_version), self.kind) in CONTROLLERS


def describing(catalog: Catalog, api_version: str, kind: str, *, name: str, namespace: str) -> Owner | None:
    """Return the workload of this kind; None if the catalog knows none, or none that describes pods."""
    known = workload_of(catalog, api_version, kind)
    if known is None or not known.describes_pods:
        return None
    return Owner(api_version=api_version, kind=kind, name=name, namespace=namespace, workload=known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Templated:
    """The pod that is made from one template, or from what replaces a template."""

    template: Path
    """The path of that in the workload."""
    pod: Raw
    user: str
    """The user that creates the pod; "" if unknown."""
    written: Raw = field(default_factory=dict)
    """The template, as written or as assembled, without what the API server and controllers add."""
    parts: Parts
    """The places in the workload of its parts."""
    elsewhere: str = ""
    """Another object that the pod is made from and that was not given: ``ClusterTrainingRuntime
    "torch-distributed"``."""
    unread: tuple[InputError, ...] = ()
    """Fields of the pod whose form can't be read."""
    single_run: SingleRun | None = None


def pods_of(document: Document, owner: Owner, catalog: Catalog, around: Around = ALONE) -> Iterator[Templated | InputError]:
    """Yield the pod of each template that is there, or what is wrong with the template; none for a kind
    without templates.

    ``document`` holds the workload.
    """
    try:
        found = [*_plain(document, owner), *_laid(document, owner, catalog, around)]
    except InputError as error:
        yield error
        return
    for one, elsewhere in found:
        try:
            _check(document, one, catalog)
        except InputError as error:
            yield error
        else:
            yield _templated(one, owner, _owner_within(document.value, one.at, owner, catalog), document.value, elsewhere)


def _owner_within(value: Raw, at: Path, owner: Owner, catalog: Catalog) -> Owner:
    """Return the workload that makes the pods of a template: of complete workloads within another one (a Job in an AppWrapper), the
    innermost."""
    here: Any = value
    for step in at:
        here = here[step]
        if not isinstance(here, dict) or "spec" not in here:
            continue
        api_version, kind = here.get("apiVersion"), here.get("kind")
        if isinstance(api_version, str) and isinstance(kind, str) and (known := workload_of(catalog, api_version, kind)) is not None:
            name = value_at(here, ("metadata", "name"))
            owner = replace(owner, api_version=api_version, kind=kind, name=name if isinstance(name, str) else owner.name, workload=known)
    return owner


def _plain(document: Document, owner: Owner) -> Iterator[tuple[Described, str]]:
    """Yield what stands in templates."""
    if not owner.workload.templates:
        return
    for path, template in templates(document, owner.workload, required=owner.built_in):
        yield Described(at=path, template=template, parts=parts.template(path)), ""


def _laid(document: Document, owner: Owner, catalog: Catalog, around: Around) -> Iterator[tuple[Described, str]]:
    """Yield what other fields describe, laid over the other object that the workload may name."""
    if owner.workload.places and "spec" in document.value:
        pod_schema.map_at(document, document.value["spec"], ("spec",), null=False)
    for number, place in enumerate(owner.workload.places):
        for one in described(document, number, place, around.texts):
            yield from _based(document, owner, place, one, catalog, around)


def _based(
    document: Document, owner: Owner, place: DescribedPods, one: Described, catalog: Catalog, around: Around
) -> Iterator[tuple[Described, str]]:
    named = named_by(document, place.base, one.at) if place.base is not None else None
    if place.base is None or named is None:
        if one.has_containers:
            yield _with_main_container(one, place), ""
        return
    under = around.find(named.kinds, owner.namespace, named.name)
    if under is None:
        if one.has_containers:
            yield one, named.title
        return
    for base in _of(under, catalog, around.texts):
        if place.base.place in (None, base.place):
            try:
                yield laid(base, one, replaced=bool(place.resources)), ""
            except ValueError as error:
                raise document.error(one.at, str(error)) from None


def _with_main_container(pods: Described, place: DescribedPods) -> Described:
    """Return the pods with the container that their controller adds, where the manifest describes init containers alone."""
    spec = pods.template["spec"]
    if spec.get("containers"):
        return pods
    name = next((devices.container for devices in place.devices), "main")
    return replace(pods, template={**pods.template, "spec": {**spec, "containers": [{"name": name}]}})


@dataclass(frozen=True, slots=True)
class NamedObject:
    """Another object that a workload names."""

    kinds: tuple[tuple[str, str], ...]
    """The kinds that it may be of: (API group, kind)."""
    name: str

    @property
    def title(self) -> str:
        """The likeliest kind and the name: ``TrainingRuntime "torch"``."""
        return f'{self.kinds[0][1]} "{self.name}"'


def references(document: Document, owner: Owner) -> Iterator[NamedObject]:
    """Yield the other objects that the workload names, which have the template of its pods."""
    for base in owner.workload.refers:
        if named := named_by(document, base, ()):
            yield named
    for place in owner.workload.places:
        for text in place.at if place.base is not None else ():
            for at, _ in expand(document, document.value, steps(join_path(place.root, text)), ()):
                if place.base is not None and (named := named_by(document, place.base, at)):
                    yield named


def named_by(document: Document, base: BaseObject, at: Path) -> NamedObject | None:
    """Return the object that the manifest names there, or None if it names none."""
    name, kind = (value_at(document.value, (*at, *steps(path))) if path else None for path in (base.name, base.kind))
    if not isinstance(name, str) or not name:
        return None
    return NamedObject(tuple(one for one in base.kinds if one[1] == kind) or base.kinds, name)


def _of(under: Document, catalog: Catalog, texts: Texts | None) -> Iterator[Described]:
    """Yield the pods that the other object describes."""
    workload = workload_of(catalog, str(under.value.get("apiVersion")), str(under.value.get("kind")))
    if workload is None:
        return
    for path, template in templates(under, workload, required=False) if workload.templates else ():
        yield Described(at=path, template=template, parts=())
    for number, place in enumerate(workload.places):
        yield from (replace(one, parts=()) for one in described(under, number, place, texts) if one.has_containers)


def _check(document: Document, one: Described, catalog: Catalog) -> None:
    """Raise InputError, with a path of the manifest, unless the template can be judged."""
    try:
        pod_schema.check(replace(document, value=one.template, path=()), one.template, (), catalog)
    except InputError as error:
        at = parts.at(error.path, one.parts)
        raise document.error(one.at if at is None else at, error.message) from None


def _templated(one: Described, outer: Owner, owner: Owner, value: Raw, elsewhere: str) -> Templated:
    """Return the pod that ``owner`` makes. ``outer``: the workload that Kueue admits, of which ``owner`` may be a part."""
    maker = find_pod_maker(owner.api_version, owner.kind, owner.workload)
    pod = pod_of(one.template, name=owner.name, namespace=owner.namespace, maker=maker)
    if queue := _queue_of(value):
        pod = in_kueue(pod, outer.workload, queue)
    if (group_of(owner.api_version), owner.kind) == VOLCANO_JOB:
        pod = in_volcano(pod, value, one.template)
    return Templated(
        template=one.at,
        pod=pod,
        user=maker.user,
        written=one.template,
        parts=one.parts,
        elsewhere=elsewhere,
        unread=one.unread,
        single_run=find_single_run(value, one.at, owner.workload),
    )


def _queue_of(value: Raw) -> str:
    """Return the queue of Kueue's that a workload names, or "" (a CronJob's Jobs name it in their template)."""
    places: tuple[Path, ...] = (("metadata",), (*JOB_TEMPLATE, "metadata"))
    found = (value_at(value, (*place, "labels", QUEUE_NAME)) for place in places)
    return next((name for name in found if isinstance(name, str) and name), "")


# --- pods of two objects: a runtime or a task that has their template, and an object that names it and sets other fields -
#
# Sources: kserve pkg/controller/v1beta1/inferenceservice/utils (MergeRuntimeContainers, MergePodSpec: strategic merge); kubeflow/trainer
# pkg/runtime/framework/plugins/jobset/builder.go (the node's resources are replaced).


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
