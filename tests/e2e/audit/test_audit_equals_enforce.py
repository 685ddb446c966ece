"""Findings on stored pods under policies in Audit, held against what becomes of the same manifests once each policy is in Enforce."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import jsonpatch
import pytest
import yaml

from analysis.audit.audited_decision import AuditedDecision as Judgement
from analysis.audit.audited_decision import audit_pod
from analysis.audit.outcomes import AuditResult, audit_results
from analysis.audit.stored_pod import stored, widest
from kube.templates import CONTROLLERS
from policies.patch.record import APPLIED
from policies.verdict import AuditOutcome
from sources.sources import Sources, load_sources
from tests.e2e.differential.pods import generated
from tests.e2e.judged import Judged, judged
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.testcluster.controlplane.api import Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster

PODS = count(30, 10_000)
PLATFORMS = "karpenter-aws,gfd"
WIDE = widest(catalog())
SPECS: dict[str, Raw] = {
    "taints": {
        "default": {"acceleratorTaints": "Tolerate", "capacity": ["on-demand"]},
        "require": {"requestsEqualLimits": ["accelerators"]},
    },
    "grace": {"default": {"gracePeriod": "10m", "protectFor": "12h"}},
    "ampere": {"require": {"families": {"in": ["ampere", "hopper", "turing"]}}},
    "few": {"require": {"gpusPerPod": {"max": 2}}},
    "spot": {"default": {"capacity": ["spot"]}, "match": {"gpus": {"max": 1}}},
    "slice": {"default": {"mig": {"slice": "10gb"}, "repair": ["accelerators"]}},
}
AUDITED = tuple(name for name in SPECS if name != "taints")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A Berth, and the file of policies that it follows."""

    judged: Judged
    policies: Path

    def enforce(self, name: str) -> None:
        """This policy besides ``taints``, which is in Enforce always; "" for no other. In force when this returns."""
        loaded = len(self.judged.berth.events("policies_loaded"))
        write(self.policies, name)
        self.judged.cluster.wait_for(lambda: len(self.judged.berth.events("policies_loaded")) > loaded, f"Berth to follow to {name}")

    def created(self, pod: Raw, namespace: str = "team") -> Reply:
        """By a dry run."""
        return self.judged.cluster.api.try_create(pod, self.judged[namespace], dry_run=True)


def write(file: Path, enforced: str) -> None:
    values = [
        {
            "apiVersion": "berth.dev/v1alpha1",
            "kind": "ClusterGPUPolicy",
            "metadata": {"name": name},
            "spec": {"mode": "Enforce" if name in ("taints", enforced) else "Audit", **spec},
        }
        for name, spec in SPECS.items()
    ]
    file.with_suffix(".new").write_text(yaml.safe_dump_all(values))
    file.with_suffix(".new").replace(file)


@pytest.fixture
def world(cluster: Cluster) -> Iterator[World]:
    policies = cluster.folder / "audited.yaml"
    write(policies, "")
    with judged(cluster, "audited", "--platforms", PLATFORMS, namespaces={"team": {}}, policies=policies) as found:
        yield World(judged=found, policies=policies)


def test_audit_says_of_stored_pods_what_enforce_does(world: World) -> None:
    """The same denial, or the same pod after its patch; where nothing is said, nothing changes. No stored pod is changed by being audited,
    and none that Berth has made as it should be is taken for one that it has not."""
    manifests, before = {}, {}
    for number in range(PODS):
        pod = generated(Random(number), f"p{number}")
        reply = world.created(pod)
        if reply.ok and not by_a_name_that_is_not_registered(pod) and not of_a_claimed_controller(pod):
            manifests[pod["metadata"]["name"]] = pod
            before[pod["metadata"]["name"]] = reply.body
    facts = load_sources(
        Sources(policies=(str(world.policies),), facts=(str(world.judged.facts),), platforms=tuple(PLATFORMS.split(",")))
    ).snapshot
    audited = {name: audit_pod(stored(value, WIDE), facts.facts_for(world.judged["team"])) for name, value in before.items()}
    plain = {name: world.created(pod, "plain").body for name, pod in manifests.items()}
    assert [name for name, one in audited.items() if one is not None and one.missing] == []
    differences, changes = [], 0
    for policy in AUDITED:
        world.enforce(policy)
        for name, pod in manifests.items():
            audit_outcomes = of(audited[name], f"ClusterGPUPolicy/{policy}")
            changes += audit_outcomes is not None
            reply, outcome = world.created(pod), changes_of(audited[name], f"ClusterGPUPolicy/{policy}")
            texts = difference(audit_outcomes, before[name], plain[name], reply), reported(outcome, before[name], reply)
            differences += [f"{policy}, {name}: {text}" for text in texts if text is not None]
    assert not differences, "\n".join(differences)
    print(f"{len(manifests)} pods, {changes} would-be changes and denials, 0 differences")
    assert changes > PODS / 4


def by_a_name_that_is_not_registered(pod: Raw) -> bool:
    """It looks like an accelerator's, and the registration has those of the catalog: the API server calls nobody for such a pod."""
    spec = pod["spec"]
    resources = [one.get("resources") or {} for part in ("containers", "initContainers") for one in spec.get(part) or ()]
    amounts = [(one.get(side) or {}).items() for one in resources for side in ("limits", "requests")]
    names = {name for some in amounts for name, amount in some if "/" in name and str(amount) != "0"}
    return bool(names) and not any(catalog().resource(name) for name in names)


def of_a_claimed_controller(pod: Raw) -> bool:
    """It names a controller of Kubernetes' own that did not make it: who asks for a stored pod is taken from its owner."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(made.user and one.get("controller") and one.get("kind") == made.owner[1] for one in owners for made in CONTROLLERS.values())


def of(judgement: Judgement | None, policy: str) -> AuditOutcome | None:
    return next((one for one in judgement.audit_outcomes if one.policy == policy), None) if judgement is not None else None


def changes_of(judgement: Judgement | None, policy: str) -> AuditResult | None:
    """What its report has of a policy that would change it."""
    found = audit_results(judgement) if judgement is not None else ()
    return next((one for one in found if one.finding == "would-change" and one.policies == (policy,)), None)


def difference(outcome: AuditOutcome | None, before: Raw, plain: Raw, reply: Reply) -> str | None:
    """Between what was said and what the API server has done."""
    if outcome is not None and outcome.violations:
        denied = reply.status == 403 and outcome.violations[0].code in reply.message
        return None if denied else f"was to be denied: {reply.status} {reply.message}"
    if not reply.ok:
        return f"was not to be denied: {reply.message}"
    if _is_cut(before):
        return None
    wanted = before if outcome is None else jsonpatch.apply_patch(plain, list(outcome.patch))
    found = jsonpatch.make_patch(_compared(wanted), _compared(reply.body))
    return f"{'as before' if outcome is None else 'as patched'}, and then {found}" if found else None


def _is_cut(pod: Raw) -> bool:
    """Its record is too long, so that the pod as it came can't be known: whatever is found may say the same in other words."""
    return not pod["metadata"].get("annotations", {}).get(APPLIED, "[]").startswith("[")


def reported(outcome: AuditResult | None, before: Raw, reply: Reply) -> str | None:
    """The difference between the pod as it is, with the patch that its report has, and what the API server has made of it. The record of
    who wrote what is no part of that patch."""
    if not reply.ok or _is_cut(before):
        return None
    patched = before if outcome is None else jsonpatch.apply_patch(before, json.loads(outcome.patch or "[]"))
    differs = jsonpatch.make_patch(_compared(patched), _compared(reply.body))
    return f"as reported, and then {differs}" if differs else None


def _compared(pod: Raw) -> Raw:
    """What is judged of a pod, without the record of who wrote what and without maps that are empty."""
    found: Raw = json.loads(stored(pod, WIDE).shared)
    found["metadata"].get("annotations", {}).pop(APPLIED, None)
    affinity = found["spec"].get("affinity", {})
    for parent, name in ((affinity, "nodeAffinity"), (found["spec"], "affinity"), (found["metadata"], "annotations")):
        if not parent.get(name, True):
            del parent[name]
    return found
