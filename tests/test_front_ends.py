"""One pod, asked about in every way: the webhook, `berth try`, `berth why`, the console and `berth audit` say the same of it."""

from __future__ import annotations

import base64
import json
import re
from random import Random
from typing import NamedTuple

import pytest

from analysis.admission.judge import PodResult, admit_manifest
from analysis.admission.manifests import Manifest, read_manifest
from analysis.admission_preview import Admission
from analysis.audit.judged import audit_pod
from analysis.audit.stored_pod import stored, widest
from analysis.why.explain import Explainer
from catalog.prices import prices
from console.job.answer import Teller
from console.job.playground import Snapshots
from console.world.scope import EVERYTHING
from console.world.view import View
from kube.pod import Pod
from kube.tree import Raw, apply_patch
from policies.document import Document, InputError
from policies.request import Request
from policies.rules.requests_match_limits import undecodable
from policies.state.snapshot import Snapshot
from telemetry.metrics import Metrics
from tests.support.console.worlds import world as world_of
from tests.support.counts import count
from tests.support.generators import random_pods, random_worlds
from tests.support.recorded import eks
from webhook.admission.app import ROUTES

SEEDS = count(60, 2_000)
"""of worlds; a pod in each, and its manifest"""


TOO_LARGE = {"BERTH-004"}


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
        response = json.loads(ROUTES[phase].judge(body, snapshot, Metrics("test"), None)[1])["response"]
        if not response["allowed"]:
            return Said(frozenset(re.findall(r"^(?:- )?(BERTH-\d+):", response["status"]["message"], re.MULTILINE)), None)
        pod = apply_patch(pod, json.loads(base64.b64decode(response["patch"]))) if "patch" in response else pod
    return Said(frozenset(), pod)


def by_try(pod: PodResult) -> Said:
    """`berth try`, of the pod as it is judged: with the gate and the label of Kueue's own webhook."""
    codes = frozenset(violation.code for violation in pod.violations)
    return Said(codes, None if codes else apply_patch(pod.subject.review.pod, pod.mutate.patch))


def by_why(manifest: Manifest, snapshot: Snapshot) -> frozenset[str]:
    """`berth why -f`."""
    found = Explainer(Admission(snapshot), None, prices(snapshot.catalog), tries=0).of_manifest("pod", manifest, ())
    return frozenset(violation.code for violation in found.denials)


def by_console(manifest: Manifest, snapshot: Snapshot, view: View) -> frozenset[str]:
    """The page of a job."""
    return frozenset(violation.code for violation in Teller(view, Snapshots(snapshot, snapshot)).of_manifest(manifest).denials)


@pytest.fixture(scope="module")
def view() -> View:
    """A console's, of somebody who may list all."""
    return View(world=world_of(eks.objects()), scope=EVERYTHING)


def test_all_front_ends_agree(view: View) -> None:
    """On the verdict, its codes and the pod as admitted; and an audit has nothing to say of what was admitted."""
    denied = admitted = 0
    for seed in range(SEEDS):
        random = Random(seed)
        world = random_worlds.world(random)
        snapshot, asked = world.snapshot, random_pods.authored(random, world)
        asked.pod["metadata"].pop("ownerReferences", None)  # an author writes none: it is for the controller to write
        value = {"apiVersion": "v1", "kind": "Pod", **asked.pod}
        try:
            manifest = read_manifest(Document(file="pod.yaml", value=value), snapshot.catalog, asked.namespace)
        except InputError:
            continue  # an amount of a wrong type
        if list(undecodable(Pod(asked.pod), snapshot)):
            continue  # no webhook is called with it either
        (tried,) = admit_manifest(manifest, Admission(snapshot)).pods
        request = tried.subject.review
        said = by_webhook(request, snapshot)
        if said.codes == TOO_LARGE:
            continue  # only the webhook has so little time
        assert by_try(tried) == said, seed
        assert by_why(manifest, snapshot) == said.codes, seed
        assert by_console(manifest, snapshot, view) == said.codes, seed
        if said.pod is None:
            denied += 1
        else:
            admitted += 1
            audited = audit_pod(stored(said.pod, widest(snapshot.catalog)), snapshot.facts_for(request.namespace))
            # without managedFields, a node that the author wrote counts as the scheduler's
            assert request.pod["spec"].get("nodeName") or audited is None or (audited.violations, audited.missing) == ((), ()), seed
    assert denied > SEEDS / 10 < admitted, "both come up"
