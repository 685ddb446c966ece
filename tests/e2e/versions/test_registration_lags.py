"""Conditions in the API server that are another version's than the replica's: told with what to type, and never a reason not to serve.

``make test`` has what is told of a registration of another catalog (``tests/webhook/reload/test_registration_check.py``).
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.e2e.certificates.shared import registered
from tests.e2e.versions.side_by_side import Pair, lead
from tests.support.cluster.faulty_proxy import Proxy
from tests.support.counts import only_in_prove
from tests.testcluster.addons.berth import COMMAND, LIBRARY, ROOT, Berth, create_namespace
from tests.testcluster.controlplane.api import Raw

pytestmark = only_in_prove
NEW_RESOURCE = "acme.example/accelerator"
CATALOG: Raw = {"resources": [{"name": NEW_RESOURCE, "vendor": "acme", "kind": "gpu"}]}
"""what a newer version brings: a line in its catalog, and so another condition"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """One address, the catalog of a newer version, and the registrations of both."""

    pair: Pair
    proxy: Proxy
    newer_catalog: Path
    namespace: str

    def apply(self, source: Path, *options: str) -> None:
        """What `berth webhooks` of a version prints."""
        command = [*COMMAND, "webhooks", "--url", f"https://127.0.0.1:{self.proxy.port}", *options]
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(source)})
        api = self.pair.installation.cluster.api
        for value in filter(None, yaml.safe_load_all(done.stdout)):
            query = {"fieldManager": "helm", "force": "true"}
            reply = api.call("PATCH", api.path_of(value), value, content="application/apply-patch+yaml", **query)
            assert reply.ok, reply.message

    def back(self) -> None:
        """To that of the version before, as docs/upgrading.md says of one with fewer entries: the configurations are deleted first."""
        for one in self.pair.installation.configurations():
            self.pair.installation.cluster.api.delete(one)
        self.apply(self.pair.before)


@pytest.fixture(scope="module")
def world(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registered]:
    """An older replica with its own registration, as before an upgrade."""
    pair.apply(*(value for file in sorted(LIBRARY.glob("*.yaml")) for value in yaml.safe_load_all(file.read_text())))
    catalog = tmp_path_factory.mktemp("newer") / "catalog.yaml"
    catalog.write_text(yaml.safe_dump(CATALOG))
    first = pair.older("lags-first")
    namespace = create_namespace(pair.installation.cluster, "lags")
    with registered(pair.installation, first) as proxy:
        found = Registered(pair=pair, proxy=proxy, newer_catalog=catalog, namespace=namespace)
        found.back()
        yield found
    pair.end(first)


def told(pair: Pair, replica: Berth, *, differs: bool) -> str:
    """The line of /readyz about the registration, once the replica has looked: ready in any case, and the metric says the same."""

    def line() -> str | None:
        page = replica.page("/readyz")
        assert page.status == 200
        found = next((one for one in page.body.decode().splitlines() if "registration: " in one), "")
        return found if ("do not match this replica's catalog" in found) is differs and "replica's catalog" in found else None

    found = pair.installation.cluster.wait_for(
        line, f"{replica.name} to say that the registration {'differs' if differs else 'is its own'}"
    )
    assert replica.metric("berth_registration_current") == float(not differs)
    return found


def serves(world: Registered, replica: Berth) -> None:
    """A GPU pod is judged by it."""
    lead(world.proxy, replica)
    world.proxy.cut()
    installation = world.pair.installation
    before = replica.metric("berth_requests_total", phase="mutate")
    installation.cluster.wait_for(lambda: installation.created(world.namespace).ok, "a pod to be created")
    assert replica.metric("berth_requests_total", phase="mutate") > before
    assert installation.created(world.namespace).body["spec"]["tolerations"]


def test_a_newer_replica_tells_that_the_registration_is_an_older_ones(world: Registered) -> None:
    """In /readyz, in the log and by a metric; it serves all the same, and once the new one is applied nothing is told any more."""
    replica = world.pair.newer("lags-newer", "--catalog", str(world.newer_catalog))
    line = told(world.pair, replica, differs=True)
    assert "run helm upgrade, or berth webhooks" in line
    (event,) = replica.events("registration_differs")
    assert "run helm upgrade, or berth webhooks" in event["text"]
    serves(world, replica)
    world.apply(ROOT, "--catalog", str(world.newer_catalog))
    told(world.pair, replica, differs=False)
    serves(world, replica)
    world.pair.end(replica)


def test_an_older_replica_tells_that_the_registration_is_a_newer_ones(world: Registered) -> None:
    """After a rollback of the replicas alone, by the release before: it serves, and what it does not know passes as it would without it."""
    world.apply(ROOT, "--catalog", str(world.newer_catalog))
    replica = world.pair.older("lags-older")
    assert "print it again (berth webhooks) and apply it" in told(world.pair, replica, differs=True)
    assert replica.events("registration_differs")
    serves(world, replica)
    pod: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"}}
    pod["spec"] = {"containers": [{"name": "c", "image": "i:1", "resources": {"limits": {NEW_RESOURCE: "1"}}}]}
    reply = world.pair.installation.cluster.api.try_create(pod, world.namespace, dry_run=True)
    assert reply.ok, reply.message
    world.back()
    told(world.pair, replica, differs=False)
    world.pair.end(replica)
