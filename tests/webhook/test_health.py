"""What the second port says in each state."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from policies.facts.device_modes import Advertised, AdvertisedTwice
from policies.state.snapshot import Snapshot
from server.limits import Limits
from sources.sources import ClusterSource, Sources, load_sources
from telemetry.metrics import Metrics
from telemetry.watch_metrics import Watching
from tests.cluster.certificates.test_keeper import Api
from tests.support.calls.in_process import ask
from webhook.admission.app import AdmissionState
from webhook.health import checks, starlette_of
from webhook.reload.reload_results import ReloadResults
from webhook.reload.shared_certificate import CertificateSecret, SharedCertificate

NOW = 1_800_000_000.0
SNAPSHOT = load_sources(Sources()).snapshot


def results(snapshot: Snapshot | None = SNAPSHOT, *, draining: bool = False) -> ReloadResults:
    admission = AdmissionState(limits=Limits(), metrics=Metrics("0"), snapshot=snapshot, draining=draining)
    return ReloadResults(admission=admission, certificate_expires=NOW + 3600, loaded_at=NOW - 34)


def lines(it: ReloadResults, now: float = NOW) -> list[str]:
    return [str(check) for check in checks(it, now)]


def test_ready_says_what_acts_and_for_how_long() -> None:
    """Policies, the most that any may do, their age, and the certificate's end."""
    assert lines(results()) == [
        "[+] policies: 1 active, max mode Enforce, loaded 34 s ago",
        "[+] certificate: valid until 2027-01-15 09:00:00Z",
    ]


def test_what_is_wrong_with_nodes_is_said_but_ready() -> None:
    """A GPU that is offered twice is no reason to answer no calls."""
    twice = Advertised(twice=(AdvertisedTwice("gpu.nvidia.com", ("nvidia.com/gpu",), "node-7"),))
    said = lines(results(replace(SNAPSHOT, advertised=twice)))[1]
    assert said.startswith(
        "[+] nodes: GPUs are offered twice, as nvidia.com/gpu and by gpu.nvidia.com in ResourceSlices (first on node node-7)"
    )


def test_a_missing_registration_is_marked_but_ready() -> None:
    """A replica that no pod reaches still answers: taking it out would help nobody."""
    it = results()
    it.registered.missing = ("MutatingWebhookConfiguration/zz-berth", "ValidatingWebhookConfiguration/zz-berth")
    assert lines(it)[1] == (
        "[!] registration: MutatingWebhookConfiguration/zz-berth and ValidatingWebhookConfiguration/zz-berth do not exist or have no"
        " rules: the API server sends no pods to Berth, and no policy applies; to create what is missing, run helm upgrade,"
        " or berth webhooks and kubectl apply"
    )
    it.registered.missing, it.registered.differs = (), False
    assert lines(it)[1] == "[+] registration: the webhook configurations match this replica's catalog"
    it.registered.missing = ("ValidatingWebhookConfiguration/zz-berth",)
    assert ask(starlette_of(replace(it, certificate_expires=4e9)), "/readyz", method="GET").status == 200


def test_without_policies_it_is_not_ready() -> None:
    """And says what calls get meanwhile."""
    assert lines(results(None))[0] == "[-] policies: not loaded yet; calls are answered with 503, and the API server retries"


def test_an_expired_certificate_is_not_ready() -> None:
    """No caller accepts it: another replica may do better."""
    assert lines(results(), NOW + 3600)[1] == "[-] certificate: expired on 2027-01-15 09:00:00Z"


def test_the_clock_of_the_api_server_counts_for_the_certificate() -> None:
    """It is the one that verifies: a node's clock that is ahead takes no replica out, and one that is behind keeps none in."""
    it = results()
    it.verifiers_ahead = lambda: -900.0
    assert lines(it, NOW + 4400)[1] == (
        "[+] certificate: valid until 2027-01-15 09:00:00Z by the API server's clock, which is 900 s behind this node's"
    )
    it.verifiers_ahead = lambda: 4000.0
    text = "[-] certificate: expired on 2027-01-15 09:00:00Z by the API server's clock, which is 4000 s ahead of this node's"
    assert lines(it)[1] == text


def test_the_clock_of_the_api_server_is_known_by_its_answers() -> None:
    """Before the first answer, and where both clocks agree, the node's own counts."""
    source = ClusterSource(kubeconfig=None, context=None, watch=300, lease=("berth-system", "berth"))
    shared = SharedCertificate(source, CertificateSecret(namespace="berth-system", name="berth-certificates"), ("berth.berth-system.svc",))
    assert shared.verifiers_ahead() == 0
    for ahead in (timedelta(), timedelta(days=3), -timedelta(days=3)):
        shared._follower = Api(ahead).keeper()
        asyncio.run(shared._follower.looked())
        assert abs(shared.verifiers_ahead() - ahead.total_seconds()) <= 1
        assert bool(ahead) or shared.verifiers_ahead() == 0


def test_a_denied_certificate_is_said_but_ready() -> None:
    """The last good one is served; somebody should look before it ends."""
    it = results()
    it.certificate_rejected_at = NOW - 5
    assert lines(it)[1].startswith("[!] certificate: valid until")
    assert "the certificate on disk was rejected 5 s ago (log: event=certificate_rejected)" in lines(it)[1]


def test_a_denied_change_is_said_but_ready() -> None:
    """The last good set acts, so taking the replica out would only make it worse."""
    it = results()
    it.rejected_at = NOW - 5
    assert lines(it)[0].startswith("[!] policies: 1 active")
    assert "a change was rejected 5 s ago, the last valid set is active" in lines(it)[0]


@pytest.mark.parametrize(
    ("fault", "mark"),
    [({}, "+"), ({"healthy": False, "error": "the API server can't be reached"}, "!"), ({"isolated": ("GPUPolicy/a/b",)}, "!")],
)
def test_a_kind_that_is_not_followed_is_marked_but_ready(fault: dict[str, Any], mark: str) -> None:
    """What was known acts on, so the replica answers; the mark shows which line a person should read."""
    well: dict[str, Any] = {"synced": True, "healthy": True, "error": "", "without": "", "silent": 5.0, "objects": 1, "isolated": ()}
    kind = Watching(kind="GPUPolicy", unread=0, counts={}, digest=str, **{**well, **fault})
    it = results()
    it.watching = lambda: iter([kind])
    assert lines(it)[1].startswith(f"[{mark}] cluster: ")


def test_kinds_with_one_error_are_named_together() -> None:
    """An outage takes every kind, and its line is read at night: error and consequence are written once for all that share them."""
    well: dict[str, Any] = {"synced": True, "healthy": True, "error": "", "without": "", "silent": 5.0, "objects": 1, "isolated": ()}
    lost = well | {"healthy": False, "error": "the API server can't be reached", "silent": 40.0}
    states = {"GPUPolicy": lost, "Pod": lost | {"silent": 42.0}, "Queue": lost | {"without": "any queue is accepted"}, "Namespace": well}
    it = results()
    it.watching = lambda: (Watching(kind=kind, unread=0, counts={}, digest=str, **state) for kind, state in states.items())
    assert lines(it)[1].startswith(
        "[!] cluster: GPUPolicy, Pod: the API server can't be reached (last message 42 s ago); "
        "Queue: the API server can't be reached (last message 40 s ago); meanwhile any queue is accepted; the last known objects are used"
    )


def test_a_server_that_stops_is_not_ready() -> None:
    """So that endpoints are withdrawn while it still answers."""
    assert lines(results(draining=True))[2].startswith("[-] stopping: ")


def test_the_status_follows_the_checks() -> None:
    """200 when all are good, else 503; alive either way."""
    good = replace(results(), certificate_expires=4e9)
    bad = replace(results(None), certificate_expires=4e9)
    answers = [ask(starlette_of(it), "/readyz", method="GET") for it in (good, bad)]
    assert [answer.status for answer in answers] == [200, 503]
    assert [answer.body.splitlines()[-1] for answer in answers] == [b"ready", b"not ready"]
    assert ask(starlette_of(bad), "/livez", method="GET").status == 200


def test_metrics_are_served_in_the_form_asked_for() -> None:
    """Prometheus' text, or OpenMetrics."""
    app = starlette_of(results())
    text = ask(app, "/metrics", headers={"accept": "text/plain"}, method="GET")
    assert text.headers["content-type"].startswith("text/plain; version=")
    assert b"berth_build_info" in text.body
    opened = ask(app, "/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"}, method="GET")
    assert opened.body.endswith(b"# EOF\n")


def test_only_four_pages_are_there_to_be_read() -> None:
    """Another path is 404, another method 405."""
    app = starlette_of(results())
    assert ask(app, "/mutate", method="GET").status == 404
    assert (ask(app, "/livez").status, ask(app, "/livez").headers["allow"]) == (405, "GET, HEAD")
