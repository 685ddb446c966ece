"""The server's settings: what the command line may say, and the sentence where it may not."""

from __future__ import annotations

import argparse
import re
from datetime import timedelta
from pathlib import Path

import pytest

from certs.rotation import Lives
from sources.sources import ClusterSource, Sources
from webhook.reload.shared_certificate import CertificateSecret
from webhook.settings import DEFAULT_LEASE, ServeSettings, SettingsError, listen_address, url


def settings(host: str, port: int = 8443) -> ServeSettings:
    return ServeSettings(host=host, port=port, health=("127.0.0.1", 0), sources=Sources())


def from_args(**given: object) -> ServeSettings:
    args = {"listen": "127.0.0.1:8443", "health": "127.0.0.1:0", "tls_cert": None, "tls_key": None, "self_signed": None, "names": ()}
    args |= {
        "client_ca": None,
        "client_names": (),
        "cert_secret": None,
        "cert_source": "ours",
        "ca_life": None,
        "leaf_life": None,
        "ca_overlap": None,
    }
    files: dict[str, object] = {"policies": [], "dumps": [], "kubeconfig": None, "context": None, "in_cluster": False}
    cluster: dict[str, object] = {"watch": "60", "lease": DEFAULT_LEASE}
    return ServeSettings.from_args(argparse.Namespace(**{**args, **files, **cluster, **given}), Sources(), "1.2.3")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param({"context": "prod"}, "add --kubeconfig FILE", id="context-alone"),
        pytest.param({"kubeconfig": "f", "in_cluster": True}, "use one of them", id="both"),
        pytest.param({"in_cluster": True, "context": "prod"}, "instead of --in-cluster", id="context-in-cluster"),
        pytest.param({"kubeconfig": "f", "policies": ["p"]}, "kubectl apply -f FILE", id="policies-too"),
        pytest.param({"in_cluster": True, "dumps": ["p"]}, "use one or the other", id="facts-too"),
        pytest.param({"kubeconfig": "f", "watch": "2"}, "5 and 3600 seconds; for example, write --watch 60", id="short-watch"),
        pytest.param({"kubeconfig": "f", "watch": "1m"}, '--watch "1m" is not', id="watch-with-unit"),
        pytest.param(
            {"kubeconfig": "f", "lease": "berth"}, "is not NAMESPACE/NAME; for example, write --lease berth-system/berth", id="lease"
        ),
        pytest.param({"kubeconfig": "f", "lease": "Berth/x"}, "is not NAMESPACE/NAME", id="lease-in-capitals"),
    ],
)
def test_how_a_cluster_is_reached_is_said_once(given: dict[str, object], message: str) -> None:
    """Files or a cluster, by one of two ways; each mistake says what to type."""
    with pytest.raises(SettingsError, match=re.escape(message)):
        from_args(self_signed="d", **given)


def test_names_of_callers_need_a_ca() -> None:
    """They are names in certificates, which only a CA makes true."""
    with pytest.raises(SettingsError, match="add --client-ca FILE"):
        from_args(self_signed="d", client_names=("a",))
    asked = from_args(self_signed="d", client_ca="ca.crt", client_names=("a",))
    assert (asked.client_ca, asked.client_names) == (Path("ca.crt"), ("a",))


def test_a_cluster_takes_the_place_of_files() -> None:
    """By a kubeconfig, or as a pod; files need none of it."""
    assert from_args(self_signed="d").cluster is None
    found = from_args(self_signed="d", kubeconfig="f", context="prod", watch="10").cluster
    assert found == ClusterSource(kubeconfig="f", context="prod", watch=10, lease=("berth-system", "berth"))
    pod = from_args(self_signed="d", in_cluster=True).cluster
    assert pod is not None
    assert pod.kubeconfig is None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8443", ("127.0.0.1", 8443)),
        ("localhost:0", ("localhost", 0)),
        (":8443", ("::", 8443)),
        ("[::1]:443", ("::1", 443)),
    ],
)
def test_an_address_is_read(text: str, address: tuple[str, int]) -> None:
    """Host and port, with IPv6 in brackets; no host means all addresses."""
    assert listen_address(text) == address


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("8443", "is not HOST:PORT", id="port-only"),
        pytest.param("localhost", "is not HOST:PORT", id="host-only"),
        pytest.param("localhost:https", "is not HOST:PORT", id="named-port"),
        pytest.param("localhost:70000", "is not HOST:PORT", id="port-too-large"),
        pytest.param("::1:8443", r'write an IPv6 address in brackets, --listen "\[::1\]:8443"', id="bare-ipv6"),
        pytest.param("a:b:8443", "is not HOST:PORT", id="no-address"),
    ],
)
def test_a_wrong_address_says_what_to_type(text: str, message: str) -> None:
    """Each mistake shows a form that works."""
    with pytest.raises(SettingsError, match=message):
        listen_address(text)


def test_certificate_files_are_taken() -> None:
    """A certificate and a key from outside are used as they are."""
    assert from_args(tls_cert="tls.crt", tls_key="tls.key").tls_files == (Path("tls.crt"), Path("tls.key"))


def test_a_folder_is_taken() -> None:
    """--self-signed names the folder."""
    assert from_args(self_signed="tls").self_signed == Path("tls")


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({}, id="neither"),
        pytest.param({"tls_cert": "a"}, id="certificate-without-key"),
        pytest.param({"tls_key": "a"}, id="key-without-certificate"),
        pytest.param({"tls_cert": "a", "tls_key": "b", "self_signed": "c"}, id="both"),
    ],
)
def test_tls_is_given_in_one_of_two_ways(given: dict[str, str]) -> None:
    """There is no server without TLS, and no guess between two certificates."""
    with pytest.raises(SettingsError, match="set --tls-cert FILE and --tls-key FILE, or --self-signed DIR"):
        from_args(**given)


def test_the_certificate_names_where_the_server_listens() -> None:
    """Loopback always; the host too unless it is a wildcard."""
    assert settings("berth.internal").names == ("localhost", "127.0.0.1", "::1", "berth.internal")
    assert settings("0.0.0.0").names == ("localhost", "127.0.0.1", "::1")
    assert settings("127.0.0.1").names == ("localhost", "127.0.0.1", "::1")


def test_the_url_can_be_typed() -> None:
    """Brackets for IPv6, a name for a wildcard."""
    urls = [url("https", host, 8443) for host in ("127.0.0.1", "::1", "::")]
    assert urls == ["https://127.0.0.1:8443", "https://[::1]:8443", "https://localhost:8443"]


def test_names_are_added() -> None:
    """Those of a Service, which the process can't know."""
    assert "berth.berth-system.svc" in from_args(self_signed="tls", names=("berth.berth-system.svc",)).names


def test_the_second_port_has_an_address_of_its_own() -> None:
    """A wrong one is named by its own flag."""
    assert from_args(self_signed="tls", health="0.0.0.0:9090").health == ("0.0.0.0", 9090)
    with pytest.raises(SettingsError, match='--health "9090" is not HOST:PORT'):
        from_args(self_signed="tls", health="9090")


SHARED: dict[str, object] = {"in_cluster": True, "cert_secret": "a/b", "names": ("berth.a.svc",)}


def test_certificates_are_shared_in_a_cluster() -> None:
    """With the lives that are given, in a policy's spelling of durations."""
    found = from_args(**SHARED, leaf_life="1h", ca_overlap="90s")
    lives = Lives(leaf=timedelta(hours=1), overlap=timedelta(seconds=90))
    assert found.cert_secret == CertificateSecret(namespace="a", name="b", lives=lives)
    assert "berth.a.svc" in found.names


def test_certificates_of_somebody_else_are_read() -> None:
    """Whose names are not Berth's to choose."""
    found = from_args(in_cluster=True, cert_secret="a/b", cert_source="theirs")
    assert found.cert_secret == CertificateSecret(namespace="a", name="b", source="theirs")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param({"cert_secret": "a/b", "names": ("n.a.svc",)}, "add --in-cluster or --kubeconfig FILE", id="no-cluster"),
        pytest.param({**SHARED, "names": ()}, "add --names NAME.NAMESPACE.svc", id="no-names"),
        pytest.param({**SHARED, "cert_secret": "b"}, "for example, write --cert-secret berth-system/berth-certificates", id="no-namespace"),
        pytest.param({**SHARED, "self_signed": "d"}, "one of the three", id="two"),
        pytest.param({**SHARED, "leaf_life": "7d"}, "--leaf-life", id="unit"),
        pytest.param({**SHARED, "leaf_life": "299s"}, '--leaf-life "299s" is less than 5m; for example, write --leaf-life 168h', id="leaf"),
        pytest.param({**SHARED, "ca_life": "2h"}, "--ca-life is too short", id="short"),
        pytest.param({"self_signed": "d", "cert_source": "theirs"}, "add --cert-secret NAMESPACE/NAME", id="source-alone"),
        pytest.param({"self_signed": "d", "leaf_life": "1h"}, "add --cert-secret NAMESPACE/NAME", id="lives-alone"),
    ],
)
def test_shared_certificates_need_what_they_need(given: dict[str, object], message: str) -> None:
    """Each mistake says what to type."""
    with pytest.raises(SettingsError, match=re.escape(message)):
        from_args(**given)
