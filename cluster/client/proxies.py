"""The proxy for a server from the environment, read as Go programs such as kubectl do
(golang.org/x/net/http/httpproxy)."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit
from urllib.request import getproxies_environment


def proxy_of(server: str) -> str | None:
    """Return the proxy for https://HOST:PORT, or None.

    NO_PROXY may hold hosts, domains, and networks such as 10.0.0.0/8, where Services are.
    """
    parts = urlsplit(server)
    host, proxies = (parts.hostname or "").lower(), getproxies_environment()
    passed = [one.strip().lower() for one in proxies.get("no", "").split(",") if one.strip()]
    if host == "localhost" or any(_covers(one, host, f"{host}:{parts.port}") for one in (*passed, "127.0.0.0/8", "::1/128")):
        return None
    return proxies.get(parts.scheme)


def _covers(one: str, host: str, with_port: str) -> bool:
    if one in ("*", host, with_port):
        return True
    if "/" in one:
        try:
            return ip_address(host) in ip_network(one, strict=False)
        except ValueError:
            return False
    return host.endswith(f".{one.removeprefix('*').removeprefix('.')}")
