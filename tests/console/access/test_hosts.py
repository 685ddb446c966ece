"""The page to go back to: one of the console's own, whatever is asked for; and the names by which it may be asked."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from console.access.hosts import Hosts, local

PATHS = {"/", "/impact", "/job"}


@pytest.mark.parametrize(
    "address",
    [
        "//evil.example", "https://evil.example", "https:evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example",
        " //evil.example",
        "///evil.example", "/%2fevil.example", "javascript:alert(1)", "/impact\r\nSet-Cookie: a=b", "/login", "/logout",
        "/impact/../x", "é", "/" * 5000,
        "https://[", "/impact;x",
    ],
)  # fmt: skip
def test_no_address_leads_elsewhere(address: str) -> None:
    """Not by a host, by what browsers make one of, by a scheme, by a header, nor to a page that is none."""
    assert local(address, PATHS) == "/"


def test_pages_are_returned_to_with_what_they_show() -> None:
    """Path and query; of a whole address nothing before them."""
    assert local("/job?pod=a/b&x=%3Cscript%3E", PATHS) == "/job?pod=a/b&x=%3Cscript%3E"
    assert local("https://evil.example/impact?page=2#x", PATHS) == "/impact?page=2"
    assert local('/job?x="><script>', PATHS) == "/job?x=%22%3E%3Cscript%3E"


def asked(host: str) -> Request:
    return Request({"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [(b"host", host.encode())]})


def test_only_known_names_are_answered() -> None:
    """Those of the port with any port number, since it may be forwarded; that of the address in front with its own."""
    hosts = Hosts(["berth-console.berth-system.svc"], "https://gpus.example.com")
    good = ("localhost:1", "127.0.0.1:8480", "[::1]:8480", "berth-console.berth-system.svc", "gpus.example.com", "GPUS.example.com:443")
    bad = ("", "evil.example", "gpus.example.com:8443", "gpus.example.com.evil.example", "localhost@evil.example", "evil.example/localhost",
           "localhost:x",           "evil.example#gpus.example.com", "[::1", "localhost:1:2")  # fmt: skip
    assert [hosts.denial(asked(one)) is None for one in good] == [True] * len(good)
    assert [hosts.denial(asked(one)) is None for one in bad] == [False] * len(bad)
