"""What only the newer release knows, while both run: a word of its catalog in a policy, and fields of the definitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from policies.policy import API_VERSION
from tests.e2e.versions.side_by_side import Pair, conditions
from tests.support.counts import only_in_prove
from tests.testcluster.addons.berth import ROOT
from tests.testcluster.controlplane.api import Raw

MODEL = "X999"
GPU: Raw = {
    "model": MODEL,
    "vendor": "nvidia",
    "family": "hopper",
    "computeCapability": "9.9",
    "memoryGB": 99,
    "products": [f"NVIDIA-{MODEL}"],
}
CATALOG: Raw = {"gpus": [{**GPU, "source": "general", "mark": "derived"}]}
NAME = "newest"


def policy(model: str) -> Raw:
    spec = {"mode": "Enforce", "require": {"models": {"in": [model]}}}
    return {"apiVersion": API_VERSION, "kind": "ClusterGPUPolicy", "metadata": {"name": NAME}, "spec": spec}


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """The newer release's."""
    file = tmp_path / "catalog.yaml"
    file.write_text(yaml.safe_dump(CATALOG))
    return file


@only_in_prove
def test_the_newer_acts_on_it_whoever_writes_the_status(pair: Pair, catalog: Path) -> None:
    """The older denies it, says so, and goes on by what it understood; the newer is not held back by that, and once it holds the Lease
    the status says what it knows. ``make test`` has what becomes wrong act on as it was (``tests/policies/state/test_updater.py``)."""
    wait_for = pair.installation.cluster.wait_for
    older = pair.older("words-older")
    pair.wait_to_hold(older)
    newer = pair.newer("words-newer", "--catalog", str(catalog))
    pair.apply(policy("H100"))
    wait_for(lambda: status(pair).get("Accepted") == "True", "the policy to be accepted")
    pair.apply(policy(MODEL))
    wait_for(lambda: status(pair).get("Accepted") == "False", "the older to deny it")
    kept = stored(pair)["status"]["lastGood"]
    assert kept == {"generation": 1, "spec": policy("H100")["spec"]}
    wait_for(
        lambda: any(f"ClusterGPUPolicy/{NAME}" in event["changed"] for event in newer.events("policies_loaded")), "the newer to take it"
    )
    assert older.events("policy_rejected")
    assert not newer.events("policy_rejected")
    pair.settled()
    pair.end(older)
    pair.wait_to_hold(newer)
    wait_for(lambda: status(pair).get("Ready") == "True", "the newer to accept it")
    assert "lastGood" not in stored(pair)["status"]
    assert not newer.events("policy_rejected")
    pair.end(newer)


def stored(pair: Pair) -> Raw:
    return pair.objects()[f"ClusterGPUPolicy/{NAME}"]


def status(pair: Pair) -> dict[str, str]:
    return conditions(stored(pair))


@pytest.mark.parametrize("file", sorted(path.name for path in (ROOT / "deploy" / "crds").glob("*.yaml")))
def test_definitions_only_gain_fields(before: Path, file: str) -> None:
    """Or an object of before would lose some of itself when it is written again."""
    ours, theirs = (yaml.safe_load((folder / "deploy" / "crds" / file).read_text()) for folder in (ROOT, before))
    for old in theirs["spec"]["versions"]:
        new = next(one for one in ours["spec"]["versions"] if one["name"] == old["name"])
        lost = set(fields(old["schema"]["openAPIV3Schema"])) - set(fields(new["schema"]["openAPIV3Schema"]))
        assert lost == set()


def fields(schema: Raw, path: str = "") -> Iterator[tuple[str, str]]:
    """Path and type of each."""
    yield path, schema.get("type", "")
    for name, one in schema.get("properties", {}).items():
        yield from fields(one, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if isinstance(one := schema.get(name), dict):
            yield from fields(one, f"{path}[]")
