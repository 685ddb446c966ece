"""What policies deny of an object, in all of its templates, and the smallest change of each by which they admit it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from analysis.admission.manifest_results import ManifestResult, PodResult
from analysis.admission.manifests import Manifest, ManifestPod
from analysis.admission_preview import Admission
from analysis.fixes.admitted import smallest_admitted
from analysis.fixes.edits import changed
from analysis.fixes.smallest import SearchResult
from analysis.why import fixes
from analysis.why.places import placed_result, refused_outlook
from kube.tree import Path, Raw
from policies.placement.fleet import OUTLOOKS, Fleet, Outlook, best
from policies.verdict import Violation

MOST_TEMPLATES = 16
"""Templates of one object that are fixed: the kinds with several have two to five."""


class DeniedTemplate(NamedTuple):
    """One template that policies deny."""

    subject: ManifestPod
    denials: tuple[Violation, ...]
    found: SearchResult
    then: Raw
    """Its pod with the change, as it is admitted; as it is now where there is no change."""


def decisive(outcome: ManifestResult, fleet: Fleet | None) -> tuple[PodResult, tuple[Path, ...]]:
    """Return the pod on which it depends whether an object runs, and the other templates that can never run as they are written.

    The pod is the first that policies deny, or else the one with the worst outlook; of several, one that asks for accelerators. The
    manifest has one at least.
    """
    pods = outcome.pods[:MOST_TEMPLATES]
    denied = next((pod for pod in pods if pod.violations), None)
    if denied is not None or len(pods) == 1:
        return denied or pods[0], ()
    outlooks = [_outlook_of(pod, fleet) for pod in pods]
    first = max(range(len(pods)), key=lambda number: (OUTLOOKS.index(outlooks[number]), pods[number].is_evaluated, -number))
    never = (pod.subject.template for number, pod in enumerate(pods) if number != first and outlooks[number] == "never")
    return pods[first], tuple(never)


def _outlook_of(result: PodResult, fleet: Fleet | None) -> Outlook:
    """Return the outlook of the pod of one template, by the limits of its namespace and by places."""
    by_place: Outlook = "now" if fleet is None else best(placed_result(result).pod, fleet)
    return max(refused_outlook(result.refusals), by_place, key=OUTLOOKS.index)


def fix_templates(outcome: ManifestResult, admission: Admission, fleet: Fleet | None, most: int) -> list[DeniedTemplate]:
    """Return the templates of an object that policies deny, each with the smallest change. ``most``: changes that are judged."""
    every = []
    for pod in outcome.pods[:MOST_TEMPLATES]:
        request = pod.subject.review
        admit = admission.changes_of(request)
        if denials := admit(request.pod).violations:
            found = smallest_admitted(request.pod, fleet, admission.snapshot.catalog, admit, most)
            edits = () if found.fix is None else found.fix.edits
            every.append(DeniedTemplate(pod.subject, denials, found, admit(changed(request.pod, edits)).pod))
            most = max(most // 2, 1)
    return every


def apply_fixes(manifest: Manifest, every: Sequence[DeniedTemplate]) -> dict[str, Any]:
    """Return the object with the changes of all its templates."""
    for one in every:
        assert one.found.fix is not None
        written = fixes.fix_workload(manifest, one.subject, one.found.fix.edits)
        manifest = replace(manifest, document=replace(manifest.document, value=written))
    return manifest.value
