"""Judging of the queue of a workload, as the API server has it judged: the label first, then what is required."""

from __future__ import annotations

from dataclasses import replace

from cli.given.manifests import Manifest
from cli.judging.patch_applier import apply_patch
from policies.rules.queues import keys
from policies.state.snapshot import Snapshot
from policies.verdict import Verdict
from webhook.admission.decoding import Unreadable
from webhook.admission.queues import workload_review
from webhook.admission.queues.workload_review import WorkloadReview
from webhook.admission.workload_advice import Advised


def of_workload(manifest: Manifest, snapshot: Snapshot, *, asks: bool) -> Verdict | None:
    """Return the verdict on a workload, with its label if it gets one and what is said of its own keys; None if nothing is to be said of
    it, or it can't be read. ``asks``: whether its pods request an accelerator."""
    if manifest.reviewed or not any(subject.template for subject in manifest.subjects):
        return None
    value = manifest.value
    asked = Advised(
        uid="",
        operation="CREATE",
        namespace=manifest.namespace,
        user="",
        api_version=str(value.get("apiVersion")),
        kind=str(value.get("kind")),
        name=manifest.name,
        workload=value,
        dry_run=True,
    )
    try:
        given = workload_review.labelled(WorkloadReview(asked=asked, old=None), snapshot)
        after = replace(asked, workload=apply_patch(value, given.patch)) if given.patch else asked
        judged = workload_review.judged(WorkloadReview(asked=after, old=None), snapshot)
    except Unreadable:
        return None
    ignored = keys.of_workload(value, snapshot.catalog) if asks else ()
    if not (given.judged or judged.violations or judged.remarks or ignored):
        return None
    return replace(given, violations=judged.violations, remarks=(*given.remarks, *judged.remarks, *ignored), judged=True)
