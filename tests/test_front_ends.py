"""One pod, asked about in every way: the webhook, `berth try`, `berth why`, the console and `berth audit` say the same of it."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from random import Random
from typing import Any, NamedTuple

import pytest

from analysis.admission.manifest_results import PodResult, admit_manifest
from analysis.admission.manifests import Manifest, read_manifest
from analysis.admission.report import report_lines, warning_line
from analysis.admission_preview import Admission
from analysis.audit.audited_decision import audit_pod
from analysis.audit.stored_pod import stored, widest
from analysis.why.explain import Explainer
from analysis.why.explanation import Explanation
from analysis.why.fixes import cleaned
from catalog.prices import prices
from cli.inspect.why_text import format_why
from cli.options import in_mode
from console.job.answer import JobAnswer, Teller
from console.job.playground import Snapshots
from console.world.scope import EVERYTHING
from console.world.view import View
from kube.pod import Pod
from kube.tree import Raw, apply_patch
from policies.document import Document, InputError
from policies.fixes import Fix
from policies.request import Request
from policies.rules.requests_match_limits import undecodable
from policies.state.snapshot import Snapshot
from policies.verdict import Violation
from telemetry.metrics import Metrics
from tests.support.cases.kind_manifests import FOUND
from tests.support.console.worlds import world as world_of
from tests.support.counts import count
from tests.support.generators import random_pods, random_worlds
from tests.support.recorded import eks, gke, on_premises
from webhook.admission.app import ROUTES

SEEDS = count(60, 2_000)
"""of worlds; a pod in each, and its manifest"""


NOW = datetime(2026, 1, 1, tzinfo=UTC)
Denials = frozenset[tuple[str, tuple[Fix, ...]]]
"""The sentences of a denial, each with the fixes that its rule wrote."""


class Said(NamedTuple):
    """What one of them says: the codes that deny the pod, and the pod as admitted."""

    codes: frozenset[str]
    pod: Raw | None


def by_webhook(request: Request, snapshot: Snapshot) -> Said:
    """Both phases over the wire's bytes, the patch applied between them as the API server does."""
    pod = request.pod
    for phase in (b"/mutate", b"/validate"):
        asked = {
            "uid": "1",
            "operation": "CREATE",
            "namespace": request.namespace,
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "userInfo": {"username": request.user, "groups": list(request.groups)},
            "object": pod,
        }
        body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}).encode()
        response = json.loads(ROUTES[phase].handle(body, snapshot, Metrics("test"), None)[1])["response"]
        if not response["allowed"]:
            return Said(frozenset(re.findall(r"^(?:- )?(BERTH-\d+):", response["status"]["message"], re.MULTILINE)), None)
        pod = apply_patch(pod, json.loads(base64.b64decode(response["patch"]))) if "patch" in response else pod
    return Said(frozenset(), pod)


def by_try(pod: PodResult) -> Said:
    """`berth try`, of the pod as it is judged: with the gate and the label of Kueue's own webhook."""
    codes = frozenset(violation.code for violation in pod.violations)
    return Said(codes, None if codes else apply_patch(pod.subject.review.pod, pod.mutate.patch))


def by_why(manifest: Manifest, snapshot: Snapshot) -> Explanation:
    """`berth why -f`, without a right to read nodes."""
    return Explainer(Admission(snapshot), None, prices(snapshot.catalog), tries=0).of_manifest("pod", manifest, ())


def by_console(manifest: Manifest, snapshot: Snapshot, view: View) -> JobAnswer:
    """The page of a job."""
    return Teller(view, Snapshots(snapshot, snapshot)).of_manifest(manifest)


def first_lines(explained: Explanation) -> list[str]:
    """What `berth why` prints between its head and the places."""
    lines = format_why(explained, NOW).splitlines()[1:]
    return [line for line in lines if re.match(r"  (in [^ ]+: )?warning: BERTH-", line)]


def denials(violations: Iterable[Violation]) -> Denials:
    """Return what is said of a denial, as text, and the fixes that its rule wrote."""
    return frozenset((str(violation), violation.fixes) for violation in violations)


def compare(manifest: Manifest, snapshot: Snapshot, view: View) -> Counter[str]:
    """Ask every front end about an object. Return how many of its pods are denied and admitted; those of which no webhook is asked are
    left out."""
    counts: Counter[str] = Counter()
    outcome = admit_manifest(manifest, Admission(snapshot))
    for tried in outcome.pods:
        request = tried.subject.review
        if request.operation != "CREATE" or list(undecodable(Pod(request.pod), snapshot)):
            continue
        said = by_webhook(request, snapshot)
        assert by_try(tried) == said
        assert len(set(map(str, tried.violations))) == len(tried.violations), "each once"
        counts["denied" if said.pod is None else "admitted"] += 1
        if said.pod is not None:
            audited = audit_pod(stored(said.pod, widest(snapshot.catalog)), snapshot.facts_for(request.namespace))
            # without managedFields, a node that the author wrote counts as the scheduler's
            assert request.pod["spec"].get("nodeName") or audited is None or (audited.violations, audited.missing) == ((), ())
    if counts:
        every = denials(violation for pod in outcome.pods for violation in pod.violations)
        explained, shown = by_why(manifest, snapshot), by_console(manifest, snapshot, view)
        if every or not explained.invalid:  # else Kubernetes itself denies it, which no policy says
            assert denials(explained.denials) == denials(shown.denials) == every
        warned = [line for line in report_lines(outcome) if re.match(r"  (in [^ ]+: )?warning: BERTH-", line)]
        assert first_lines(explained) == warned
        assert shown.found is None or [*map(warning_line, shown.found.warnings)] == warned
        counts["warned"] += bool(warned)
    return counts


@pytest.fixture(scope="module")
def view() -> View:
    """A console's, of somebody who may list all."""
    return View(world=world_of(eks.objects()), scope=EVERYTHING)


def test_all_front_ends_agree_on_random_pods(view: View) -> None:
    """On the verdict, its codes and fixes, the warnings and the pod as admitted; an audit has nothing to say of what was admitted."""
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        random = Random(seed)
        world = random_worlds.world(random)
        asked = random_pods.authored(random, world)
        asked.pod["metadata"].pop("ownerReferences", None)  # an author writes none: it is for the controller to write
        value = {"apiVersion": "v1", "kind": "Pod", **asked.pod}
        try:
            manifest = read_manifest(Document(file="pod.yaml", value=value), world.snapshot.catalog, asked.namespace)
        except InputError:
            continue  # an amount of a wrong type
        counts += compare(manifest, world.snapshot, view)
    assert counts["denied"] > SEEDS / 10 < counts["admitted"], "both come up"
    assert counts["warned"] > SEEDS / 20, "warnings do too"


@pytest.mark.parametrize("cluster", [eks, gke, on_premises])
def test_all_front_ends_agree_on_recorded_clusters(cluster: Any) -> None:
    """On each pod and workload that the cluster has, as its author wrote it, under the shipped policies in Enforce."""
    world = world_of(cluster.objects())
    snapshot = in_mode(world.snapshot, "Enforce")
    view, counts = View(world=world, scope=EVERYTHING), Counter[str]()
    for value in cluster.objects():
        try:
            counts += compare(read_manifest(Document(file="dump.yaml", value=cleaned(value)), snapshot.catalog, "web"), snapshot, view)
        except InputError:
            continue  # no object that can be applied
    assert counts.total() > 3


def test_all_front_ends_agree_on_workloads(view: View) -> None:
    """On each kind of workload of the catalog, under the shipped policies in Enforce."""
    snapshot, counts = in_mode(view.world.snapshot, "Enforce"), Counter[str]()
    for _, value in FOUND:
        counts += compare(read_manifest(Document(file="f", value=value), snapshot.catalog, "web"), snapshot, view)
    assert counts["denied"] > 2 < counts["admitted"], "both come up"
