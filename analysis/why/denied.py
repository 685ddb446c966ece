"""What policies deny of an object, in all of its templates, and the smallest change of each by which they admit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from analysis import admission_preview
from analysis.admission.manifests import Manifest, ManifestPod
from analysis.fixes.admitted import smallest_admitted
from analysis.fixes.edits import changed
from analysis.fixes.smallest import SearchResult
from analysis.why import fixes
from kube.tree import apply_patch
from policies.placement.fleet import OUTLOOKS, Fleet, best
from policies.request import Request
from policies.state.snapshot import Facts
from policies.verdict import Violation

Pod = Mapping[str, Any]
MOST_TEMPLATES = 16
"""Templates of one object that are mended: the kinds with several have two to five."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Judges changes of the pod of one request."""

    request: Request
    facts: Facts

    def __call__(self, pod: Pod) -> tuple[Pod, tuple[Violation, ...]]:
        """Return the pod as it is admitted, and why it is denied."""
        judged = admission_preview.preview_admission(replace(self.request, pod=dict(pod)), self.facts, apply_patch)
        return apply_patch(pod, judged.mutate.patch), judged.violations

    def unedited(self, pod: Pod) -> tuple[Pod, tuple[Violation, ...]]:
        """Return the pod as it is where Berth is not asked."""
        return pod, self(pod)[1]


class DeniedTemplate(NamedTuple):
    """One template that policies deny."""

    subject: ManifestPod
    denials: tuple[Violation, ...]
    found: SearchResult
    then: Pod
    """Its pod with the change, as it is admitted; as it is now where there is no change."""


def decisive(manifest: Manifest, facts: Facts, fleet: Fleet | None) -> ManifestPod:
    """Return the template on which it depends whether an object runs: the first that policies deny, or else, of those that ask for
    accelerators, the one with the worst outlook: a launcher finds a place long before its workers. The manifest has one at least."""
    if len(manifest.subjects) == 1:
        return manifest.subjects[0]
    ranked = []
    for subject in manifest.subjects[:MOST_TEMPLATES]:
        judged = admission_preview.preview_admission(subject.review, facts, apply_patch)
        if judged.violations:
            return subject
        outlook = "now" if fleet is None else best(apply_patch(subject.review.pod, judged.mutate.patch), fleet)
        ranked.append(((judged.judged, OUTLOOKS.index(outlook)), subject))
    return max(ranked, key=lambda one: one[0])[1]


def fix_templates(manifest: Manifest, facts: Facts, fleet: Fleet | None, most: int) -> list[DeniedTemplate]:
    """Return the templates of an object that policies deny, each with the smallest change. ``most``: changes that are judged."""
    every = []
    for subject in manifest.subjects[:MOST_TEMPLATES]:
        admit = Admission(subject.review, facts)
        if denials := admit(admit.request.pod)[1]:
            found = smallest_admitted(admit.request.pod, fleet, facts.snapshot.catalog, admit, most)
            edits = () if found.fix is None else found.fix.edits
            every.append(DeniedTemplate(subject, denials, found, admit(changed(admit.request.pod, edits))[0]))
            most = max(most // 2, 1)
    return every


def apply_fixes(manifest: Manifest, every: Sequence[DeniedTemplate]) -> dict[str, Any]:
    """Return the object with the changes of all its templates."""
    for one in every:
        assert one.found.fix is not None
        written = fixes.fix_workload(manifest, one.subject, one.found.fix.edits)
        manifest = replace(manifest, document=replace(manifest.document, value=written))
    return manifest.value
