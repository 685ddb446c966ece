"""Golden cases of workloads: one YAML file is one workload, some policies and what is known of queues and of limits of the namespace, and
what its author is told of them, and of runs that an interruption ends."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from analysis.admission.manifests import read_manifest
from analysis.admission.namespace_limits import find_refusals, refusal_remarks
from analysis.admission_preview import preview_admission
from analysis.kueue import places
from policies.document import Document
from policies.facts import admission_queues
from policies.facts.cluster_facts import ClusterFacts, FactEntry
from policies.request import Request
from policies.rules.node_affinity.remarks import ENDS
from policies.verdict import Verdict
from policies.workloads.pods import Owner, Templated, pods_of
from policies.workloads.templates import workload_of
from tests.support import snapshots
from tests.support.cases import golden

CASES = Path(__file__).parents[2] / "workload_cases"
NAMESPACE = "ml"


class WorkloadCase(NamedTuple):
    """``given``: ``workload``, ``policies``, ``platforms`` and ``facts`` (Kueue's objects, all that there are, and limits).
    ``expected``: the sentences."""

    path: Path
    given: dict[str, Any]
    expected: list[str]


@cache
def cases() -> tuple[WorkloadCase, ...]:
    """Every case, by path."""
    read = ((path, yaml.load(path.read_text(), yaml.CSafeLoader)) for path in sorted(CASES.glob("*.yaml")))
    return tuple(WorkloadCase(path, case["given"], case["expect"]) for path, case in read)


def verdict(case: WorkloadCase) -> Verdict:
    """Return what comes of the workload, made by its author: remarks alone."""
    catalog, value = golden.catalog_with(), case.given["workload"]
    facts = ClusterFacts.from_objects(case.given.get("facts", ()))
    facts = facts.changed(FactEntry("followed", kind, value=True) for kind in admission_queues.KINDS)
    policies, platforms = golden.policies_of(case.given.get("policies", []), catalog), case.given.get("platforms", ("gfd",))
    snapshot = snapshots.build(policies, catalog, platforms=platforms, cluster=facts)
    known = workload_of(catalog, value["apiVersion"], value["kind"])
    assert known is not None, case.path
    owner = Owner(api_version=value["apiVersion"], kind=value["kind"], name=value["metadata"]["name"], namespace=NAMESPACE, workload=known)
    of_namespace = snapshot.facts_for(NAMESPACE)
    templated = [pod for pod in pods_of(Document(file="", value=value), owner, catalog) if isinstance(pod, Templated)]
    requests = [Request(namespace=NAMESPACE, pod=pod.pod, single_run=pod.single_run) for pod in templated]
    of_pods = (remark for request in requests for remark in preview_admission(request, of_namespace).remarks if remark.code == ENDS)
    manifest = read_manifest(Document(file="", value=value), catalog, NAMESPACE)
    refusals = (refusal for subject in manifest.subjects for refusal in find_refusals(manifest, subject, subject.review.pod, facts))
    return Verdict(remarks=(*places.remarks(value, owner, of_namespace), *of_pods, *refusal_remarks(refusals)))
