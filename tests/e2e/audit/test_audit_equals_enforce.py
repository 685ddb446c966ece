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

from policies.audit.judged import Judged as Judgement
from policies.audit.judged import judge
from policies.audit.stored_pod import stored, widest
from policies.verdict import Would
from tests.e2e.differential.pods import generated
from tests.e2e.judged import Judged, judged
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.testcluster.controlplane.api import Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster
from webhook.reload.sources import Sources, load

PODS = count(60, 10_000)
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
    """The same refusal, or the same pod after its patch; where nothing is said, nothing changes. No stored pod is changed by being audited,
    and none that Berth has made as it should be is taken for one that it has not."""
    manifests, before = {}, {}
    for number in range(PODS):
        pod = generated(Random(number), f"p{number}")
        reply = world.created(pod)
        if reply.ok and not by_a_name_that_is_not_registered(pod):
            manifests[pod["metadata"]["name"]] = pod
            before[pod["metadata"]["name"]] = reply.body
    facts = load(Sources(policies=(str(world.policies),), facts=(str(world.judged.facts),), platforms=tuple(PLATFORMS.split(",")))).snapshot
    audited = {name: judge(stored(value, WIDE), facts.facts_for(world.judged["team"])) for name, value in before.items()}
    plain = {name: world.created(pod, "plain").body for name, pod in manifests.items()}
    assert [name for name, one in audited.items() if one is not None and one.missing] == []
    differences, changes = [], 0
    for policy in AUDITED:
        world.enforce(policy)
        for name, pod in manifests.items():
            would = of(audited[name], f"ClusterGPUPolicy/{policy}")
            changes += would is not None
            if (text := difference(would, before[name], plain[name], world.created(pod))) is not None:
                differences.append(f"{policy}, {name}: {text}")
    assert not differences, "\n".join(differences)
    print(f"{len(manifests)} pods, {changes} would-be changes and refusals, 0 differences")
    assert changes > PODS / 4


def by_a_name_that_is_not_registered(pod: Raw) -> bool:
    """It looks like an accelerator's, and the registration has those of the catalog: the API server calls nobody for such a pod."""
    spec = pod["spec"]
    resources = [one.get("resources") or {} for part in ("containers", "initContainers") for one in spec.get(part) or ()]
    names = {name for one in resources for side in ("limits", "requests") for name in one.get(side) or () if "/" in name}
    return bool(names) and not any(catalog().resource(name) for name in names)


def of(judgement: Judgement | None, policy: str) -> Would | None:
    return next((one for one in judgement.would if one.policy == policy), None) if judgement is not None else None


def difference(would: Would | None, before: Raw, plain: Raw, reply: Reply) -> str | None:
    """Between what was said and what the API server has done."""
    if would is not None and would.violations:
        refused = reply.status == 403 and would.violations[0].code in reply.message
        return None if refused else f"was to be refused: {reply.status} {reply.message}"
    if not reply.ok:
        return f"was not to be refused: {reply.message}"
    wanted = before if would is None else jsonpatch.apply_patch(plain, list(would.patch))
    found = jsonpatch.make_patch(*(json.loads(stored(one, WIDE).shared) for one in (wanted, reply.body)))
    return f"{'as before' if would is None else 'as patched'}, and then {found}" if found else None
