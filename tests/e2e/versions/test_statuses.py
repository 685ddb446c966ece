"""Two releases that write the statuses of the same objects: by turns, with the Lease, and never against each other.

``make test`` has two replicas of this release (``tests/cluster/status/test_leader_election.py``).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from policies.policy import API_VERSION
from tests.e2e.versions.side_by_side import KINDS, Pair, conditions
from tests.support.counts import only_in_prove
from tests.testcluster.addons.berth import LIBRARY, Berth
from tests.testcluster.controlplane.api import Raw

pytestmark = only_in_prove
QUIET = 60
"""seconds; a status that another replica takes back is written again once a minute"""


def policy(name: str, **spec: object) -> Raw:
    return {"apiVersion": API_VERSION, "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": {"mode": "Enforce", **spec}}


OBJECTS = (
    policy("spot", default={"capacity": ["spot"]}),
    policy("on-demand", default={"capacity": ["on-demand"]}),
    policy("unknown-model", require={"models": {"in": ["H1000"]}}),
    policy("no-template", default={"nodeTemplate": "nobody"}),
    {"apiVersion": API_VERSION, "kind": "GPUNodeTemplate", "metadata": {"name": "pool"}, "spec": {"labels": {"pool": "a"}}},
    {
        "apiVersion": API_VERSION,
        "kind": "GPUPolicy",
        "metadata": {"name": "own", "namespace": "default"},
        "spec": {"require": {"gpusPerPod": {"max": 4}}},
    },
)
"""accepted, conflicting, invalid, waiting for another, of each kind"""


@pytest.fixture(scope="module")
def replicas(pair: Pair) -> Iterator[tuple[Berth, Berth]]:
    """The older one, which holds the Lease, and the newer one, which has come beside it."""
    pair.apply(*(value for file in sorted(LIBRARY.glob("*.yaml")) for value in yaml.safe_load_all(file.read_text())), *OBJECTS)
    older = pair.older("statuses-older")
    pair.wait_to_hold(older)
    newer = pair.newer("statuses-newer")
    yield older, newer
    pair.end(older, newer)


def test_while_the_older_holds_the_lease_its_statuses_stay(pair: Pair, replicas: tuple[Berth, Berth]) -> None:
    """The newer one, which would say more, writes nothing: it waits for its turn. Nobody takes an object for denied meanwhile."""
    older, newer = replicas
    pair.settled()
    assert pair.changes(QUIET) == 0
    assert pair.holds(older)
    assert newer.metric("berth_status_writes_total") == 0
    found = pair.objects()
    assert len(found) > len(OBJECTS)
    assert all(conditions(value).get("Accepted") for value in found.values())


def test_after_the_older_is_killed_the_newer_writes_each_status_once(pair: Pair, replicas: tuple[Berth, Berth]) -> None:
    """Statuses that say less than it would, as those of a release without Ready and Stalled; and then no more."""
    older, newer = replicas
    before = pair.settled()
    pair.kill(older)
    for value in pair.objects().values():
        fewer = [one for one in value["status"]["conditions"] if one["type"] not in ("Ready", "Stalled")]
        pair.installation.cluster.api.patch(value, {"status": {"conditions": fewer}}, subresource="status")
    pair.wait_to_hold(newer)
    pair.installation.cluster.wait_for(lambda: all("Ready" in conditions(one) for one in pair.objects().values()), "Ready everywhere")
    after = pair.settled()
    assert newer.metric("berth_status_writes_total", result="written") == len(before)
    assert newer.metric("berth_status_writes_total") == len(before)
    assert pair.changes(QUIET) == 0
    assert pair.versions() == after
    for name, value in pair.objects().items():
        assert conditions(value)["Ready"] == conditions(value)["Accepted"], name


def test_after_a_rollback_the_older_writes_what_it_says_otherwise_once(pair: Pair, replicas: tuple[Berth, Berth]) -> None:
    """Each status at most once, and none that would stay as it is; nothing goes back and forth."""
    _, newer = replicas
    again = pair.older("statuses-again")
    before = pair.objects()
    pair.kill(newer)
    pair.wait_to_hold(again)
    pair.apply(policy("rollback", default={"capacity": ["spot"]}))
    pair.installation.cluster.wait_for(lambda: conditions(pair.objects()[f"{KINDS[0]}/rollback"]), "the first status of its turn")
    versions = pair.settled()
    after = pair.objects()
    changed = [name for name, value in after.items() if value["status"] != before.get(name, {}).get("status")]
    back = pair.newer("statuses-back")
    assert pair.changes(QUIET) == 0
    assert pair.versions() == versions
    assert again.metric("berth_status_writes_total", result="written") == len(changed)
    assert again.metric("berth_status_writes_total") == len(changed)
    assert back.metric("berth_status_writes_total") == 0
    pair.end(again)
    pair.wait_to_hold(back)
    pair.installation.cluster.wait_for(lambda: all("Ready" in conditions(one) for one in pair.objects().values()), "Ready everywhere again")
    pair.end(back)


def test_all_is_stored_in_one_version(pair: Pair) -> None:
    """Which both releases serve: nothing has to be migrated, forward or back."""
    for kind in KINDS:
        plural = pair.installation.cluster.api.kind(API_VERSION, kind).plural
        name = f"{plural}.berth.dev"
        found = pair.installation.cluster.api.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
        assert found is not None
        assert found["status"]["storedVersions"] == ["v1alpha1"]
        theirs = yaml.safe_load((pair.before / "deploy" / "crds" / f"berth.dev_{plural}.yaml").read_text())
        assert [(one["name"], one["storage"]) for one in theirs["spec"]["versions"]] == [("v1alpha1", True)]
