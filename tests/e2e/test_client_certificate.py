"""``--client-ca`` on the real API server: it shows the certificate of its AdmissionConfiguration and is answered; nobody else is."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from certs.authority import KeyPair, make_ca
from tests.support.calls.raw_tls import GONE
from tests.support.calls.server_process import JSON, ROOT
from tests.support.certificate_files import client_certificate
from tests.testcluster.addons.berth import LIBRARY, PROBE, SCOPE, Berth, create_namespace, registered
from tests.testcluster.calls import PATIENCE, Answer, request_once
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.fixtures import control_plane

REVIEW = (ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_bytes()
PLUGINS = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
CONFIG_API = "apiserver.config.k8s.io/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """A cluster whose API server has a client certificate for webhooks, and what issued it."""

    cluster: Cluster
    ca: KeyPair
    folder: Path


@pytest.fixture(scope="module")
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder, ca = tmp_path_factory.mktemp("callers"), make_ca(datetime.now(UTC))
    (folder / "ca.crt").write_bytes(ca.certificate_pem)
    with control_plane(request.session, Options(apiserver=(f"--admission-control-config-file={admission(folder, ca)}",))) as cluster:
        yield Secured(cluster=cluster, ca=ca, folder=folder)


def admission(folder: Path, ca: KeyPair) -> Path:
    """The files of docs/protocol.md. The user's name is ``*``, for the port of the Berth to come is not known yet."""
    certificate, key = client_certificate(ca, "kube-apiserver", folder)
    user = {"name": "*", "user": {"client-certificate": str(certificate), "client-key": str(key)}}
    (folder / "webhooks.kubeconfig").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "users": [user]}))
    configuration = {
        "apiVersion": CONFIG_API,
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(folder / "webhooks.kubeconfig"),
    }
    plugins = [{"name": name, "configuration": configuration} for name in PLUGINS]
    (folder / "admission.yaml").write_text(yaml.safe_dump({"apiVersion": CONFIG_API, "kind": "AdmissionConfiguration", "plugins": plugins}))
    return folder / "admission.yaml"


def test_the_api_server_is_answered_and_nobody_else(secured: Secured) -> None:
    """Its pods are patched. A caller without a certificate does not get through its handshake, and another client of the same CA, though
    it sends the same review, is denied; neither leaves a decision."""
    cluster, options = secured.cluster, ("--client-ca", str(secured.folder / "ca.crt"), "--client-names", "kube-apiserver")
    with registered(cluster, "secured", (LIBRARY,), *options) as berth:
        namespace = create_namespace(cluster, "secured", {SCOPE: "secured"})
        pod = cluster.api.create(PROBE, namespace)
        assert any(toleration["key"] == "nvidia.com/gpu" for toleration in pod["spec"]["tolerations"])
        before = len(berth.events("decision"))
        with pytest.raises((ssl.SSLError, *GONE, http.client.RemoteDisconnected)):
            call(berth, None)
        assert call(berth, client_certificate(secured.ca, "system:node:a", secured.folder)).status == 403
        assert call(berth, client_certificate(secured.ca, "kube-apiserver", secured.folder)).status == 200
        assert len(berth.events("decision")) == before + 1


def call(berth: Berth, pair: tuple[Path, Path] | None) -> Answer:
    client = ssl.create_default_context(cafile=str(berth.ca))
    if pair is not None:
        client.load_cert_chain(*pair)
    at = urlsplit(berth.url)
    assert at.hostname is not None
    connection = http.client.HTTPSConnection(at.hostname, at.port, context=client, timeout=PATIENCE)
    return request_once(connection, "POST", "/mutate", REVIEW, JSON)
