"""``--client-ca`` and ``--client-names``: who is answered, and who is not."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from certs.authority import KeyPair, make_ca
from tests.support import certificate_files
from tests.support.calls.raw_tls import GONE, context
from tests.support.calls.server_process import JSON, ROOT, Running, serving
from tests.support.certificate_files import client_certificate
from tests.testcluster.calls import PATIENCE, Answer, request_once
from tests.webhook.test_serve import denied

REVIEW = (ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_bytes()


@pytest.fixture(scope="module")
def ca() -> KeyPair:
    return make_ca(datetime.now(UTC))


@pytest.fixture(scope="module")
def server(ca: KeyPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One that answers the bearer of one name."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "callers.crt").write_bytes(ca.certificate_pem)
    certificate_files.serving_files(folder / "tls", ["127.0.0.1"])
    files = ["--tls-cert", str(folder / "tls" / "tls.crt"), "--tls-key", str(folder / "tls" / "tls.key")]
    with serving(folder, *files, "--client-ca", str(folder / "callers.crt"), "--client-names", "kube-apiserver,other") as it:
        yield it


def call(server: Running, pair: tuple[Path, Path] | None, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> Answer:
    """Of a caller with this certificate and key."""
    client = context(server.ca)
    client.maximum_version = version
    if pair is not None:
        client.load_cert_chain(*pair)
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=client, timeout=PATIENCE)
    return request_once(connection, "POST", "/mutate", REVIEW, JSON)


VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_named_caller_is_answered(version: ssl.TLSVersion, server: Running, ca: KeyPair, tmp_path: Path) -> None:
    """With a certificate of that CA in which the name stands; also after the server's own certificate was changed."""
    pair = client_certificate(ca, "kube-apiserver", tmp_path)
    assert call(server, pair, version).status == 200
    made = len(server.events("certificate"))
    certificate_files.renew(server.ca.parent, ["127.0.0.1"])
    server.event("certificate", made + 1)
    assert call(server, pair, version).status == 200
    assert server.event("serving")["callers"] == "verified"


@pytest.mark.parametrize("version", VERSIONS)
def test_nobody_else_is(version: ssl.TLSVersion, server: Running, tmp_path: Path) -> None:
    """Without a certificate, and with one of another CA, whatever is in it: the handshake fails."""
    before = len(server.events("decision"))
    stranger = client_certificate(make_ca(datetime.now(UTC)), "kube-apiserver", tmp_path)
    for pair in (None, stranger):
        with pytest.raises((ssl.SSLError, *GONE, http.client.RemoteDisconnected)):
            call(server, pair, version)
    assert len(server.events("decision")) == before


def test_another_name_is_denied_with_a_sentence(server: Running, ca: KeyPair, tmp_path: Path) -> None:
    """Of the same CA, as a kubelet may have one: 403, unjudged, on a connection that ends."""
    before = len(server.events("decision"))
    answer = call(server, client_certificate(ca, "system:node:a", tmp_path))
    assert (answer.status, answer.headers["connection"]) == (403, "close")
    assert b"--client-names" in answer.body
    assert len(server.events("decision")) == before


def test_a_file_without_a_ca_is_one_line(tmp_path: Path) -> None:
    """The server does not start, and says which file it was."""
    (tmp_path / "ca").write_text("nothing")
    message = denied("--self-signed", str(tmp_path / "tls"), "--listen", "127.0.0.1:0", "--client-ca", str(tmp_path / "ca"))
    assert message.startswith(f"berth: {tmp_path / 'ca'}: no CA certificates in PEM form")
    assert message.count("\n") == 1
