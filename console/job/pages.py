"""The page "My job": the list to choose from, or the answer about one pod, workload or manifest, with the form below it; and the page of
one code."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from analysis.audit.stored_pod import stored, widest
from analysis.why import fixes
from analysis.why.explain import as_written
from analysis.why.surroundings import Surroundings, made_of
from analysis.world.world import World
from catalog import Catalog
from catalog.nearest import hint
from cluster.watch.kinds import KUEUE_WORKLOADS
from console.job import listing, shown
from console.job.answer import JobAnswer, Teller
from console.job.pasted import Pasted, pasted, unjudged
from console.job.playground import PLAYGROUNDS, facts, supposed
from console.server.page import NotShown, Page, Visit
from console.server.query import LONGEST_NAME
from console.world.derived import Derived
from console.world.scope import ListedKind
from console.world.view import View
from documents import yaml_writer
from kube.tree import Raw, text_of
from policies.document import InputError
from policies.messages import TABLE
from policies.state.objects import id_of
from policies.state.snapshot import LONGEST_NAMESPACE, Snapshot
from policies.workloads.templates import workload_of
from sources.surroundings import Dump, kind_of

TITLE = "My job"


class PageTarget(NamedTuple):
    """An object of the cluster that the address names."""

    namespace: str
    type: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobForm:
    """What the fields below the answer have: nothing of what was typed is lost."""

    manifest: str = ""
    namespace: str = ""
    policy: str = ""
    number: int = 0


async def gather(visit: Visit) -> Surroundings | InputError | None:
    """Read the object that the address names afresh, where there is a cluster and the viewer may list pods there."""
    if (target := _target(visit)) is None or visit.near is None:
        return None
    try:
        kinds = await looked_for(visit, target.namespace, target.type)
        found = await visit.near(*target, kinds)
        return await as_listed(visit, found)
    except InputError as error:
        return error


def job(visit: Visit) -> Page:
    """The screen."""
    view, query = visit.view, visit.query
    target = _target(visit)
    if query.text("code") and not target:
        return Page(template="job_code.html", title=query.text("code")[:40], values={"code": code(query.text("code"), view)})
    form = JobForm(
        manifest=query.text("manifest"), namespace=query.name("namespace"), policy=_policy(visit), number=_number(query.text("object"))
    )
    if form.manifest.strip() or "manifest" in query:
        return _page(visit, form, *_of_text(view, form))
    if target is not None:
        return _of_target(visit, target, form)
    return _page(visit, form, None, ())


def _of_target(visit: Visit, target: PageTarget, form: JobForm) -> Page:
    view = visit.view
    try:
        found = visit.gathered if visit.near is not None else surroundings_in_dump(view.world, *target)
        if isinstance(found, InputError):
            raise found
    except InputError as error:
        raise NotShown(f"{error.file} {error.message}.") from None
    assert isinstance(found, Surroundings)
    changes, wrong = supposed(form.policy, view)
    snapshots = PLAYGROUNDS.of(view.world).snapshots(changes)
    snapshot = snapshots.every
    asked = permitted(found, view)
    made = made_of(asked, snapshot.catalog)
    value = fixes.cleaned(made.value) if made is not None else _as_written(asked, snapshot)
    text = "" if value is None else yaml_writer.write_yaml(value)
    teller = Teller(view, snapshots)
    explained = teller.explainer.of_object(f"{target.type.lower()}/{target.name}", asked, made)
    read = pasted(text, snapshot, target.namespace, 0) if text else Pasted()
    answer = teller.of_object(explained, None if read.errors else read.manifest)
    form = JobForm(manifest=text, namespace=target.namespace, policy=form.policy)
    return _page(visit, form, answer, wrong)


def _as_written(asked: Surroundings, snapshot: Snapshot) -> Raw | None:
    """Return the pod as its author wrote it; None if there is none."""
    if not asked.pods:
        return None
    pod = asked.pods[0]
    request = as_written(pod, stored(pod, widest(snapshot.catalog)), snapshot.facts_for(asked.namespace))
    return None if request is None else request.pod


def _of_text(view: View, form: JobForm) -> tuple[JobAnswer | None, Sequence[InputError], Pasted]:
    """Return the answer about a manifest that was typed, and what is wrong with what was typed."""
    changes, wrong = supposed(form.policy, view)
    namespace = form.namespace or "default"
    if len(namespace) > LONGEST_NAMESPACE:
        raise NotShown(f"A namespace has at most {LONGEST_NAMESPACE} characters.")
    read = pasted(form.manifest, view.world.snapshot, namespace, form.number)
    errors = [*read.errors, *wrong]
    if read.manifest is None:
        return None, errors, read
    if read.manifest.namespace not in view.scope.pods:
        where = read.manifest.namespace
        error = read.manifest.document.error(("metadata", "namespace"), f'you may not list pods in {where}: ask for the role "view" there')
        return None, [*errors, error], read
    snapshots = PLAYGROUNDS.of(view.world).snapshots({**facts(read.facts), **changes})
    return Teller(view, snapshots).of_manifest(read.manifest), errors, read


def _page(visit: Visit, form: JobForm, answer: JobAnswer | None, errors: Sequence[InputError], read: Pasted | None = None) -> Page:
    view, query = visit.view, visit.query
    values: dict[str, Any] = {
        "answer": None if answer is None else shown.show_answer(answer, view.world.at),
        **shown.WORDED,
        "errors": [f"{error.place}: {error.message}" for error in errors],
        "of_text": read is not None,
        "unjudged": [] if read is None or answer is not None else list(unjudged(read, view.world.snapshot)),
        "read": read or Pasted(),
        "form": form,
        "listed": listing.listing(visit) if answer is None and not form.manifest else None,
        "namespaces": listing.namespaces(view)[: shown.MOST_OFFERED],
        "policies": view.policies()[: shown.MOST_OFFERED],
        "policy": query.text("policy"),
        "q": query.text("q"),
        "asked": {name: query.text(name) for name in ("pod", "workload") if query.text(name)},
        "nodes_known": view.fleet is not None,
    }
    return Page(template="job.html", title=TITLE if answer is None else f"{answer.title} · {TITLE}", values=values)


def _policy(visit: Visit) -> str:
    """Return the text of the policy field: what was typed, or the policy that was picked."""
    view, query = visit.view, visit.query
    picked = query.text("policy")
    typed = query.text("policy_text")
    if not picked or ("policy_text" in query and not query.text("show")):
        return typed
    found = next((entry for entry in view.entries() if id_of(entry.key) == picked), None)
    if found is None:
        raise NotShown("This policy does not exist, or you may not list it. See the page Policies.")
    value = view.world.objects.get(found.key)
    return yaml_writer.write_yaml(fixes.cleaned(value)) if value is not None else ""


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0


def _target(visit: Visit) -> PageTarget | None:
    """Return what the address names. Raises NotShown for what it can't be, and for a namespace whose pods the viewer may not list."""
    query = visit.query
    if "manifest" in query:
        return None
    if pod := query.text("pod"):
        parts = [*pod.split("/"), ""][:2]
        target = PageTarget(namespace=parts[0], type="Pod", name=pod.partition("/")[2])
        wants = "/job?pod=NAMESPACE/NAME"
    elif workload := query.text("workload"):
        split = workload.split("/", 2)
        target = PageTarget(namespace=split[0], type=split[1] if len(split) > 1 else "", name=split[2] if len(split) > 2 else "")
        wants = "/job?workload=NAMESPACE/KIND/NAME"
    else:
        return None
    if not all(0 < len(part) <= LONGEST_NAME for part in target):
        raise NotShown(f"The address must be {wants}.")
    if target.namespace not in visit.view.scope.pods:
        raise NotShown(f'You may not list pods in namespace {target.namespace}: ask for the role "view" there.')
    return target


KINDS = {
    "denial": "A denial: the pod is not created.",
    "warning": "A warning: it denies nothing.",
    "notice": "A notice about a response of Berth itself.",
}


def code(name: str, view: View) -> Mapping[str, Any]:
    """Return what there is to tell of a code: ``page`` is its section in the documentation, ``pods`` those that it is found on now.

    Raises NotShown, with the nearest, for a code that is not in the table.
    """
    row = TABLE.get(name)
    if row is None:
        raise NotShown(f"This code does not exist{hint(name[:40], TABLE)}. Codes range from BERTH-001 to BERTH-299.")
    found = [pod for pod in view.pods() if any(name in one.codes and all(map(view.shows_policy, one.policies)) for one in pod.outcomes)]
    found.sort(key=lambda pod: (pod.stored.namespace, pod.stored.name))
    title = row.title[:1].upper() + row.title[1:]
    return {"code": name, "title": title, "kind": KINDS[row.kind], "page": row.page, "pods": found}


QUEUED = ListedKind(KUEUE_WORKLOADS.group, KUEUE_WORKLOADS.plural)


def _dump(world: World) -> Dump:
    return Dump(world.dumped or {})


DUMPS = Derived(_dump)


def surroundings_in_dump(world: World, namespace: str, type_: str, name: str) -> Surroundings:
    """Return an object of a world of files with what is around it. Raises InputError if it is not there."""
    found = DUMPS.of(world).near(namespace, type_, name, world.snapshot.catalog)
    if found is None:
        raise InputError(file=f"{type_}/{name}", message=f"is not in namespace {namespace}; see the list of pods")
    return found


async def looked_for(visit: Visit, namespace: str, type_: str) -> Collection[ListedKind]:
    """Return the kinds of a type that the viewer may list there. Raises InputError if there is none, and for a type that nobody knows."""
    named = kind_of(type_, visit.view.world.snapshot.catalog)
    kinds = {ListedKind(version.rpartition("/")[0], one.resource) for one in named for version in one.api_version}
    allowed = await visit.may_list(kinds, namespace)
    if not allowed:
        names = " and ".join(sorted({kind.resource for kind in kinds}))
        message = f'is not shown: you may not list {names} in namespace {namespace}. Ask for the role "view" there'
        raise InputError(file=type_, message=message)
    return allowed


async def as_listed(visit: Visit, asked: Surroundings) -> Surroundings:
    """Return what was read, without owners and Workloads of Kueue's that the viewer may not list."""
    catalog = visit.view.world.snapshot.catalog
    kinds = [_kind(one, catalog) for one in asked.owners]
    allowed = await visit.may_list({QUEUED, *kinds}, asked.namespace)
    lacking = dict.fromkeys(kind.resource for kind in kinds if kind not in allowed)
    unread = {name: f'you may not list {name} in namespace {asked.namespace}: ask for the role "view" there' for name in lacking}
    owners = [one for one, kind in zip(asked.owners, kinds, strict=True) if kind in allowed]
    return replace(asked, owners=owners, queued=asked.queued if QUEUED in allowed else (), unread={**asked.unread, **unread})


def _kind(value: Raw, catalog: Catalog) -> ListedKind:
    found = workload_of(catalog, text_of(value.get("apiVersion")), text_of(value.get("kind")))
    plural = found.resource if found is not None and found.resource else text_of(value.get("kind")).lower()
    return ListedKind(text_of(value.get("apiVersion")).rpartition("/")[0], plural)


def permitted(asked: Surroundings, view: View) -> Surroundings:
    """Return what the viewer may see of it: events are a right of their own."""
    if asked.namespace in view.scope.events:
        return asked
    unread = {**asked.unread, "events": f'you may not list events in namespace {asked.namespace}: ask for the role "view" there'}
    return replace(asked, events=(), unread=unread)
