"""The Secret of the certificates, read and written by two releases in turn."""

from __future__ import annotations

from base64 import b64decode

from tests.e2e.certificates.shared import served
from tests.e2e.versions.side_by_side import Pair
from tests.support.counts import only_in_prove
from tests.testcluster.addons.berth import Berth

LATER = "later.json"
"""a field of the Secret that a release to come may have"""


@only_in_prove
def test_each_renews_what_the_other_made(pair: Pair) -> None:
    """Whoever comes serves what is there, and renews it with the same CA; what a release does not know it leaves in the Secret.

    ``make test`` has replicas of this release share it (``tests/e2e/certificates``)."""
    older = pair.older("made")
    pair.installation.change_secret({LATER: b"{}"})
    _renewed(pair, older, 1)
    newer = pair.newer("came")
    assert served(newer) == served(older)
    pair.end(older)
    _renewed(pair, newer, 2)
    back = pair.older("came-back")
    assert served(back) == served(newer)
    pair.end(newer)
    _renewed(pair, back, 3)
    assert len(pair.installation.material().authorities) == 1
    for replica in (older, newer, back):
        assert not replica.events("certificates_damaged")
    pair.end(back)


def _renewed(pair: Pair, replica: Berth, request: int) -> None:
    """By the only replica that runs, as `berth certs rotate` asks."""
    before = served(replica)
    pair.installation.rotate("leaf", request)
    pair.installation.cluster.wait_for(lambda: served(replica) != before, "another certificate to be served")
    secret = pair.installation.secret()
    assert secret is not None
    assert b64decode(secret["data"][LATER]) == b"{}"
