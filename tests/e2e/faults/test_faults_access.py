"""Berth's rights are taken away, and its account with all tokens: what was known acts, that is said, and nobody has to restart it."""

from __future__ import annotations

import yaml

from tests.e2e.faults.load import Load
from tests.e2e.faults.world import World
from tests.testcluster.addons.installed import DEPLOY, token, write_kubeconfig
from tests.testcluster.controlplane.api import Raw


def test_rights_that_are_taken_away(world: World, load: Load) -> None:
    """The binding is deleted: each kind is named with what to type; applied again, it follows again."""
    binding = _installed("ClusterRoleBinding")
    world.api.delete(binding)
    world.says(
        "Berth may not read clustergpupolicies.berth.dev",
        "Berth may not read namespaces",
        "type: kubectl apply -f deploy/rbac.yaml",
        "the last known objects are used",
    )
    world.write()
    assert world.api.apply(binding).ok
    print(f"agreed {world.settled(load):.1f} s after the rights were back")


def test_an_account_that_is_made_anew(world: World, load: Load) -> None:
    """Its tokens are denied from then on (401), and said to be; with a new one in the kubeconfig it follows again."""
    account = _installed("ServiceAccount")
    world.api.delete(account)
    assert world.api.apply(account).ok
    world.says("does not accept Berth's credentials: 401", "the last known objects are used")
    world.write()
    write_kubeconfig(world.kubeconfig, world.cluster, token(world.cluster), world.proxy.port)
    print(f"agreed {world.settled(load):.1f} s after there was a new token")


def _installed(kind: str) -> Raw:
    values: list[Raw] = list(yaml.safe_load_all((DEPLOY / "rbac.yaml").read_text()))
    [value] = [one for one in values if one["kind"] == kind and one["metadata"]["name"] == "berth"]
    return value
