"""The service account of a pod, and the messages where something of it is missing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from certs.authority import make_ca
from cluster.client import in_cluster


@pytest.mark.parametrize(
    ("host", "server"),
    [
        ("10.96.0.1", "https://10.96.0.1:6443"),
        ("fd00::1", "https://[fd00::1]:6443"),
        ("kubernetes.default.svc", "https://kubernetes.default.svc:6443"),
    ],
)
def test_the_address_is_that_of_the_service(host: str, server: str) -> None:
    """An IPv6 address gets brackets."""
    assert in_cluster.server({"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "6443"}) == server


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": ""}, "KUBERNETES_SERVICE_PORT is not set"),
    ],
)
def test_a_variable_that_is_missing_is_named(variables: dict[str, str], message: str) -> None:
    """An empty one counts as missing, as in client-go."""
    with pytest.raises(ValueError, match=f"^{message}$"):
        in_cluster.server(variables)


def test_a_file_that_is_missing_or_useless_is_named(tmp_path: Path) -> None:
    """The message has the path and the reason, for the token and for the CA."""
    with pytest.raises(ValueError, match=f"^{tmp_path}/token can't be read: No such file or directory$"):
        in_cluster.token(tmp_path)
    (tmp_path / "token").write_text(" \n")
    with pytest.raises(ValueError, match=f"^{tmp_path}/token is empty$"):
        in_cluster.token(tmp_path)
    (tmp_path / "ca.crt").mkdir()
    with pytest.raises(ValueError, match=f"^{tmp_path}/ca.crt can't be read: Is a directory$"):
        in_cluster.trust(tmp_path)
    (tmp_path / "ca.crt").rmdir()
    (tmp_path / "ca.crt").write_text("not PEM")
    with pytest.raises(ValueError, match=f"^{tmp_path}/ca.crt has no certificate that can be read: "):
        in_cluster.trust(tmp_path)


def test_a_bundle_trusts_each_of_its_certificates_and_no_others(tmp_path: Path) -> None:
    """While a CA is replaced there are two; comments between them, in any language, do no harm, and the machine's own CAs don't count."""
    authorities = [make_ca(datetime.now(UTC)).certificate_pem for _ in range(2)]
    (tmp_path / "ca.crt").write_bytes("\n# Zertifikat für Köln\n".encode().join([b"", *authorities]))
    context, both = in_cluster.trust(tmp_path)
    assert len(context.get_ca_certs()) == 2
    (tmp_path / "ca.crt").write_bytes(authorities[0])
    context, first = in_cluster.trust(tmp_path)
    assert (len(context.get_ca_certs()), first == both) == (1, False)


def test_a_pod_without_a_namespace_file_is_in_default(tmp_path: Path) -> None:
    """The file is read without the end of its line."""
    assert in_cluster.namespace(tmp_path) == "default"
    (tmp_path / "namespace").write_text("gpus\n")
    assert in_cluster.namespace(tmp_path) == "gpus"
