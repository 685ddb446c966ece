"""The server's settings: what the command line may say, and the sentence where it may not."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from webhook.settings import Settings, SettingsError, listen_address, url
from webhook.sources import Sources


def settings(host: str, port: int = 8443) -> Settings:
    return Settings(host=host, port=port, health=("127.0.0.1", 0), sources=Sources())


def from_args(**given: object) -> Settings:
    args = {"listen": "127.0.0.1:8443", "health": "127.0.0.1:0", "tls_cert": None, "tls_key": None, "self_signed": None, "names": ()}
    return Settings.from_args(argparse.Namespace(**{**args, **given}), Sources(), "1.2.3")


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
    ("text", "said"),
    [
        pytest.param("8443", "is not HOST:PORT", id="port-only"),
        pytest.param("localhost", "is not HOST:PORT", id="host-only"),
        pytest.param("localhost:https", "is not HOST:PORT", id="named-port"),
        pytest.param("localhost:70000", "is not HOST:PORT", id="port-too-large"),
        pytest.param("::1:8443", r'write an IPv6 address in brackets, --listen "\[::1\]:8443"', id="bare-ipv6"),
        pytest.param("a:b:8443", "is not HOST:PORT", id="no-address"),
    ],
)
def test_a_wrong_address_says_what_to_type(text: str, said: str) -> None:
    """Each mistake shows a form that works."""
    with pytest.raises(SettingsError, match=said):
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
    with pytest.raises(SettingsError, match="give --tls-cert FILE and --tls-key FILE, or --self-signed DIR"):
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
