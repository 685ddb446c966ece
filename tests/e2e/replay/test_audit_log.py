"""An audit log that a real API server wrote while a real Berth decided, replayed: by the same policies, and by others whose decisions
the API server then shows."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from cli.main import main
from tests.e2e.audit.test_audit_equals_enforce import World, write
from tests.e2e.differential.pods import generated
from tests.e2e.judged import judged
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons import nodes
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.fixtures import control_plane

PODS = count(30, 5_000)
PLATFORMS = "karpenter-aws,gfd"
AUDIT: Raw = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [
        {
            "level": "RequestResponse",
            "verbs": ["create"],
            "resources": [{"group": "", "resources": ["pods"]}],
            "namespaces": ["replayed-whole"],
        },
        {"level": "Request", "verbs": ["create", "update", "patch"], "resources": [{"group": "", "resources": ["pods"]}]},
        {
            "level": "Metadata",
            "resources": [{"group": "", "resources": ["pods", "pods/status"]}, {"group": "batch", "resources": ["jobs"]}],
        },
        {"level": "None"},
    ],
}
TEMPLATE: Raw = {
    "metadata": {"labels": {"app": "train"}},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
}


@pytest.fixture(scope="module")
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose audit log has the pods: all stages, several levels."""
    policy = tmp_path_factory.mktemp("audit") / "policy.yaml"
    policy.write_text(yaml.safe_dump(AUDIT))
    with control_plane(request.session, Options(apiserver=(f"--audit-policy-file={policy}",))) as cluster:
        nodes.add(cluster, *nodes.bare_metal(catalog()))
        yield cluster


@pytest.fixture
def world(recorded: Cluster) -> Iterator[World]:
    policies = recorded.folder / "replayed.yaml"
    write(policies, "")
    with judged(recorded, "replayed", "--platforms", PLATFORMS, namespaces={"team": {}, "whole": {}}, policies=policies) as found:
        yield World(judged=found, policies=policies)


def replayed(capsys: pytest.CaptureFixture[str], world: World, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the JSON."""
    facts = str(world.judged.facts)
    capsys.readouterr()
    code = main(["replay", "-o", "json", "--platforms", PLATFORMS, "--facts", facts, *words])
    return code, json.loads(capsys.readouterr().out)


def test_the_same_policies_decide_nothing_otherwise(world: World, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Pods of every form, created by an author, by controllers, and by server-side apply, twice the same log; dry runs are counted. Once a
    policy is in Enforce, the log is replayed by it, and the API server denies and admits what the replay says."""
    cluster, manifests = world.judged.cluster, {}
    for number in range(PODS):
        manifests[f"p{number}"] = generated(Random(number), f"p{number}")
        cluster.api.try_create(manifests[f"p{number}"], world.judged["whole" if number % 3 == 0 else "team"])
    for number in range(5):
        world.created(manifests[f"p{number}"])
    team = world.judged["team"]
    job = {"parallelism": 5, "completions": 5, "template": TEMPLATE}
    cluster.api.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": team}, "spec": job})
    applied = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "applied", "namespace": team}, "spec": TEMPLATE["spec"]}
    assert cluster.api.apply(applied).status == 201
    cluster.wait_for(lambda: sum(_created(one, "train-") for one in _events(cluster)) == 5, "the Job's pods in the audit log")
    log = tmp_path / "audit.log"
    log.write_bytes((cluster.folder / "audit.log").read_bytes())
    again = tmp_path / "audit-2026-01-01.log.gz"
    again.write_bytes(gzip.compress(log.read_bytes()))

    code, found = replayed(capsys, world, "--policies", str(world.policies), str(tmp_path), "--diff")
    assert found["differences"] == []
    assert (code, found["otherwise"]) == (0, 0)
    assert found["compared"] > PODS / 2
    unregistered = found["pods"] - found["compared"]
    assert unregistered < PODS / 10 + 2
    passed = found["passedOver"]
    assert passed["repeated"] == found["pods"]
    assert passed["dry-run"] >= 5
    assert passed["stage"] >= 2 * PODS
    assert {"train", "applied"} <= {name for one in _events(cluster) for name in _names(one)}
    print(f"{found['compared']} pods compared, 0 differences")

    others = tmp_path / "others.log"
    decided = {str(one["objectRef"].get("name")): one for one in _events(cluster) if _is_decided(one)}
    others.write_text("".join(json.dumps(one) + "\n" for one in decided.values()))
    write(world.policies, "few")
    code, found = replayed(capsys, world, "--policies", str(world.policies), str(others))
    write(world.policies, "")
    world.enforce("few")
    flips: Counter[tuple[int, int]] = Counter()
    for name, event in decided.items():
        reply = cluster.api.try_create(_anew(manifests[name.partition(".")[0]]), team, dry_run=True)
        flips[event["responseStatus"]["code"], reply.status] += 1
    assert code == 1
    assert (found["turns"]["newly-denied"], found["turns"]["newly-admitted"]) == (flips[201, 403], 0)
    assert flips[201, 403] > PODS / 20
    print(f"{found['turns']['newly-denied']} of {len(decided)} pods newly denied, as the API server denies them")


def _events(cluster: Cluster) -> Iterator[Raw]:
    return (one for one in cluster.audited() if one["stage"] == "ResponseComplete" and one["objectRef"]["resource"] == "pods")


def _created(event: Raw, prefix: str) -> bool:
    return bool(event["verb"] == "create" and event.get("requestObject", {}).get("metadata", {}).get("generateName") == prefix)


def _names(event: Raw) -> set[str]:
    metadata = event.get("requestObject", {}).get("metadata", {})
    return {str(metadata.get("name")), *(one["name"] for one in metadata.get("ownerReferences", ()))}


def _is_decided(event: Raw) -> bool:
    """A pod of the generator that was stored, or denied by Berth."""
    name, code = str(event["objectRef"].get("name")), event["responseStatus"]["code"]
    return bool(event["verb"] == "create" and "dryRun" not in event["requestURI"] and name[:1] == "p" and code in (201, 403))


def _anew(pod: Raw) -> Raw:
    """Under a name that is not taken."""
    return {**pod, "metadata": {**pod["metadata"], "name": f"new-{pod['metadata']['name']}"}}
