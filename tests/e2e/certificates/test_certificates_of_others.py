"""Certificates that somebody else puts into the Secret, on a real API server: served, published, and never written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from certs.authority import issue, make_ca
from tests.e2e.certificates.shared import SERVICE, Installation, berth, creating, registered, served
from tests.support.counts import count
from tests.testcluster.addons.berth import create_namespace

NAMES = (SERVICE, "127.0.0.1")
CHANGES = count(1, 20)


def test_what_others_put_there_is_served(installation: Installation) -> None:
    """Not ready before it is there; a new pair at once, one of another CA too without a failed creation; a half one not at all."""
    now = datetime.now(UTC)
    namespace = create_namespace(installation.cluster, "others-certificates")
    replica = installation.started("others", "--cert-source", "theirs")
    installation.cluster.wait_for(lambda: "there is no Secret" in replica.page("/readyz").body.decode(), "the page to say what is missing")
    ca = make_ca(now)
    leaf = issue(ca, NAMES, now)
    with registered(installation, replica):
        installation.put(ca, leaf)
        installation.ready(replica)
        assert served(replica) == leaf.certificate
        with creating(installation, namespace) as creations:
            for number in range(CHANGES):
                leaf = issue(ca, NAMES, now + timedelta(minutes=number))
                installation.put(ca, leaf)
                installation.cluster.wait_for(lambda leaf=leaf: served(replica) == leaf.certificate, "the renewed one")  # type: ignore[misc]
            for number in range(CHANGES):
                ca = make_ca(now)
                leaf = issue(ca, NAMES, now + timedelta(minutes=number))
                installation.put(ca, leaf)
                installation.cluster.wait_for(lambda leaf=leaf: served(replica) == leaf.certificate, "the one of another CA")  # type: ignore[misc]
            installation.change_secret({"tls.key": issue(ca, NAMES, now).key_pem})
            installation.cluster.wait_for(lambda: replica.events("certificate_rejected"), "the foreign key to be rejected")
            installation.change_secret({"tls.key": b""})
            installation.cluster.wait_for(
                lambda: any("has no tls.key" in event["error"] for event in replica.events("certificates_failed")),
                "what is missing to be told",
            )
        assert creations.failed == []
        assert served(replica) == leaf.certificate
    assert "does not belong to the certificate" in replica.events("certificate_rejected")[0]["error"]
    secret = installation.secret()
    done = berth(installation, "certs", "check")
    assert (done.returncode, "was not created by Berth" in done.stderr) == (2, True)
    assert secret is not None
    assert set(secret["data"]) == {"ca.crt", "tls.crt", "tls.key"}
    installation.cluster.processes.end(replica.process)
