"""etcd is restored to a time before the first CA: what replicas hold in memory counts, and nobody has to do anything."""

from __future__ import annotations

from certs.secret import to_data
from tests.e2e.certificates.shared import Installation, registered
from tests.support.counts import only_in_prove
from tests.testcluster.addons.berth import create_namespace
from tests.testcluster.controlplane import restarting


@only_in_prove
def test_a_store_of_before_the_first_ca(installation: Installation) -> None:
    """The Secret comes back with the same CA, and so does the caBundle of a registration that is applied again: pods are judged.
    `make test` has the Secret that comes back from memory in test_shared_certificates.py, and a restored store in tests/e2e/faults."""
    namespace = create_namespace(installation.cluster, "before-the-first-ca")
    copy = restarting.backup(installation.cluster)
    one = installation.started("before-the-first-ca")
    with registered(installation, one):
        installation.ready(one)
        before = to_data(installation.material())
        restarting.restore(installation.cluster, copy)
        installation.cluster.wait_for(lambda: installation.secret() is not None, "the Secret to come back")
        assert to_data(installation.material()) == before
        assert installation.configurations() == []
        assert one.page("/readyz").status == 200
    with registered(installation, one):
        installation.cluster.wait_for(lambda: installation.created(namespace).ok, "a GPU pod to be created")
        assert installation.created(namespace).body["spec"]["tolerations"]
    installation.cluster.processes.end(one.process)
