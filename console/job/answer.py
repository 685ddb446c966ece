"""What the page tells of one manifest, or of one object of the cluster, with the diff of what policies write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from analysis.admission import report
from analysis.admission.manifest_results import ManifestResult, PodResult, admit_manifest
from analysis.admission.manifests import Manifest, ManifestPod
from analysis.admission_preview import Admission
from analysis.fixes.alternatives import AlternativePod, Alternatives, AlternativeSearch
from analysis.why import denied, fixes
from analysis.why.explain import Explainer
from analysis.why.explanation import Explanation
from console.job import verdict
from console.job.playground import Snapshots
from console.job.verdict import VerdictSentence
from console.world.view import View
from documents import yaml_writer
from documents.diff import HEADER, marked_lines, spans, unified
from documents.printable import printable
from documents.yaml_writer import emit, open_list, open_map, scalar
from kube.tree import Path, dotted, value_at
from policies.verdict import AuditOutcome, Edit, Violation
from policies.workloads import parts

MOST_TRIES = 40
"""Changes that are judged in the search of the smallest fix: a page is to come at once."""
MOST_COPIED = 24 * 2**10
"""Characters of a manifest that is repeated for each alternative; of a longer one the change alone is shown."""


class OfferedManifest(NamedTuple):
    """One alternative, with the manifest that has it."""

    one: AlternativePod
    diff: Sequence[str]
    text: str
    """"" where it would be too long to be repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAnswer:
    """What there is to tell."""

    title: str
    namespace: str
    verdict: VerdictSentence
    said: Sequence[str] = ()
    """The lines of `berth try`, without the first, which is the verdict."""
    template: str = ""
    """Of an object with several pod templates, the one whose places are told: ``spec.mpiReplicaSpecs.Worker.template``."""
    found: Explanation | None = None
    """Why it waits; None where it is not judged."""
    lines: Sequence[DiffLine] = ()
    """The diff."""
    fix: str = ""
    """The manifest with the smallest change, as YAML."""
    command: str = ""
    """What to type with it."""
    offers: Sequence[OfferedManifest] = ()
    searched: Alternatives | None = None
    denials: Sequence[Violation] = field(default=())


class Teller:
    """Tells of manifests and objects under one set of policies, to one viewer."""

    def __init__(self, view: View, snapshots: Snapshots) -> None:
        self._view = view
        self._snapshot = snapshots.every
        prices = view.world.prices
        self._admission, self._searched = Admission(self._snapshot), Admission(snapshots.enforced)
        self.explainer = Explainer(self._admission, view.fleet, prices, tries=MOST_TRIES, searched=self._searched)

    def of_manifest(self, manifest: Manifest) -> JobAnswer:
        """Tell of a manifest that is not created."""
        outcome = self._permitted(admit_manifest(manifest, self._admission))
        subject = self._explained(outcome)
        title = f"{manifest.kind} {manifest.name}".strip()
        if subject is None:
            said, lines = _said(outcome), changes(outcome, self._view.shows_policy)
            return JobAnswer(title=title, namespace=manifest.namespace, verdict=verdict.of_manifest(outcome, None), said=said, lines=lines)
        found = self._seen(self.explainer.of_manifest(title, manifest, ()))
        answer = JobAnswer(
            title=title,
            namespace=manifest.namespace,
            verdict=verdict.of_manifest(outcome, found),
            said=_said(outcome),
            found=found,
            template=dotted(subject.template) if len(manifest.subjects) > 1 else "",
            lines=changes(outcome, self._view.shows_policy),
            denials=found.denials if found.invalid else [one for pod in outcome.pods for one in pod.violations],
        )
        return self._with_offers(_with_fix(answer, found), manifest, subject)

    def of_object(self, found: Explanation, manifest: Manifest | None) -> JobAnswer:
        """Tell of an object of the cluster. ``manifest``: what it is made of, as its author would write it."""
        seen = self._seen(found)
        answer = JobAnswer(
            title=found.title,
            namespace=found.namespace,
            verdict=verdict.of_object(found),
            found=seen,
            denials=found.denials,
        )
        answer = _with_fix(answer, seen)
        if manifest is None:
            return answer
        outcome = self._permitted(admit_manifest(manifest, self._admission))
        subject = self._explained(outcome)
        answer = replace(answer, lines=changes(outcome, self._view.shows_policy), said=_said(outcome))
        return answer if subject is None else self._with_offers(answer, manifest, subject)

    def _explained(self, outcome: ManifestResult) -> ManifestPod | None:
        """Return the template of a manifest that is explained, as its explanation has it; None where no pod is judged."""
        if not any(pod.is_evaluated for pod in outcome.pods):
            return None
        decisive, _ = denied.decisive(outcome, self._view.fleet)
        return decisive.subject

    def _seen(self, found: Explanation) -> Explanation:
        """Return an explanation with the policies that the viewer may list; denials name theirs to every author anyway."""
        return replace(
            found,
            policies=tuple(filter(self._view.shows_policy, found.policies)),
            audit_outcomes=self._listed(found.audit_outcomes),
            edits=tuple(edit for edit in found.edits if all(map(self._view.shows_policy, edit.policies))),
        )

    def _permitted(self, outcome: ManifestResult) -> ManifestResult:
        """Return what was judged without what policies in Audit and Warn say that the viewer may not list."""
        pods = (replace(pod, mutate=replace(pod.mutate, audit_outcomes=self._listed(pod.mutate.audit_outcomes))) for pod in outcome.pods)
        claim = None if outcome.claim is None else replace(outcome.claim, audit_outcomes=self._listed(outcome.claim.audit_outcomes))
        return replace(outcome, pods=tuple(pods), claim=claim)

    def _listed(self, audit_outcomes: tuple[AuditOutcome, ...]) -> tuple[AuditOutcome, ...]:
        return tuple(one for one in audit_outcomes if self._view.shows_policy(one.policy))

    def _with_offers(self, answer: JobAnswer, manifest: Manifest, subject: ManifestPod) -> JobAnswer:
        fleet = self._view.fleet
        if fleet is None or answer.denials:
            return answer
        search = AlternativeSearch(fleet, self._snapshot.catalog, self._view.world.prices, self._snapshot.tables)
        found = search.alternatives(subject.review.pod, self._searched.changes_of(subject.review))
        if found is None:
            return answer
        before = fixes.cleaned(manifest.value)
        return replace(answer, searched=found, offers=[_offer(one, manifest, subject, before) for one in found.found])


def _offer(one: AlternativePod, manifest: Manifest, subject: ManifestPod, before: Any) -> OfferedManifest:
    after = fixes.fix_workload(manifest, subject, one.edits)
    text = yaml_writer.write_yaml(after)
    return OfferedManifest(one, unified(before, after, "")[HEADER:], text if len(text) <= MOST_COPIED else "")


def _with_fix(answer: JobAnswer, found: Explanation) -> JobAnswer:
    if found.value is None or found.remedy is None:
        return answer
    command = fixes.command(found.remedy.kind, found.remedy.name, "fix.yaml")
    return replace(answer, fix=yaml_writer.write_yaml(found.value), command=command)


def _said(outcome: ManifestResult) -> Sequence[str]:
    return [printable(line).strip() for line in report.reasons(outcome)]


MOST_LINES = 400
"""Lines of a diff that are shown."""


class DiffLine(NamedTuple):
    """One line."""

    mark: str
    """``+``, ``-``, a space, or ``@`` before lines that are left out."""
    text: str
    policies: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    """Rules by which the policies wrote the line."""


def changes(outcome: ManifestResult, shows: Callable[[str], bool] = lambda _policy: True) -> Sequence[DiffLine]:
    """Return the lines around each change; none if nothing is changed. ``outcome``: a judged manifest; ``shows``: whether a policy may be
    named beside its lines."""
    before, after = outcome.manifest.value, outcome.after
    if before is after:
        return ()
    olds, news = list(paths(before)), list(paths(after))
    edits: list[tuple[Edit, PodResult | None]] = [(edit, pod) for pod in outcome.pods for edit in pod.edits]
    edits += [(edit, None) for edit in outcome.claim_edits]
    marked: list[DiffLine] = []
    old = new = 0
    for line in marked_lines(before, after):
        mark, path = line[0], (olds[old] if line[0] == "-" else news[new])
        old, new = old + (mark != "+"), new + (mark != "-")
        found = [] if mark == " " else [edit for edit, pod in edits if _wrote(edit, pod, path, after)]
        by = tuple(dict.fromkeys(policy for edit in found for policy in edit.policies if shows(policy)))
        marked.append(DiffLine(mark, line[1:], by, tuple(dict.fromkeys(edit.rule for edit in found))))
    return list(_shown(marked))[:MOST_LINES]


def _shown(marked: Sequence[DiffLine]) -> Iterator[DiffLine]:
    done = 0
    for first, last in spans([at for at, line in enumerate(marked) if line.mark != " "], len(marked)):
        if first > done:
            yield DiffLine("@", f"{first - done} unchanged lines")
        yield from marked[first:last]
        done = last
    if done < len(marked):
        yield DiffLine("@", f"{len(marked) - done} unchanged lines")


def _wrote(edit: Edit, pod: PodResult | None, path: Path, after: Any) -> bool:
    """Return whether an edit of a pod, or of the object itself, wrote, or took away, the line of the manifest at a path."""
    return any(_touches(edit, one, after, path) for one in ([path] if pod is None else parts.in_pod(path, pod.subject.parts)))


def _touches(edit: Edit, inside: Path, after: Any, path: Path) -> bool:
    if edit.path[-1] != "-":
        return inside[: len(edit.path)] == edit.path or edit.path[: len(inside)] == inside
    place = edit.path[:-1]
    if len(inside) <= len(place):
        return place[: len(inside)] == inside
    if inside[: len(place)] != place:
        return False
    return bool(value_at(after, path[: len(path) - len(inside) + len(place) + 1]) == edit.value)


def paths(value: Any) -> Iterator[Path]:
    """Yield where each line of a value stands in it, in the order of ``documents.yaml_writer.lines``."""
    return _paths(" ", value, " ", ())


def _paths(head: str, value: Any, pad: str, path: Path) -> Iterator[Path]:
    out: list[str] = []
    if value and isinstance(value, dict | list):
        is_map = isinstance(value, dict)
        lead, inner = open_map(head, pad, out) if is_map else open_list(head, pad, out)
        yield from (path for _ in out)
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _paths(f"{lead}{scalar(key)}:" if is_map else f"{lead}-", item, inner, (*path, key))
            lead = inner
        return
    emit(head, value, pad, out)
    yield from (path for _ in out)
