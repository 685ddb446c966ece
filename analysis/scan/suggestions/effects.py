"""What a suggested policy would do, by the code that admits pods: the policy alone, in Enforce, over the facts of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.scan.finding import Hit
from analysis.scan.remedies import Applier, Remedies
from analysis.scan.report import hits
from analysis.scan.seen import ScannedCluster
from analysis.scan.suggestions.suggestion import Suggestion, SuggestionEffect
from catalog import Catalog
from policies.document import Document
from policies.objects.parse import parse_objects
from policies.state.updater import Options, Updater


def effect(suggestion: Suggestion, seen: ScannedCluster, before: Sequence[Hit], options: Options, apply: Applier) -> SuggestionEffect:
    """Return what it would do to the pods that were seen. Raises InputError if it is no policy, which is a mistake of ours."""
    remedies = _remedies(suggestion, seen.catalog, options, seen, apply)
    every = [remedies.of(pod.stored) for pod in seen.pods]
    changed = sum(bool(remedy.edits) for remedy in every)
    denied = sum(bool(remedy.denied) for remedy in every)
    matched = sum(remedy.matched for remedy in every)
    found = (hit for hit in before if hit.kind in suggestion.fixes and hit.fixed is not None)
    concerned = {_key(hit) for hit in found if remedies.of(hit.pod.stored).matched}
    fixed: dict[tuple[str, str], bool] = {}
    for hit in hits(seen, remedies):
        if hit.kind in suggestion.fixes and _key(hit) in concerned:
            fixed[_key(hit)] = fixed.get(_key(hit), True) and bool(hit.fixed)
    return SuggestionEffect(matched=matched, changed=changed, denied=denied, found=len(concerned), fixed=sum(fixed.values()))


def _key(hit: Hit) -> tuple[str, str]:
    return hit.pod.stored.namespace, hit.pod.stored.name


def _remedies(suggestion: Suggestion, catalog: Catalog, options: Options, seen: ScannedCluster, apply: Applier) -> Remedies:
    document = Document(file=f"{suggestion.name}.yaml", value=suggestion.manifest("Enforce"))
    policy_set, errors, _ = parse_objects([document], catalog)
    if errors:
        raise errors[0]
    return Remedies(Updater(catalog, replace(options, max_mode="Enforce")).replace_all(policy_set, seen.cluster.facts).snapshot, apply)
