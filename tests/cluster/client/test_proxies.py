"""Which proxy is used for a server."""

from __future__ import annotations

import pytest

from cluster.client.proxies import proxy_of

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "without", "wanted"),
    [
        ("https://10.96.0.1:443", "", PROXY),
        ("https://10.96.0.1:443", "10.0.0.0/8", None),
        ("https://10.96.0.1:443", "192.168.0.0/16, 10.96.0.1", None),
        ("https://[fd00::1]:443", "fd00::/8", None),
        ("https://api.eks.example.com", ".example.com", None),
        ("https://api.eks.example.com", "example.com", None),
        ("https://api.eks.example.com", "ample.com,example.org/8", PROXY),
        ("https://api.eks.example.com:6443", "api.eks.example.com:443", PROXY),
        ("https://api.eks.example.com:6443", "API.eks.example.com:6443", None),
        ("https://api.eks.example.com", "*", None),
        ("https://127.0.0.1:6443", "", None),
        ("https://localhost:6443", "", None),
        ("http://10.0.0.1:8001", "", None),
    ],
)
def test_the_proxy_is_the_environments_but_for_what_it_excepts(
    server: str, without: str, wanted: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTPS_PROXY for https; NO_PROXY by host, domain, port and network; never for this machine itself."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    if without:
        monkeypatch.setenv("NO_PROXY", without)
    assert proxy_of(server) == wanted
