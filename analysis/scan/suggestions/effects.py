"""What a suggested policy would do, by the code that admits pods: the policy alone, in Enforce, over the facts of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.admission_preview import Admission
from analysis.scan.finding import Hit
from analysis.scan.report import hits
from analysis.scan.seen import ScannedCluster
from analysis.scan.suggestions.suggestion import Suggestion, SuggestionEffect
from policies.document import Document
from policies.objects.parse import parse_objects
from policies.state.updater import Options, Updater


def effect(suggestion: Suggestion, seen: ScannedCluster, before: Sequence[Hit], options: Options) -> SuggestionEffect:
    """Return what it would do to the pods that were seen. Raises InputError if it is no policy, which is a mistake of ours."""
    admission = _admission(suggestion, options, seen)
    every = [admission.of(pod.stored) for pod in seen.pods]
    changed = sum(bool(admitted.edits) for admitted in every)
    denied = sum(bool(admitted.violations) for admitted in every)
    matched = sum(bool(admitted.matched) for admitted in every)
    found = (hit for hit in before if hit.kind in suggestion.fixes and hit.fixed is not None)
    concerned = {_key(hit) for hit in found if admission.of(hit.pod.stored).matched}
    fixed: dict[tuple[str, str], bool] = {}
    for hit in hits(seen, admission):
        if hit.kind in suggestion.fixes and _key(hit) in concerned:
            fixed[_key(hit)] = fixed.get(_key(hit), True) and bool(hit.fixed)
    return SuggestionEffect(matched=matched, changed=changed, denied=denied, found=len(concerned), fixed=sum(fixed.values()))


def _key(hit: Hit) -> tuple[str, str]:
    return hit.pod.stored.namespace, hit.pod.stored.name


def _admission(suggestion: Suggestion, options: Options, seen: ScannedCluster) -> Admission:
    document = Document(file=f"{suggestion.name}.yaml", value=suggestion.manifest("Enforce"))
    policy_set, errors, _ = parse_objects([document], seen.catalog)
    if errors:
        raise errors[0]
    return Admission(Updater(seen.catalog, replace(options, max_mode="Enforce")).replace_all(policy_set, seen.cluster.facts).snapshot)
